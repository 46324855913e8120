import numpy as np
import pytest

from holter.diagnosis.rules.dominating_feature import dominating_feature
from holter.record import Run
from holter.record.findings import Clear, Confidence, Finding, Normal
from holter.record.signals import INPUT_JOINED_RATIO, INPUT_JOINED_STD, LOSS, TARGET_ENTROPY
from synthetic import run_of, said

STEPS = 300


def joined(loss: np.ndarray, std: float, ratio: float) -> Run:
    return run_of(
        {
            LOSS: {"": loss},
            TARGET_ENTROPY: {"cross_entropy": np.full(STEPS, 0.69)},
            INPUT_JOINED_STD: {"body.0": [std] * 3},
            INPUT_JOINED_RATIO: {"body.0": [ratio] * 3},
        }
    )


FLAT, LEARNED = np.full(STEPS, 0.69), np.geomspace(0.7, 0.05, STEPS)


def test_a_feature_that_is_not_scaled_in_a_training_that_failed() -> None:
    (verdict,) = said(dominating_feature, joined(FLAT, 1200.0, 1300.0))
    assert isinstance(verdict, Finding)
    assert verdict.confidence >= Confidence.HINT
    assert "body.0" in verdict.summary


@pytest.mark.parametrize(("std", "ratio"), [(1.2, 3.0), (900.0, 4.0), (4.0, 80.0)])
def test_even_columns(std: float, ratio: float) -> None:
    (verdict,) = said(dominating_feature, joined(FLAT, std, ratio))
    assert isinstance(verdict, Clear)


def test_what_learned_has_no_damage() -> None:
    (verdict,) = said(dominating_feature, joined(LEARNED, 1200.0, 1300.0))
    assert isinstance(verdict, Normal)
