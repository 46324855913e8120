import numpy as np
import pytest

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.outcome import Outcome, OutcomeState
from holter.record import Event, Meta, Run, Series
from holter.record.events import ExceptionRaised, FigurePrinted
from holter.record.signals import (
    BACKWARD_CALLS,
    CHECKPOINT_WEIGHTS,
    GRAD_TOTAL_NORM,
    LOSS,
    LOSS_MEAN,
    LOSS_ROOT_SHARE,
    LOSS_SUMMED,
    LR,
    OPTIMIZER_AGE,
    OUTPUT_SPREAD,
    TARGET_ENTROPY,
    TARGET_MAX,
    TARGET_MIN,
    TARGET_STD,
)
from layered import broken, falling, flat, rising
from synthetic import run_of, series
from validations import validated


def outcome(loss: np.ndarray, entropy: float | None = None) -> Outcome:
    signals = {LOSS: {"": loss}}
    if entropy is not None:
        signals[TARGET_ENTROPY] = {"cross_entropy": np.full(len(loss), entropy)}
    facts = Facts(run_of(signals))
    return facts.training_outcome


@pytest.mark.parametrize(
    ("loss", "state"),
    [
        (flat(), OutcomeState.LEARNED_NOTHING),
        (rising(), OutcomeState.DIVERGED),
        (np.r_[falling(), rising(50)], OutcomeState.DIVERGED),
        (np.r_[falling(), falling()[::-1], flat()], OutcomeState.DIVERGED),  # back to its start
        (np.r_[falling(), np.geomspace(1, 1e19, 40)], OutcomeState.DIVERGED),  # faster and faster
        (broken(), OutcomeState.BROKE),
        (np.r_[falling(), [np.inf]], OutcomeState.BROKE),
    ],
)
def test_bad(loss: np.ndarray, state: OutcomeState) -> None:
    result = outcome(loss)
    assert result.state is state
    assert result.bad
    assert result.finite is (state is not OutcomeState.BROKE)


@pytest.mark.parametrize(
    "loss",
    [
        falling(),
        falling(steps=25),
        np.r_[falling(), [9.0], falling(50, start=0.2)],  # a spike that recovered
        np.r_[falling(100), np.full(100, 0.2)],
        0.5 * falling() * np.exp(np.random.default_rng(2).normal(size=200)),  # tiny batches
        -5 + falling(),  # a density
        -1.2 + falling(),  # a density that falls below zero
    ],
)
def test_good(loss: np.ndarray) -> None:
    result = outcome(loss)
    assert result.state is OutcomeState.LEARNED
    assert not result.bad


def test_a_jump_that_comes_back_to_the_start_is_bad() -> None:
    loss = np.r_[[1.6], 5000 * np.exp(-np.arange(100) / 5), np.full(200, 1.59)]
    result = outcome(loss)
    assert result.state is OutcomeState.LEARNED_NOTHING
    assert result.fall < 0.01


def test_no_better_than_the_best_constant_prediction() -> None:
    loss = flat(level=1.6)
    loss[:20] = np.linspace(3, 1.6, 20)
    result = outcome(loss, entropy=1.609)
    assert result.state is OutcomeState.LEARNED_NOTHING
    assert result.at_chance
    assert result.constant == pytest.approx(1.609, rel=1e-3)


def test_a_loss_that_explodes_has_diverged_beside_a_known_baseline() -> None:
    result = outcome(rising(), entropy=2.3)
    assert result.state is OutcomeState.DIVERGED
    assert result.at_chance


def test_says_the_numbers() -> None:
    result = outcome(falling(), entropy=2.302)
    assert "2.3" in result.says
    assert "0.2" in result.says
    assert "best constant prediction 2.3" in result.says
    assert result.evidence.signal is LOSS
    assert result.evidence.steps == (0, 199)


@pytest.mark.parametrize(
    ("signals", "because"),
    [
        ({LR: {"group": np.ones(50)}}, "no loss"),
        ({LOSS: {"generator": falling(), "discriminator": rising()}}, "compete"),
        ({LOSS: {"": 0.1 * falling() - 0.0215}}, "sign"),
        ({LOSS: {"": falling(10)}}, "10 of the 20"),
        ({LOSS: {"": flat(50)}, LR: {"group": np.linspace(0, 1, 50)}}, "warming up"),
    ],
)
def test_cannot_tell(signals: dict, because: str) -> None:
    facts = Facts(run_of(signals))
    assert facts.outcome is None
    result = facts.training_outcome
    assert result.state is OutcomeState.UNKNOWN
    assert not result.bad
    assert because in result.says


def test_learning_rates_in_words() -> None:
    assert Facts(run_of({LOSS: {"": [1.0]}})).learning_rate == ""
    assert Facts(run_of({LR: {"a": [0.1, 0.1]}})).learning_rate == "0.1"
    assert Facts(run_of({LR: {"a": [0.0, 0.1], "b": [1.0, 1.0]}})).learning_rate == "0.1 to 1"


def stages(*losses: np.ndarray) -> dict[str, Series]:
    """The losses of optimizers that follow each other."""
    start, made = 0, {}
    for number, loss in enumerate(losses):
        made[f"optimizer {number}"] = series(loss, range(start, start + len(loss)))
        start += len(loss)
    return made


@pytest.mark.parametrize(
    ("losses", "state"),
    [
        (stages(falling(), flat()), OutcomeState.LEARNED_NOTHING),  # of the last one
        (stages(flat(), falling()), OutcomeState.LEARNED),
        ({"body": flat(), "head": flat()}, OutcomeState.LEARNED_NOTHING),  # one backward pass
        ({"layer 0": falling(), "layer 1": falling(start=5)}, OutcomeState.LEARNED),
        ({"generator": falling(), "discriminator": flat()}, OutcomeState.UNKNOWN),
    ],
)
def test_several_optimizers(losses: dict, state: OutcomeState) -> None:
    assert Facts(run_of({LOSS: losses})).training_outcome.state is state


def test_the_baseline_is_that_of_the_last_stage() -> None:
    signals = {
        LOSS: stages(falling(), flat(level=1.1)),
        TARGET_ENTROPY: {
            "cross_entropy": series(np.full(200, 2.3)),
            "nll_loss": series(np.full(200, 1.1), range(200, 400)),
        },
    }
    result = Facts(run_of(signals)).training_outcome
    assert result.at_chance
    assert result.constant == pytest.approx(1.1)
    assert result.steps[0] == 200


def test_targets_of_two_stages_are_not_mixed() -> None:
    mixed = np.r_[np.full(200, 2.3), np.linspace(2.3, 1.1, 200)]
    signals = {LOSS: stages(falling(), flat()), TARGET_ENTROPY: {"cross_entropy": mixed}}
    facts = Facts(run_of(signals))
    assert "changed at step 200" in str(facts.baseline)
    assert facts.training_outcome.constant is None


@pytest.mark.parametrize(
    ("loss", "diverged"),
    [
        (-0.1 * np.arange(300.0) ** 2 - 1, True),
        (-10 * np.log1p(np.arange(300.0)) - 1, False),  # slower and slower
        (-0.1 * np.arange(300.0) - 1, False),  # not far below its start
    ],
)
def test_falling_without_bound(loss: np.ndarray, diverged: bool) -> None:
    signals = {LOSS: {"": loss}, GRAD_TOTAL_NORM: {"": np.geomspace(1, 1e4, 300)}}
    result = Facts(run_of(signals)).training_outcome
    assert (result.state is OutcomeState.DIVERGED) is diverged
    assert ("without bound" in result.says) is diverged


def test_a_negated_loss_diverges() -> None:
    signals = {
        LOSS: {"": -rising(100)},
        LOSS_ROOT_SHARE: {"": np.full(100, -1.0)},
        TARGET_ENTROPY: {"cross_entropy": np.full(100, 2.3)},
    }
    assert Facts(run_of(signals)).training_outcome.state is OutcomeState.DIVERGED


def test_a_loss_that_grows_with_its_targets_cannot_be_judged() -> None:
    scale = np.linspace(1, 10, 200)
    signals = {
        LOSS: {"": 0.2 * scale**2},
        TARGET_STD: {"mse_loss": scale},
        TARGET_MIN: {"mse_loss": -scale},
        TARGET_MAX: {"mse_loss": scale},
    }
    assert "grows with the targets" in Facts(run_of(signals)).training_outcome.says


def test_a_loss_that_falls_again_after_a_rise_is_learning() -> None:
    loss = np.r_[falling(end=0.2), falling(end=0.5, start=4)]
    assert outcome(loss).state is OutcomeState.LEARNED


def test_a_trained_model_that_stays_as_it_is_has_stalled() -> None:
    result = outcome(flat(level=0.4), entropy=1.1)
    assert result.state is OutcomeState.STALLED
    assert result.title == "stalled at 0.4"
    assert not result.bad


def test_a_loss_of_zero_at_every_step_learned_nothing() -> None:
    assert outcome(np.zeros(100)).state is OutcomeState.LEARNED_NOTHING


def test_a_flat_negative_loss_learned_nothing() -> None:
    assert outcome(-flat()).state is OutcomeState.LEARNED_NOTHING


def terms(**levels: tuple[np.ndarray, float]) -> Run:
    """A run whose loss is the sum of torch's losses, each with the entropy of its labels."""
    return run_of(
        {
            LOSS: {"": sum(values for values, _ in levels.values())},
            LOSS_MEAN: {name: values for name, (values, _) in levels.items()},
            LOSS_SUMMED: {name: np.zeros(len(values)) for name, (values, _) in levels.items()},
            TARGET_ENTROPY: {
                name: np.full(len(values), entropy) for name, (values, entropy) in levels.items()
            },
        }
    )


def test_terms_that_all_stay_at_chance_learned_nothing() -> None:
    start = np.r_[np.linspace(3, 2.3, 20), flat(level=2.3)]
    other = np.r_[np.linspace(5, 0.7, 20), flat(level=0.7)]
    facts = Facts(terms(cross_entropy=(start, 2.3), binary_cross_entropy=(other, 0.69)))
    assert len(facts.terms.stuck) == 2
    assert facts.training_outcome.state is OutcomeState.LEARNED_NOTHING
    assert facts.training_outcome.signal is LOSS_MEAN


def test_a_balanced_term_at_chance_beside_one_that_learned_may_be_an_adversary() -> None:
    confused = flat(level=0.69)
    facts = Facts(terms(cross_entropy=(falling(), 2.3), binary_cross_entropy=(confused, 0.69)))
    assert facts.terms.stuck == ()
    assert facts.training_outcome.state is OutcomeState.LEARNED


def test_a_term_that_makes_up_little_of_the_loss_does_not_count() -> None:
    signals = terms(cross_entropy=(flat(level=2.3), 2.3), nll_loss=(1000 * falling(), 2000.0))
    assert [term.function for term in Facts(signals).terms.known] == ["nll_loss"]


def test_terms_of_competing_optimizers_are_not_judged() -> None:
    signals = {
        LOSS: {"generator": falling(), "discriminator": flat(level=0.69)},
        LOSS_MEAN: {"binary_cross_entropy": flat(level=0.69)},
        TARGET_ENTROPY: {"binary_cross_entropy": np.full(200, 0.69)},
    }
    assert Facts(run_of(signals)).terms.known == ()


def test_predictions_that_no_longer_differ_have_collapsed() -> None:
    signals = {
        LOSS: {"": np.r_[falling(50, end=1.61), flat(250, level=1.61)]},
        LOSS_ROOT_SHARE: {"": np.ones(300)},
        TARGET_ENTROPY: {"cross_entropy": np.full(300, 1.609)},
        OUTPUT_SPREAD: {"cross_entropy": np.r_[np.ones(10), np.full(290, 1e-6)]},
    }
    result = Facts(run_of(signals)).training_outcome
    assert result.state is OutcomeState.COLLAPSED
    assert result.title == "collapsed"
    assert "between inputs" in result.says


PASSES = np.linspace(2.2, 0.2, 8)


def test_accuracy_is_said_where_the_loss_does_not_tell() -> None:
    high = np.linspace(9, 3, 8)
    run = validated(high, high, accuracy=np.linspace(0.2, 0.9, 8), val_accuracy=PASSES / 3)
    assert (
        "accuracy 90 % (chance 10 %), validation 3 with accuracy 7 %" in Facts(run).run_outcome.says
    )


def test_accuracy_and_validation_are_known() -> None:
    run = validated(PASSES, PASSES, accuracy=np.linspace(0.2, 0.9, 8), val_accuracy=PASSES / 3)
    result = Facts(run).run_outcome
    assert result.says.endswith("(best constant prediction 2.3), validation 0.2")  # is plain
    assert result.accuracy == pytest.approx(0.9)
    assert result.validation_accuracy == pytest.approx(0.2 / 3)
    assert result.validation == pytest.approx(0.2)
    assert result.gain == pytest.approx(0.9, abs=0.05)


def test_a_validation_that_never_is_better_than_a_constant_prediction_is_a_failure() -> None:
    run = validated(PASSES, np.linspace(2.4, 6, 8), val_accuracy=np.full(8, 0.1))
    facts = Facts(run)
    assert facts.training_outcome.state is OutcomeState.LEARNED
    assert facts.run_outcome.state is OutcomeState.MEMORISED
    assert facts.run_outcome.bad


@pytest.mark.parametrize("passes", [3, 8])
def test_a_validation_that_ends_above_a_constant_prediction_is_overfitted(passes: int) -> None:
    low = PASSES[-passes:] / 10
    high = np.linspace(2.2, 3.4, passes)
    run = validated(low, high, val_accuracy=np.full(passes, 0.55))
    facts = Facts(run)
    assert facts.training_outcome.state is OutcomeState.LEARNED
    assert facts.run_outcome.state is OutcomeState.OVERFITS
    assert not facts.run_outcome.bad


@pytest.mark.parametrize(
    ("training", "validation"),
    [
        (PASSES / 10, np.linspace(2.2, 2.4, 8)),  # other class frequencies may explain it
        (PASSES / 10, np.linspace(200, 300, 8)),  # in other units
        (np.linspace(2.2, 1.5, 8), np.linspace(2.2, 2.8, 8)),  # training has not fitted much
        (PASSES / 10, np.r_[np.full(7, 1.5), 3]),  # one odd pass
    ],
)
def test_other_validations_leave_the_outcome(training: np.ndarray, validation: np.ndarray) -> None:
    run = validated(training, validation, val_accuracy=np.full(8, 0.55))
    assert Facts(run).run_outcome.state is OutcomeState.LEARNED


def test_an_exception_is_the_outcome() -> None:
    event = Event(150, 0.0, ExceptionRaised("ValueError", "bad shape\nmore"))
    run = run_of({LOSS: {"": falling()}}, events=(event,), meta=Meta(status="failed"))
    result = Facts(run).run_outcome
    assert result.title == "broke at step 150"
    assert result.says == "ValueError: bad shape"


def test_a_loss_that_improved_on_its_start_has_not_failed_where_a_task_may_become_harder() -> None:
    harder = np.r_[falling(end=0.2), np.linspace(0.2, 1.8, 100)]
    assert outcome(harder).state is OutcomeState.LEARNED
    assert outcome(harder, entropy=2.3).state is OutcomeState.DIVERGED


@pytest.mark.parametrize(
    ("accuracies", "state"),
    [
        ((0.1, 0.6, 0.95, 0.96), OutcomeState.LEARNED),
        ((0.1, 0.6, 0.95, 0.3), OutcomeState.DIVERGED),
    ],
)
def test_a_loss_that_rises_while_a_metric_stays_good_has_not_diverged(
    accuracies: tuple[float, ...], state: OutcomeState
) -> None:
    harder = np.r_[falling(end=0.3), np.linspace(0.3, 4, 100)]
    shown = FigurePrinted("accuracy", (50, 100, 200, 290), accuracies)
    run = run_of({LOSS: {"": harder}}, events=(Event(290, 0.0, shown),))
    assert Facts(run).training_outcome.state is OutcomeState.DIVERGED
    assert Facts(run).run_outcome.state is state


def test_a_loss_that_rose_at_first_and_falls_is_not_lost() -> None:
    queue = np.r_[np.linspace(1, 6, 100), np.linspace(6, 4, 200)]
    assert not outcome(queue).bad


@pytest.mark.parametrize(
    ("more", "state"),
    [
        ({}, OutcomeState.LEARNED_NOTHING),
        ({CHECKPOINT_WEIGHTS: {"": [1.0]}}, OutcomeState.STALLED),
        ({OPTIMIZER_AGE: {"": np.arange(5000, 5200)}}, OutcomeState.STALLED),
        ({OPTIMIZER_AGE: {"": np.arange(1, 201)}}, OutcomeState.LEARNED_NOTHING),
    ],
)
def test_a_model_that_had_converged_may_stay_as_it_is(more: dict, state: OutcomeState) -> None:
    result = Facts(run_of({LOSS: {"": flat()}, **more})).training_outcome
    assert result.state is state
    assert not result.sure


def test_a_loss_that_rose_with_another_loss_function_is_judged_since_then() -> None:
    larger = 100 * falling()
    both = {LOSS: {"": np.r_[falling(), larger]}}
    assert Facts(run_of(both)).training_outcome.state is OutcomeState.DIVERGED
    used = {"mse_loss": series(np.zeros(400)), "l1_loss": series(np.zeros(200), range(200, 400))}
    result = Facts(run_of({**both, LOSS_SUMMED: used})).training_outcome
    assert result.state is OutcomeState.LEARNED
    assert result.steps[0] == 200


def test_a_loss_of_both_signs_that_grows_by_orders_of_magnitude_has_diverged() -> None:
    signs = np.resize([1.0, -1.0], 200)
    assert outcome(signs).state is OutcomeState.UNKNOWN
    grows = outcome(signs * np.r_[np.ones(150), np.logspace(0, 6, 50)])
    assert grows.state is OutcomeState.DIVERGED
    assert "absolute loss" in grows.says


def test_a_batch_that_the_script_discards_last_breaks_nothing() -> None:
    loss = falling()
    calls = np.ones(len(loss))
    for step in (20, 90, len(loss) - 1):
        loss[step], calls[step] = np.nan, 2
    calls[-1] = 1
    norms = np.ones(len(loss) - 1)
    signals = {LOSS: {"": loss}, BACKWARD_CALLS: {"": calls}, GRAD_TOTAL_NORM: {"": norms}}
    assert Facts(run_of(signals)).training_outcome.state is OutcomeState.LEARNED
