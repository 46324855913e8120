import numpy as np

from holter.diagnosis.rules.hidden_nonfinite import hidden_nonfinite
from holter.record import Run
from holter.record.findings import Clear, Confidence, NotExamined, Severity
from holter.record.signals import HIDDEN_NONFINITE
from synthetic import found, run_of, said


def run_with(counts: np.ndarray) -> Run:
    return run_of({HIDDEN_NONFINITE: {"": counts}})


def test_on_every_step() -> None:
    (finding,) = found(hidden_nonfinite, run_with(np.full(50, 3.0)))
    assert finding.confidence is Confidence.CERTAIN
    assert finding.severity is Severity.ERROR


def test_once() -> None:
    counts = np.zeros(50)
    counts[17] = 12
    (finding,) = found(hidden_nonfinite, run_with(counts))
    assert finding.severity is Severity.WARNING
    assert finding.onset == 17
    assert "12" in finding.summary


def test_more_and_more() -> None:
    counts = np.zeros(200)
    counts[[20, 110, 130, 150, 170, 190]] = 5
    (finding,) = found(hidden_nonfinite, run_with(counts))
    assert finding.severity is Severity.ERROR
    (finding,) = found(hidden_nonfinite, run_with(counts), growth=10.0)
    assert finding.severity is Severity.WARNING


def test_nothing_replaced() -> None:
    (verdict,) = said(hidden_nonfinite, run_with(np.zeros(50)))
    assert isinstance(verdict, Clear)


def test_nothing_sampled() -> None:
    (verdict,) = said(hidden_nonfinite, run_with(np.empty(0)))
    assert isinstance(verdict, NotExamined)
