from collections.abc import Sequence

import numpy as np
import pytest

from holter.diagnosis.rules.leaking_features import leaking_features
from holter.record import Run
from holter.record.findings import Clear, Confidence, Finding, Normal, NotExamined
from holter.record.signals import (
    DATASET_CLASS_COUNT,
    DATASET_COLUMN_COPY,
    DATASET_COLUMN_ORDER,
    DATASET_COLUMN_RESIDUE,
    DATASET_COLUMN_VALUES,
    DATASET_EXAMINED,
    Signal,
)
from synthetic import run_of, said


def numbers(
    residue: Sequence[float], order: Sequence[float] | None = None, *, samples: int = 500
) -> Run:
    count = len(residue)
    return run_of(
        {
            DATASET_COLUMN_VALUES: {"train": [400.0] * count},
            DATASET_COLUMN_RESIDUE: {"train": residue},
            DATASET_COLUMN_ORDER: {"train": order or [0.1] * count},
            DATASET_EXAMINED: {"train": [samples], "valid": [200]},
        }
    )


def classes(
    copy: Sequence[float],
    counts: Sequence[float] = (250, 250),
    *,
    values: float = 400,
    order: tuple[Sequence[float], Sequence[float]] | None = None,
) -> Run:
    signals: dict[Signal, dict[str, Sequence[float]]] = {
        DATASET_COLUMN_VALUES: {
            "train": np.where(np.asarray(copy) > 0, len(counts), values).tolist()
        },
        DATASET_COLUMN_COPY: {"train": copy},
        DATASET_CLASS_COUNT: {"train": counts, "valid": counts},
        DATASET_EXAMINED: {"train": [sum(counts)], "valid": [200]},
    }
    if order is not None:
        signals[DATASET_COLUMN_ORDER] = dict(zip(("train", "valid"), order, strict=True))
    return run_of(signals)


@pytest.mark.parametrize(
    "run",
    [
        numbers([0.9, 0.4, 1.0]),
        numbers([0.9, 1e-4, 1.0]),  # it predicts well
        numbers([0.3, 0.9], [0.97, 0.1]),
        classes([0] * 5),
        classes([1, 0, 0, 0], [100, 100, 100]),  # one class is known by one column
        classes([0] * 5, order=([0.5, 0, 0, 0, 0], [0.1, 0, 0, 0, 0])),
    ],
)
def test_a_column_that_predicts_well_is_clear(run: Run) -> None:
    (verdict,) = said(leaking_features, run)
    assert isinstance(verdict, Clear)


@pytest.mark.parametrize(
    "run",
    [
        numbers([1e-14] * 10),  # windows over a ramp
        numbers([1e-14]),  # a line
        numbers([0.3], [1.0]),  # a curve
        classes([1] * 6, [50] * 6),  # one-hot alone
        classes([2, 2, 2, 0], [100, 100]),
        classes([0] * 4, order=([1.0] * 4, [1.0] * 4)),
    ],
)
def test_the_only_column_or_many_are_the_task(run: Run) -> None:
    (note,) = said(leaking_features, run)
    assert isinstance(note, Normal)
    assert note.exception == "many-columns"


@pytest.mark.parametrize(
    ("run", "confidence", "columns"),
    [
        (numbers([0.9, 0.8, 1e-13, 1.0]), Confidence.LIKELY, (2, 2)),
        (numbers([1e-13, 1.0]), Confidence.LIKELY, (0, 0)),
        (classes([0, 0, 2, 0]), Confidence.LIKELY, (2, 2)),
        (classes([0, 2, 0, 0], [50] * 10), Confidence.LIKELY, (1, 1)),
        (classes([0, 1, 1, 1, 0, 0], [50] * 3), Confidence.LIKELY, (1, 3)),
        (classes([0, 0, 2, 0], values=2), Confidence.HINT, (2, 2)),  # bits
        (classes([0] * 9 + [1] * 3, [50] * 3, values=3), Confidence.HINT, (9, 11)),  # codes
        (numbers([0.3, 0.9], [1.0, 0.1]), Confidence.HINT, (0, 0)),  # the cube of one column
        (classes([0] * 3, order=([1.0, 0, 0], [1.0, 0, 0])), Confidence.HINT, (0, 0)),
        (
            classes([0] * 3, order=([0.1, 0.9, 0.0], [0.1, 0.05, 0.0])),
            Confidence.HINT,
            (1, 1),
        ),
    ],
)
def test_a_column_that_is_the_target(
    run: Run, confidence: Confidence, columns: tuple[int, int]
) -> None:
    (finding,) = said(leaking_features, run)
    assert isinstance(finding, Finding)
    assert finding.confidence is confidence
    assert finding.evidence[0].steps == columns


@pytest.mark.parametrize(
    "run",
    [
        numbers([1e-13, 1.0], samples=50),
        classes([0, 0, 2, 0], [497, 3]),
        run_of({DATASET_COLUMN_VALUES: {"train": [400.0]}}),
    ],
)
def test_too_little(run: Run) -> None:
    (verdict,) = said(leaking_features, run)
    assert isinstance(verdict, NotExamined)
