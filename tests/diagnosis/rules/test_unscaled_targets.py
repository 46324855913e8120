import numpy as np
import pytest

from holter.diagnosis.rule import NO_DAMAGE
from holter.diagnosis.rules.unscaled_targets import unscaled_targets
from holter.record import Run
from holter.record.findings import Clear, Confidence, Normal, NotExamined
from holter.record.signals import OUTPUT_SIZE, TARGET_MEAN, TARGET_STD
from layered import STEPS, broken, falling, flat, layered
from synthetic import found, said


def given(loss: np.ndarray, *, mean: float, std: float, sizes: np.ndarray | float = 0.1) -> Run:
    readings = {
        TARGET_MEAN: {"mse_loss": mean},
        TARGET_STD: {"mse_loss": std},
        OUTPUT_SIZE: {"mse_loss": sizes},
    }
    return layered(loss, readings)


def slow(steps: int = STEPS) -> np.ndarray:
    """The loss of outputs that slowly approach targets of 3e5."""
    return (3e5 - np.linspace(0, 6e3, steps)) ** 2 + 1e9


def test_outputs_never_get_there() -> None:
    run = given(slow(), mean=3e5, std=3e4, sizes=np.linspace(0.1, 6e3, STEPS))
    (finding,) = found(unscaled_targets, run)
    assert finding.confidence is Confidence.LIKELY
    assert "3e+05" in finding.summary
    assert [each.signal for each in finding.evidence][:2] == [TARGET_STD, OUTPUT_SIZE]


def test_outputs_of_the_right_size_make_a_hint() -> None:
    """Targets that are hard to predict: the loss is 1 % under the variance, and stays there."""
    loss = 3600 * (0.985 + 0.1 * np.exp(-np.arange(STEPS) / 20))
    run = given(loss, mean=0, std=60, sizes=np.linspace(0.1, 12, STEPS))
    (finding,) = found(unscaled_targets, run)
    assert finding.confidence is Confidence.HINT


@pytest.mark.parametrize("loss", [broken(), np.linspace(1e4, 1e5, STEPS)])
def test_the_loss_rises_or_is_not_finite(loss: np.ndarray) -> None:
    assert found(unscaled_targets, given(loss, mean=0, std=500))


@pytest.mark.parametrize(
    "run",
    [
        given(flat(), mean=0, std=1, sizes=0.0),  # a zero head
        given(flat(), mean=20, std=20),
        given(falling(start=1e4, end=10), mean=0, std=100, sizes=30.0),
        given(falling(start=1e4, end=5e3), mean=0, std=100, sizes=20.0),  # a weak signal
    ],
)
def test_silent(run: Run) -> None:
    (verdict,) = said(unscaled_targets, run)
    assert isinstance(verdict, Clear)


def test_a_loss_that_falls_is_harmless() -> None:
    sizes = np.linspace(0.1, 40, STEPS)
    (note,) = said(
        unscaled_targets, given(falling(start=1700, end=30), mean=40, std=12, sizes=sizes)
    )
    assert isinstance(note, Normal)
    assert note.exception == NO_DAMAGE


def test_nan_is_left_out() -> None:
    sizes = np.where(np.arange(STEPS) % 2, np.nan, np.linspace(0.1, 6e3, STEPS))
    assert found(unscaled_targets, given(slow(), mean=3e5, std=3e4, sizes=sizes))
    assert not found(unscaled_targets, given(slow(), mean=np.nan, std=np.nan, sizes=sizes))


@pytest.mark.parametrize(
    "loss",
    [slow(9), slow(60), np.array([1.0, -1.0] * 50)],  # too short twice; a loss without a floor
)
def test_not_examined(loss: np.ndarray) -> None:
    (verdict,) = said(unscaled_targets, given(loss, mean=3e5, std=3e4))
    assert isinstance(verdict, NotExamined)


def test_targets_that_grow_were_not_unscaled() -> None:
    """The targets of a teacher that diverges are large in the end only."""
    growing = np.r_[np.full(STEPS // 2, 1.0), np.geomspace(1, 1e5, STEPS - STEPS // 2)]
    readings = {
        TARGET_MEAN: {"mse_loss": 0.0},
        TARGET_STD: {"mse_loss": growing},
        OUTPUT_SIZE: {"mse_loss": 0.1},
    }
    (verdict,) = said(unscaled_targets, layered(growing, readings))
    assert isinstance(verdict, Clear)
