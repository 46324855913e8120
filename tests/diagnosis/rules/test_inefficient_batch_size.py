import numpy as np

from holter.diagnosis.rules.inefficient_batch_size import inefficient_batch_size
from holter.record import Run
from holter.record.findings import Clear, Confidence, NotExamined, Severity
from holter.record.signals import BATCH_NOISE_SCALE, BATCH_SIZE
from synthetic import found, run_of, said, series


def run_with(batch: float, *intervals: tuple[float, float, float]) -> Run:
    steps = [100 * number for number in range(len(intervals))]
    ends = zip(("lower", "estimate", "upper"), zip(*intervals, strict=True), strict=True)
    scale = {trial: series(values, steps) for trial, values in ends}
    return run_of({BATCH_SIZE: {"": [batch]}, BATCH_NOISE_SCALE: scale})


def test_far_above_at_every_time() -> None:
    (finding,) = found(inefficient_batch_size, run_with(4096, (10, 20, 40), (50, 80, 120)))
    assert finding.severity is Severity.INFO
    assert finding.confidence is Confidence.HINT
    assert "128" in finding.fix


def test_a_scale_that_has_grown_by_then_is_clear() -> None:
    (verdict,) = said(inefficient_batch_size, run_with(4096, (10, 20, 40), (500, 800, 1200)))
    assert isinstance(verdict, Clear)


def test_within_a_factor_of_ten_is_clear() -> None:
    (verdict,) = said(inefficient_batch_size, run_with(300, (30, 40, 50)))
    assert isinstance(verdict, Clear)


def test_small_batches_are_clear_however_uncertain() -> None:
    (verdict,) = said(inefficient_batch_size, run_with(32, (400, 900, np.inf)))
    assert isinstance(verdict, Clear)
    assert "over 400" in verdict.because


def test_too_wide_an_interval_says_nothing() -> None:
    (verdict,) = said(inefficient_batch_size, run_with(4096, (10, 900, np.inf)))
    assert isinstance(verdict, NotExamined)
