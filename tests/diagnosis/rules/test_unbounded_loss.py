import numpy as np
import pytest

from holter.diagnosis.rules.unbounded_loss import unbounded_loss
from holter.record import Event
from holter.record.events import CaptureWritten
from holter.record.findings import Clear, Confidence, NotExamined
from holter.record.meta import Meta, OptimizerSummary
from holter.record.signals import LOSS, LOSS_ROOT_SHARE, OUTPUT_SIZE, WEIGHT_TOTAL_NORM
from synthetic import found, run_of, said

RUNAWAY = -np.geomspace(1, 1e6, 100)


def test_the_negative_of_the_loss() -> None:
    run = run_of({LOSS_ROOT_SHARE: {"": [-1.0] * 20}, LOSS: {"": np.linspace(-1, -30, 20)}})
    (finding,) = found(unbounded_loss, run)
    assert finding.confidence is Confidence.CERTAIN
    assert "-1 times" in finding.summary


def test_the_same_negative_part_of_the_loss() -> None:
    run = run_of({LOSS_ROOT_SHARE: {"": [-0.25] * 20}, LOSS: {"": [-1.0] * 20}})
    assert found(unbounded_loss, run)


def test_a_loss_without_a_floor() -> None:
    run = run_of({LOSS: {"": RUNAWAY}, OUTPUT_SIZE: {"mse_loss": np.geomspace(1, 1e3, 100)}})
    (finding,) = found(unbounded_loss, run)
    assert finding.confidence is Confidence.LIKELY
    assert "outputs grow" in finding.summary
    assert 0 < finding.onset < 100


@pytest.mark.parametrize(
    ("shares", "losses"),
    [
        ([1.0] * 50, [1.0] * 50),
        ([-1.0, 2.0, -0.3, 0.8, -3.0] * 10, [0.1, -0.2] * 25),  # policy and value together
        ([-0.5, -1.0, -2.0, -4.0, -0.1] * 10, [-0.2] * 50),
        ([np.nan] * 50, [1.0] * 50),
        ([], np.linspace(8000, -12000, 50)),  # the likelihood of a density
        ([], RUNAWAY),  # nothing else grows
    ],
)
def test_silent(shares: list[float], losses: np.ndarray) -> None:
    run = run_of(
        {
            LOSS: {"": losses},
            LOSS_ROOT_SHARE: {"": shares},
            WEIGHT_TOTAL_NORM: {"": [3.0] * 50},
        }
    )
    (verdict,) = said(unbounded_loss, run)
    assert isinstance(verdict, Clear)


@pytest.mark.parametrize(
    ("losses", "sizes", "confidence"),
    [
        ([-1.0] * 100, np.ones(100), Confidence.HINT),
        (RUNAWAY, np.geomspace(1, 1e3, 100), Confidence.LIKELY),
    ],
)
def test_the_negative_of_a_loss_that_may_be_negative_is_not_certain(
    losses: np.ndarray, sizes: np.ndarray, confidence: Confidence
) -> None:
    run = run_of(
        {
            LOSS_ROOT_SHARE: {"": [-1.0] * 100},
            LOSS: {"": losses},
            OUTPUT_SIZE: {"gaussian_nll_loss": sizes},
        }
    )
    (finding,) = found(unbounded_loss, run)
    assert finding.confidence is confidence


def test_adversaries_are_not_examined() -> None:
    two = {"generator": [-1.0] * 50, "critic": [1.0] * 50}
    (verdict,) = said(unbounded_loss, run_of({LOSS: two, LOSS_ROOT_SHARE: {"": [-1.0] * 50}}))
    assert isinstance(verdict, NotExamined)


def test_two_optimizers_of_one_loss() -> None:
    run = run_of(
        {LOSS: {"": [-1.0] * 50}, LOSS_ROOT_SHARE: {"": [-1.0] * 50}},
        meta=Meta(optimizers=(OptimizerSummary("a", "Adam", 1), OptimizerSummary("b", "Adam", 1))),
    )
    assert found(unbounded_loss, run)


def test_too_short() -> None:
    run = run_of({LOSS_ROOT_SHARE: {"": [-1.0] * 4}, LOSS: {"": [-1.0] * 4}})
    (verdict,) = said(unbounded_loss, run)
    assert isinstance(verdict, NotExamined)


@pytest.mark.parametrize(("last", "is_found"), [(-9000.0, True), (-10.0, False), (np.nan, False)])
def test_one_of_several_losses_that_was_captured_far_below_zero(
    last: float, is_found: bool
) -> None:
    critic = [*np.linspace(-1, -4000, 80), *[last] * 20]
    captured = Event(60, 0.0, CaptureWritten("descent", 60, "captures/step-60"))
    losses = {LOSS: {"critic": critic, "generator": [1.0] * 100}}
    run = run_of(losses, events=[captured])
    told = [each for each in found(unbounded_loss, run) if "of critic diverges" in each.summary]
    assert bool(told) is is_found
