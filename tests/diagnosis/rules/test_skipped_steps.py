import numpy as np
import pytest

from holter.diagnosis.rules.skipped_steps import skipped_steps
from holter.record import Run
from holter.record.findings import Clear, Confidence, Normal, NotExamined, Severity
from holter.record.signals import AMP_SCALE, AMP_SKIPPED
from synthetic import found, run_of, said, series


def run_with(skipped: np.ndarray) -> Run:
    return run_of({AMP_SKIPPED: {"": skipped}, AMP_SCALE: {"": np.full(len(skipped), 1024.0)}})


def every(period: int, steps: int = 300) -> np.ndarray:
    return (np.arange(steps) % period == 0).astype(float)


def test_one_in_five() -> None:
    (finding,) = found(skipped_steps, run_with(every(5)))
    assert finding.confidence is Confidence.LIKELY
    assert finding.severity is Severity.WARNING
    assert "20 %" in finding.summary


def test_all() -> None:
    (finding,) = found(skipped_steps, run_with(np.ones(100)))
    assert finding.severity is Severity.ERROR
    (finding,) = found(skipped_steps, run_with(np.ones(100)), nearly_all=1.0)
    assert finding.severity is Severity.WARNING


def test_first_skips_are_noted() -> None:
    skipped = np.zeros(300)
    skipped[:6] = 1
    note, clear = said(skipped_steps, run_with(skipped))
    assert isinstance(note, Normal)
    assert "6 of 300" in note.summary
    assert isinstance(clear, Clear)


@pytest.mark.parametrize("period", [31, 11])
def test_one_after_each_growth(period: int) -> None:
    assert not found(skipped_steps, run_with(every(period)))


def test_none() -> None:
    (verdict,) = said(skipped_steps, run_with(np.zeros(100)))
    assert isinstance(verdict, Clear)


def test_read_at_some_steps_only() -> None:
    run = run_of({AMP_SKIPPED: {"": series([1.0, 0.0] * 50, range(0, 800, 8))}})
    assert found(skipped_steps, run)


def test_too_short() -> None:
    (verdict,) = said(skipped_steps, run_with(np.ones(69)))
    assert isinstance(verdict, NotExamined)
