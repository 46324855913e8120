import numpy as np
import pytest

from holter.diagnosis.rules.doubled_softmax import doubled_softmax
from holter.record import Run
from holter.record.findings import Clear, Confidence, Normal, NotExamined
from holter.record.signals import (
    OUTPUT_LOG_NORMALISER,
    OUTPUT_LOG_PROBABILITY_FRACTION,
    OUTPUT_PROBABILITY_FRACTION,
    OUTPUT_UNITS,
)
from synthetic import found, run_of, said


def given(share: list[float], units: float = 4, **more: list[float]) -> Run:
    steps = len(share)
    return run_of(
        {
            OUTPUT_PROBABILITY_FRACTION: {"cross_entropy": share},
            OUTPUT_UNITS: {"cross_entropy": [units] * steps},
            OUTPUT_LOG_NORMALISER: {"cross_entropy": more.get("normaliser", [1.6] * steps)},
            OUTPUT_LOG_PROBABILITY_FRACTION: {"cross_entropy": more.get("logs", [0.0] * steps)},
        }
    )


def test_probabilities_are_certain_and_have_a_floor() -> None:
    (finding,) = found(doubled_softmax, given([1.0, 1.0, 0.995]))
    assert finding.confidence is Confidence.CERTAIN
    assert finding.onset == 0
    assert "0.744" in finding.summary


def test_one_of_two_heads_is_likely() -> None:
    (finding,) = found(doubled_softmax, given([0.5] * 20))
    assert finding.confidence is Confidence.LIKELY
    assert "50 %" in finding.summary


def test_reports_although_predictions_are_nonfinite_later() -> None:
    run = given([1.0] * 10 + [0.0] * 5, normaliser=[1.6] * 10 + [np.nan] * 5)
    (finding,) = found(doubled_softmax, run)
    assert finding.evidence[0].steps == (0, 9)


@pytest.mark.parametrize("share", [[0.0] * 50, [1.0] * 49 + [0.0], [0.01, 0.3] * 20])
def test_silent_on_logits(share: list[float]) -> None:
    (verdict,) = said(doubled_softmax, given(share))
    assert isinstance(verdict, Clear)


def test_silent_on_a_single_class() -> None:
    assert not found(doubled_softmax, given([1.0] * 50, units=1))


def test_logarithms_of_probabilities_are_normal() -> None:
    normal, clear = said(doubled_softmax, given([0.0] * 9, logs=[1.0] * 9))
    assert isinstance(normal, Normal)
    assert isinstance(clear, Clear)


def test_only_cross_entropy_applies_a_softmax() -> None:
    assert not said(doubled_softmax, run_of({OUTPUT_PROBABILITY_FRACTION: {"nll_loss": [1.0] * 9}}))


def test_too_short() -> None:
    (verdict,) = said(doubled_softmax, given([1.0, 1.0]))
    assert isinstance(verdict, NotExamined)


def test_nothing_finite() -> None:
    assert not said(doubled_softmax, given([0.0] * 9, normaliser=[np.nan] * 9))
