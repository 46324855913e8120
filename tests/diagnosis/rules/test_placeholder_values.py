"""placeholder-values: one value far outside the range of all others."""

import numpy as np
import pytest

from holter.diagnosis.rules.placeholder_values import placeholder_values
from holter.lab.experiments._samples.columns import placeholders
from holter.record import Run
from holter.record.findings import Clear, Finding, NotExamined
from holter.record.signals import DATASET_COLUMN_PLACEHOLDER
from synthetic import run_of, said


def run(*shares: float) -> Run:
    return run_of({DATASET_COLUMN_PLACEHOLDER: {"train": list(shares)}})


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        (run(0.0, 0.0), Clear),
        (run(0.0, 0.9), Clear),
        (run(0.0, 0.08), Finding),
        (run_of({DATASET_COLUMN_PLACEHOLDER: {"valid": [0.1]}}), NotExamined),
    ],
)
def test_verdicts(made: Run, kind: type) -> None:
    (verdict,) = said(placeholder_values, made)
    assert isinstance(verdict, kind), verdict


def test_columns_with_and_without() -> None:
    draw = np.random.default_rng(0)
    missing = draw.random(400) < 0.1
    plain = draw.lognormal(6, 0.5, 400)
    columns = [
        np.where(missing, 999999.0, plain),
        np.where(missing, -9999.0, plain),
        plain,
        np.where(missing, 0.0, plain),  # not far away
        missing.astype(float),  # two values
        draw.standard_cauchy(400),  # outliers that do not repeat
        np.where(missing, -1.0, draw.random(400)),  # as far away as the others
    ]
    found = placeholders(np.stack(columns, axis=1))
    assert found[:2].tolist() == [missing.mean()] * 2
    assert not found[2:].any()
