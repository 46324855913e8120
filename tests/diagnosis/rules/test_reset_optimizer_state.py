import numpy as np
import pytest

from holter.diagnosis.rules.reset_optimizer_state import reset_optimizer_state
from holter.record import Run, Series
from holter.record.findings import Clear, Confidence, Finding, Normal, NotExamined
from holter.record.signals import LOSS, OPTIMIZER_AGE, WEIGHT_REWRITTEN_FRACTION
from synthetic import found, run_of, said, series


def given(age: list[float] | Series, losses: np.ndarray | None = None) -> Run:
    signals = {OPTIMIZER_AGE: {"": age}}
    if losses is not None:
        signals[LOSS] = {"": series(losses)}
    return run_of(signals)


@pytest.mark.parametrize(
    ("rise", "confidence"), [(0.5, Confidence.CERTAIN), (0.0, Confidence.HINT)]
)
def test_re_created_each_epoch(rise: float, confidence: Confidence) -> None:
    """It is certain where the loss rises at each reset, and a hint where it falls all the same."""
    after = np.arange(96) % 16 < 4
    run = given([*range(1, 17)] * 6, np.linspace(2, 1, 96) * (1 + rise * after))
    (finding,) = found(reset_optimizer_state, run)
    assert finding.confidence is confidence
    assert finding.onset == 16
    assert "5 times, about every 16 steps" in finding.summary
    assert "16 steps of 96" in finding.summary


@pytest.mark.parametrize("written", [1.0, 0.0])
def test_weights_that_are_loaded_at_each_reset_excuse_it(written: float) -> None:
    age = [*range(1, 9)] * 12
    rewritten = [written if count == 1 else 0.0 for count in age]
    signals = {
        OPTIMIZER_AGE: {"": age},
        WEIGHT_REWRITTEN_FRACTION: {"": rewritten},
        LOSS: {"": np.linspace(2, 1, 96)},
    }
    (verdict,) = said(reset_optimizer_state, run_of(signals))
    if written:
        assert isinstance(verdict, Normal)
        assert verdict.exception == "rewritten-weights"
    else:
        assert isinstance(verdict, Finding)


def test_re_created_each_step() -> None:
    (finding,) = found(reset_optimizer_state, given([1.0] * 20))
    assert finding.onset == 1


def test_read_now_and_then() -> None:
    age = series([5.0, 9.0, 5.0, 9.0, 5.0, 9.0, 5.0], range(4, 4 + 7 * 20, 20))
    assert found(reset_optimizer_state, given(age))


@pytest.mark.parametrize(
    "age",
    [
        [*range(1, 200)],
        [*range(1, 50)] * 3,  # two more stages
        [*range(1, 100)] + [99] * 100,  # the first layer was frozen
        [*range(1, 101), *range(51, 101), *range(51, 101), *range(51, 101)],  # back to checkpoints
        [*range(5000, 5100)],  # resumed
        [1.0, np.nan, 3.0, np.nan, 5.0],
    ],
)
def test_silent(age: list[float]) -> None:
    (verdict,) = said(reset_optimizer_state, given(age))
    assert isinstance(verdict, Clear)


def test_a_frozen_layer_that_is_read_now_and_then() -> None:
    age = series([10.0, 100.0, 100.0, 100.0, 100.0, 100.0], [9, 200, 400, 600, 800, 1000])
    assert not found(reset_optimizer_state, given(age))


def test_folds_of_a_cross_validation_are_trainings_of_their_own() -> None:
    run = given([*range(1, 41)] * 5, np.tile(np.linspace(2, 0.5, 40), 5))
    (verdict,) = said(reset_optimizer_state, run)
    assert isinstance(verdict, Normal)
    assert verdict.exception == "another-training"
    assert found(reset_optimizer_state, given([*range(1, 21)] * 10, np.linspace(2, 0.5, 200)))


@pytest.mark.parametrize("rise", [1.0, 2.0])
def test_a_state_that_lasts_is_lost_without_damage_unless_the_loss_rises(rise: float) -> None:
    noise = np.random.default_rng(0).normal(0, 0.1, 300)
    loss = np.linspace(1, 0.3, 300) * np.exp(noise)
    loss[:10] *= 5
    for reset in range(50, 300, 50):
        loss[reset : reset + 4] *= rise
    (verdict,) = said(reset_optimizer_state, given([*range(1, 51)] * 6, loss))
    if rise > 1:
        assert isinstance(verdict, Finding)
        assert verdict.confidence is Confidence.CERTAIN
    else:
        assert isinstance(verdict, Normal)
        assert verdict.exception == "no-damage"


def test_the_reset_is_where_the_count_began() -> None:
    age = series([5.0, 9.0, 5.0, 9.0, 5.0, 9.0, 5.0], range(4, 4 + 7 * 20, 20))
    (finding,) = found(reset_optimizer_state, given(age))
    assert finding.onset == 40  # read at step 44, when it had seen five steps


@pytest.mark.parametrize("age", [[], [1.0]])
def test_too_short(age: list[float]) -> None:
    (verdict,) = said(reset_optimizer_state, given(age))
    assert isinstance(verdict, NotExamined)
