import numpy as np
import pytest

from holter.diagnosis.rules.constant_features import constant_features
from holter.record import Run
from holter.record.findings import Clear, Finding, Normal, NotExamined, Severity
from holter.record.signals import (
    DATASET_COLUMN_CONSTANT,
    DATASET_COLUMN_VALUES,
    DATASET_COLUMN_ZEROS,
    DATASET_EXAMINED,
    Signal,
)
from synthetic import run_of, said


def table(
    columns: dict[int, float],
    *,
    count: int = 10,
    zeros: float = 0.0,
    samples: int = 500,
    usual: float = 400,
    valid: float | None = None,
) -> Run:
    """A table in which some columns always have one value."""
    values, first = np.full(count, usual), np.full(count, 0.3)
    places = list(columns)
    values[places], first[places] = 1, list(columns.values())
    share = np.full(count, zeros)
    signals: dict[Signal, dict[str, np.ndarray]] = {
        DATASET_COLUMN_VALUES: {"train": values},
        DATASET_COLUMN_CONSTANT: {"train": first},
        DATASET_COLUMN_ZEROS: {"train": share},
        DATASET_EXAMINED: {"train": np.array([samples])},
    }
    if valid is not None:
        signals[DATASET_COLUMN_VALUES]["valid"] = np.full(count, valid)
    return run_of(signals)


def test_all_vary() -> None:
    (verdict,) = said(constant_features, table({}))
    assert isinstance(verdict, Clear)


@pytest.mark.parametrize(
    ("run", "exception"),
    [
        (table({3: 1.0}), "bias-column"),
        (table({3: 0.0}, zeros=0.9), "sparse-columns"),  # words
        (table({3: 0.0}, usual=2), "sparse-columns"),  # one-hot
        (table(dict.fromkeys(range(40), 0.0), count=196), "flattened-image"),
        (table({3: 0.5}, count=784), "flattened-image"),
    ],
)
def test_constants_by_nature(run: Run, exception: str) -> None:
    (verdict,) = said(constant_features, run)
    assert isinstance(verdict, Normal)
    assert verdict.exception == exception


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (table({3: 0.37}), "column 3 is 0.37"),
        (table({3: 0.0}), "column 3 is 0 "),  # rounded away
        (table({1: 2.0, 4: 7.0}), "columns 1, 4"),
        (table({1: 1.0, 4: 1.0}), "columns 1, 4"),  # an intercept is a single one
        (table({3: 0.5}, zeros=0.9), "column 3"),  # sparse columns are 0, not 0.5
        (table(dict.fromkeys(range(4), 0.5)), "columns 0, 1, 2, 3"),  # ten columns are no image
        (table(dict.fromkeys(range(10), 0.5)), "columns 0, 1, 2, 3"),
        (table({3: 0.37}, valid=100), "in validation it varies"),
    ],
)
def test_a_column_that_tells_nothing(run: Run, words: str) -> None:
    (finding,) = said(constant_features, run)
    assert isinstance(finding, Finding)
    assert finding.severity is Severity.INFO
    assert words in finding.summary


def test_too_few_samples() -> None:
    (verdict,) = said(constant_features, table({3: 0.37}, samples=20))
    assert isinstance(verdict, NotExamined)
