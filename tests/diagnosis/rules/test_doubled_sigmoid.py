import numpy as np
import pytest

from holter.diagnosis.rules.doubled_sigmoid import doubled_sigmoid
from holter.record import Run
from holter.record.findings import Clear, Confidence, NotExamined
from holter.record.signals import OUTPUT_MAX, OUTPUT_MIN, OUTPUT_SIZE, TARGET_LARGEST_CLASS_FRACTION
from synthetic import found, run_of, said

LOSS_FUNCTION = "binary_cross_entropy_with_logits"


def given(low: list[float], high: list[float], *, first: float = 0.5, largest: float = 0.6) -> Run:
    return run_of(
        {
            OUTPUT_MIN: {LOSS_FUNCTION: low},
            OUTPUT_MAX: {LOSS_FUNCTION: high},
            OUTPUT_SIZE: {LOSS_FUNCTION: [first] * len(low)},
            TARGET_LARGEST_CLASS_FRACTION: {LOSS_FUNCTION: [largest] * len(low)},
        }
    )


@pytest.mark.parametrize(
    ("steps", "confidence"), [(20, Confidence.LIKELY), (50, Confidence.CERTAIN)]
)
def test_outputs_press_on_the_bounds(steps: int, confidence: Confidence) -> None:
    (finding,) = found(doubled_sigmoid, given([0.001] * steps, [0.9] * steps))
    assert finding.confidence is confidence
    assert "0.001 to 0.9" in finding.summary


@pytest.mark.parametrize("distance", [0.1, 0.01])
def test_a_model_that_has_not_come_far_is_a_hint(distance: float) -> None:
    run = given([0.5 - distance] * 60, [0.5 + distance] * 60)
    (finding,) = found(doubled_sigmoid, run)
    assert finding.confidence is Confidence.HINT


def test_nan_is_left_out() -> None:
    run = given([0.001] * 60 + [np.nan] * 9, [0.99] * 60 + [np.nan] * 9)
    assert found(doubled_sigmoid, run)


@pytest.mark.parametrize(
    ("low", "high", "first"),
    [
        ([-3.0] * 80, [2.0] * 80, 0.5),
        ([0.1] * 79 + [-0.1], [0.9] * 80, 0.5),
        ([0.02] * 80, [0.04] * 80, 0.03),  # a deep network that barely moves
        ([0.0] * 80, [0.0] * 80, 0.0),  # a head of zeros
        ([0.1] * 80, [0.5] * 80, 0.1),  # logits of a weak signal with 60 % of one label
    ],
)
def test_silent_on_logits(low: list[float], high: list[float], first: float) -> None:
    (verdict,) = said(doubled_sigmoid, given(low, high, first=first))
    assert isinstance(verdict, Clear)


def test_labels_of_one_kind_tell_nothing() -> None:
    (verdict,) = said(doubled_sigmoid, given([0.001] * 80, [0.99] * 80, largest=1.0))
    assert isinstance(verdict, NotExamined)


@pytest.mark.parametrize(("low", "high"), [([0.001] * 19, [0.99] * 19), ([0.3] * 49, [0.7] * 49)])
def test_too_short(low: list[float], high: list[float]) -> None:
    (verdict,) = said(doubled_sigmoid, given(low, high))
    assert isinstance(verdict, NotExamined)


def test_other_losses_are_meant_for_probabilities() -> None:
    run = run_of(
        {
            OUTPUT_MIN: {"binary_cross_entropy": [0.001] * 80},
            OUTPUT_MAX: {"binary_cross_entropy": [0.99] * 80},
        }
    )
    assert not said(doubled_sigmoid, run)
