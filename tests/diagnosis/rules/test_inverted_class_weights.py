import pytest

from holter.diagnosis.rules.inverted_class_weights import inverted_class_weights
from holter.record import Run
from holter.record.findings import Clear, NotExamined
from holter.record.signals import (
    TARGET_LARGEST_CLASS_FRACTION,
    TARGET_WEIGHT_AWAY,
    TARGET_WEIGHT_SLOPE,
)
from synthetic import found, run_of, said

BINARY = "binary_cross_entropy_with_logits"


def weighted(slope: float, largest: float, away: float | None) -> Run:
    signals = {
        TARGET_WEIGHT_SLOPE: {BINARY: [slope] * 3},
        TARGET_LARGEST_CLASS_FRACTION: {BINARY: [largest] * 3},
    }
    if away is not None:
        signals[TARGET_WEIGHT_AWAY] = {BINARY: [away] * 3}
    return run_of(signals)


@pytest.mark.parametrize(
    ("slope", "largest", "away"),
    [
        (1.0, 0.95, None),
        (1.0, 0.9, 1.0),
        (0.7, 0.8, 0.8),
        (1.05, 0.65, 1.0),  # little imbalance, but just the inverse
    ],
)
def test_weights_that_add_to_the_imbalance(slope: float, largest: float, away: float) -> None:
    (finding,) = found(inverted_class_weights, weighted(slope, largest, away))
    assert "negatives / positives" in finding.fix


@pytest.mark.parametrize(
    ("slope", "largest", "away"),
    [
        (-1.0, 0.9, 0.0),
        (0.0, 0.9, 0.0),  # all ones
        (0.8, 0.9, 0.4),  # one label of several
        (0.75, 0.65, 1.0),  # a false alarm costs a little more than a miss
        (1.0, 0.55, 1.0),
    ],
)
def test_stays_silent(slope: float, largest: float, away: float) -> None:
    (verdict,) = said(inverted_class_weights, weighted(slope, largest, away))
    assert isinstance(verdict, Clear)


def test_targets_of_one_class_say_nothing() -> None:
    (verdict,) = said(inverted_class_weights, weighted(float("nan"), 1.0, float("nan")))
    assert isinstance(verdict, NotExamined)
