import numpy as np
import pytest

from holter.diagnosis.rule import NO_DAMAGE
from holter.diagnosis.rules.empty_targets import empty_targets
from holter.record import Run, Series
from holter.record.findings import Clear, Confidence, Normal
from holter.record.signals import LOSS, TARGET_IGNORED_FRACTION
from synthetic import found, run_of, said, series


def given(ignored: list[float] | Series, losses: list[float] | Series) -> Run:
    return run_of({TARGET_IGNORED_FRACTION: {"cross_entropy": ignored}, LOSS: {"": losses}})


def test_the_loss_stays_nonfinite() -> None:
    run = given([0.2] * 10 + [1.0] + [0.2] * 9, [1.0] * 10 + [np.nan] * 10)
    (finding,) = found(empty_targets, run)
    assert finding.confidence is Confidence.CERTAIN
    assert finding.onset == 10


def test_the_loss_becomes_finite_again() -> None:
    run = given([0.2, 1.0, 0.2, 1.0], [1.0, np.nan, 1.0, np.nan])
    (finding,) = found(empty_targets, run)
    assert finding.onset == 1


def test_the_first_step_of_all() -> None:
    (finding,) = found(empty_targets, given([1.0, 0.2], [np.nan, np.nan]))
    assert finding.onset == 0


def test_losses_are_read_on_some_steps() -> None:
    run = given([0.2] * 10 + [1.0] + [0.2] * 9, series([1.0, 1.0, np.nan], [0, 8, 16]))
    (finding,) = found(empty_targets, run)
    assert finding.onset == 10


def test_the_first_empty_batch_was_not_sampled() -> None:
    run = given(series([0.2, 1.0, 0.2], [0, 12, 16]), [1.0] * 10 + [np.nan] * 10)
    (finding,) = found(empty_targets, run)
    assert finding.confidence is Confidence.LIKELY
    assert finding.onset == 10


@pytest.mark.parametrize(
    "losses",
    [
        [1.0] * 20,  # the sum is divided by max(count, 1)
        [1.0] * 5 + [np.nan] * 15,  # not finite before
    ],
)
def test_harmless(losses: list[float]) -> None:
    (note,) = said(empty_targets, given([0.2] * 10 + [1.0] + [0.2] * 9, losses))
    assert isinstance(note, Normal)
    assert note.exception == NO_DAMAGE


def test_no_batch_is_empty() -> None:
    (verdict,) = said(empty_targets, given([0.0, 0.99, np.nan], [np.nan] * 3))
    assert isinstance(verdict, Clear)
    assert "99 %" in verdict.because


def test_nothing_read() -> None:
    assert not said(empty_targets, given([], [1.0]))
