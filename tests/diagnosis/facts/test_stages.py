import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.stages import stages
from holter.record import Event, Run
from holter.record.events import OptimizerSeen
from holter.record.signals import LOSS, LOSS_COEFFICIENT_BALANCE, LOSS_COEFFICIENT_SIZE, LOSS_SUMMED
from synthetic import run_of, series


def spans(run: Run) -> list[tuple[int, int]]:
    facts = Facts(run)
    assert not isinstance(facts.curve, str)
    return [stage.span for stage in stages(facts, facts.curve)]


def optimizers(*steps: int) -> list[Event]:
    return [Event(step, 0.0, OptimizerSeen("", "SGD")) for step in steps]


CURVE = {LOSS: {"": np.ones(100)}}


def test_a_new_optimizer_begins_a_stage() -> None:
    assert spans(run_of(CURVE, events=optimizers(0))) == [(0, 99)]
    assert spans(run_of(CURVE, events=optimizers(0, 39))) == [(0, 38), (40, 99)]


def test_an_optimizer_for_every_epoch_does_not() -> None:
    assert spans(run_of(CURVE, events=optimizers(*range(0, 100, 10)))) == [(0, 99)]


def test_another_loss_function_begins_a_stage() -> None:
    once, twice = (series(np.zeros(50), range(at, at + 50)) for at in (0, 50))
    run = run_of({**CURVE, LOSS_SUMMED: {"mse_loss": once, "cross_entropy": twice}})
    assert spans(run) == [(0, 49), (50, 99)]


def test_sampled_steps_of_which_the_stage_is_unknown_are_left_out() -> None:
    once, twice = (series(np.zeros(3), range(at, at + 48, 16)) for at in (0, 48))
    run = run_of({**CURVE, LOSS_SUMMED: {"mse_loss": once, "cross_entropy": twice}})
    assert spans(run) == [(0, 32), (48, 99)]


def test_two_loss_functions_in_turn_are_one_stage() -> None:
    even, odd = (series(np.zeros(50), range(at, 100, 2)) for at in (0, 1))
    run = run_of({**CURVE, LOSS_SUMMED: {"mse_loss": even, "cross_entropy": odd}})
    assert sum(last - first for first, last in spans(run)) >= 96


def weighted(balance: float, sizes: np.ndarray) -> Facts:
    return Facts(
        run_of(
            {
                **CURVE,
                LOSS_COEFFICIENT_BALANCE: {"": np.full(100, balance)},
                LOSS_COEFFICIENT_SIZE: {"": sizes},
            }
        )
    )


def test_coefficients_of_both_signs_leave_no_order() -> None:
    facts = weighted(0.1, np.ones(100))
    assert isinstance(facts.curve, str)
    assert isinstance(facts.signed_curve, str)
    assert facts.falling_loss is None


def test_coefficients_that_grow_leave_no_order() -> None:
    assert isinstance(weighted(1.0, np.linspace(1, 10, 100)).curve, str)


def test_steady_coefficients_of_one_sign_leave_the_order() -> None:
    assert weighted(1.0, np.linspace(1, 1.5, 100)).no_order is None
    assert weighted(-1.0, np.ones(100)).no_order is None
