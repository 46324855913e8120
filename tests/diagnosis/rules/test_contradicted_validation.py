import numpy as np
import pytest

from holter.diagnosis.rules.contradicted_validation import contradicted_validation
from holter.record import Run
from holter.record.findings import Clear, Confidence, Finding, NotExamined, Verdict
from holter.record.signals import (
    BASELINE_BALANCED,
    BASELINE_CHANCE,
    BASELINE_ROWS,
    BASELINE_SCORE,
    LOSS,
    VAL_ACCURACY,
    VAL_LOSS,
)
from synthetic import run_of, said, series

STEPS = 200


def validated(script: float, afterwards: float, *, rows: int = 400, last: int = STEPS - 1) -> Run:
    """A run whose script validates with one accuracy, and holter with another."""
    passes = [49, 99, 149, last]
    return run_of(
        {
            LOSS: {"": np.geomspace(0.7, 0.05, STEPS)},
            VAL_LOSS: {"cross_entropy": series([0.9] * 4, passes)},
            VAL_ACCURACY: {"cross_entropy": series([script] * 4, passes)},
            BASELINE_ROWS: {"train": [1000], "valid": [rows]},
            BASELINE_SCORE: {"network": [afterwards], "constant": [0.5], "linear": [0.8]},
            BASELINE_BALANCED: {"network": [afterwards], "constant": [0.5], "linear": [0.8]},
            BASELINE_CHANCE: {"linear": [-1.0]},
        }
    )


def verdict_of(run: Run) -> Verdict:
    (verdict,) = said(contradicted_validation, run)
    return verdict


@pytest.mark.parametrize(
    ("script", "confidence"), [(0.47, Confidence.LIKELY), (0.78, Confidence.HINT)]
)
def test_the_script_sees_less_than_the_weights_can_do(
    script: float, confidence: Confidence
) -> None:
    verdict = verdict_of(validated(script, 0.98))
    assert isinstance(verdict, Finding)
    assert verdict.confidence is confidence


@pytest.mark.parametrize(("script", "afterwards"), [(0.97, 0.98), (0.85, 0.98), (0.98, 0.6)])
def test_both_agree_or_the_script_sees_more(script: float, afterwards: float) -> None:
    assert isinstance(verdict_of(validated(script, afterwards)), Clear)


def test_few_rows_or_weights_that_changed_since_tell_nothing() -> None:
    assert isinstance(verdict_of(validated(0.5, 0.98, rows=60)), NotExamined)
    assert isinstance(verdict_of(validated(0.5, 0.98, last=180)), NotExamined)
