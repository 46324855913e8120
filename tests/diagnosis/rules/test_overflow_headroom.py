import numpy as np
import pytest

from holter.diagnosis.rules.overflow_headroom import overflow_headroom
from holter.record import Run
from holter.record.findings import Clear, Confidence, Normal, NotExamined
from holter.record.signals import ACTIVATION_ABSMAX, AMP_SCALE
from synthetic import found, run_of, said

AT = np.arange(60)


def run_with(**modules: np.ndarray) -> Run:
    return run_of({ACTIVATION_ABSMAX: modules, AMP_SCALE: {"": [1024.0] * 60}})


def test_growing_towards_the_limit() -> None:
    (finding,) = found(overflow_headroom, run_with(up=1000.0 * 1.06**AT, flat=np.full(60, 5.0)))
    assert finding.confidence is Confidence.HINT
    assert "up" in finding.summary
    assert "flat" not in finding.summary


def test_near_but_calm_is_noted() -> None:
    note, clear = said(overflow_headroom, run_with(up=np.full(60, 30_000.0)))
    assert isinstance(note, Normal)
    assert isinstance(clear, Clear)


@pytest.mark.parametrize("values", [1.0 * 1.05**AT, np.full(60, 5.0)])
def test_far_from_it(values: np.ndarray) -> None:
    (verdict,) = said(overflow_headroom, run_with(up=values))
    assert isinstance(verdict, Clear)


def test_beyond_the_limit_it_is_not_float16() -> None:
    (verdict,) = said(overflow_headroom, run_with(up=20_000.0 * 1.06**AT))
    assert isinstance(verdict, NotExamined)


def test_nan_and_infinities_are_left_out() -> None:
    values = 1000.0 * 1.06**AT
    values[10], values[20] = np.nan, np.inf
    assert found(overflow_headroom, run_with(up=values))
    (verdict,) = said(overflow_headroom, run_with(up=np.full(60, np.nan)))
    assert isinstance(verdict, NotExamined)


def test_too_short() -> None:
    (verdict,) = said(overflow_headroom, run_with(up=1000.0 * 2.0 ** AT[:11]))
    assert isinstance(verdict, NotExamined)
