import numpy as np
import pytest

from holter.diagnosis.rules.targets_equal_inputs import targets_equal_inputs
from holter.record import Run
from holter.record.findings import Clear, Confidence, NotExamined
from holter.record.signals import ACCURACY, TARGET_INPUT_MATCH
from synthetic import found, run_of, said


def given(match: list[float], accuracy: float = 0.5) -> Run:
    return run_of(
        {
            TARGET_INPUT_MATCH: {"cross_entropy": match},
            ACCURACY: {"cross_entropy": [accuracy] * len(match)},
        }
    )


@pytest.mark.parametrize(
    ("match", "accuracy", "confidence"),
    [
        (1.0, 0.99, Confidence.CERTAIN),
        (1.0, 0.5, Confidence.LIKELY),  # an autoencoder would begin like that
        (0.9995, 0.99, Confidence.LIKELY),
    ],
)
def test_targets_are_the_inputs(match: float, accuracy: float, confidence: Confidence) -> None:
    (finding,) = found(targets_equal_inputs, given([match] * 50, accuracy))
    assert finding.confidence is confidence
    assert finding.evidence[0].steps == (0, 49)


@pytest.mark.parametrize(
    "match",
    [
        [0.05] * 50,
        [1.0] * 49 + [0.5],
        [0.99] * 50,  # a slow series: shifted, it equals itself almost everywhere
        [np.nan, 0.05] * 25,  # batches without a target
    ],
)
def test_silent(match: list[float]) -> None:
    (verdict,) = said(targets_equal_inputs, given(match))
    assert isinstance(verdict, Clear)


def test_nan_is_left_out() -> None:
    assert found(targets_equal_inputs, given([1.0, np.nan] * 25))
    (verdict,) = said(targets_equal_inputs, given([np.nan] * 25))
    assert isinstance(verdict, NotExamined)


def test_too_short() -> None:
    (verdict,) = said(targets_equal_inputs, given([1.0] * 4 + [np.nan]))
    assert isinstance(verdict, NotExamined)
