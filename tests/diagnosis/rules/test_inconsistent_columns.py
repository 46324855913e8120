"""inconsistent-columns: what a column predicts in training beside validation."""

import numpy as np
import pytest

from holter.diagnosis.rules.inconsistent_columns import inconsistent_columns
from holter.record import Run
from holter.record.findings import Clear, Confidence, Finding, Normal, NotExamined
from holter.record.signals import DATASET_COLUMN_TRANSFER
from synthetic import run_of, said
from validations import validated

FALLING = 2.3 * np.exp(-np.arange(10) / 3)


def run(
    train: list[float], valid: list[float], error: float = 0.01, validation: float | None = None
) -> Run:
    """A run whose training loss ends at about 0.1, with what each column predicts."""
    columns = {
        DATASET_COLUMN_TRANSFER: {"train": train, "valid": valid, "error": [error] * len(train)}
    }
    if validation is None:
        return run_of(columns)
    return validated(FALLING, np.full(10, validation), more=columns)


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        (run([0.3, 0.1], [0.28, 0.1]), Clear),
        (run([0.3, 0.1], [0.15, 0.1]), Clear),  # half of it is left
        (run([0.3, 0.03], [0.3, -0.2]), Clear),  # too little in training
        (run([0.3], [0.0], error=0.1), Clear),  # within three standard errors
        (run([0.3, 0.1], [0.0, 0.1]), Finding),
        (run([0.3, 0.1], [-0.4, 0.1], validation=1.2), Finding),
        (run([0.3, 0.1], [-0.4, 0.1], validation=0.1), Normal),  # without damage
        (run([0.3, 0.2, 0.1], [0.0, 0.0, 0.1], validation=1.2), Clear),  # other targets
        (run_of({DATASET_COLUMN_TRANSFER: {"train": [0.5]}}), NotExamined),
    ],
)
def test_verdicts(made: Run, kind: type) -> None:
    (verdict,) = said(inconsistent_columns, made)
    assert isinstance(verdict, kind), verdict


def test_names_the_columns_and_is_likely_with_damage() -> None:
    (finding,) = said(
        inconsistent_columns, run([0.1, 0.4, 0.2, 0.2], [0.0, 0.0, 0.2, 0.2], validation=1.2)
    )
    assert isinstance(finding, Finding)
    assert finding.confidence is Confidence.LIKELY
    assert "columns 1, 0" in finding.summary
    assert "40 %" in finding.summary
