from typing import Any

import numpy as np
import pytest

from holter.diagnosis.rule import NO_DAMAGE
from holter.diagnosis.rules.duplicate_samples import duplicate_samples
from holter.record import Event, Run
from holter.record.events import ExperimentsChosen, SamplesFound
from holter.record.findings import Clear, Confidence, Finding, Normal, NotExamined, Severity
from holter.record.signals import (
    DATASET_CONFLICTS,
    DATASET_DIMENSIONS,
    DATASET_DISTINCT,
    DATASET_DUPLICATES,
    DATASET_EXAMINED,
    DATASET_LENGTH,
    DATASET_REPEATED,
    DATASET_VALUES,
    LOSS,
    Signal,
)
from synthetic import run_of, said


def training_set(
    copies: float = 0.0,
    repeated: float = 0.0,
    conflicts: float = 0.0,
    *,
    distinct: float = 900,
    length: int = 1000,
    values: float | None = 5000,
    dimensions: int = 1,
    loss: np.ndarray | None = None,
    asked: bool = False,
) -> Run:
    signals: dict[Signal, Any] = {
        **({} if loss is None else {LOSS: {"": loss}}),
        DATASET_EXAMINED: {"train": [1000]},
        DATASET_LENGTH: {"train": [length]},
        DATASET_DISTINCT: {"train": [distinct]},
        DATASET_DUPLICATES: {"train": [copies]},
        DATASET_REPEATED: {"train": [repeated]},
        DATASET_CONFLICTS: {"train": [conflicts]},
        DATASET_DIMENSIONS: {"train": [dimensions]},
    }
    if values is not None:
        signals[DATASET_VALUES] = {"train": [values]}
    events = [
        Event(0, 0.0, SamplesFound(what, "train", indices=([5, 99],)))
        for what in ("duplicates", "conflicts")
    ]
    if asked:
        return run_of(signals, events=[*events, Event(0, 0.0, ExperimentsChosen(("data",)))])
    return run_of(signals, events=events)


@pytest.mark.parametrize(
    "run",
    [
        training_set(),
        training_set(0.3, 0.1),  # a rare class, copied
        training_set(0.004, 0.002, 0.004),  # two pairs
    ],
)
def test_few_duplicates_are_clear(run: Run) -> None:
    (verdict,) = said(duplicate_samples, run)
    assert isinstance(verdict, Clear)


@pytest.mark.parametrize(
    ("run", "exception"),
    [
        (training_set(1.0, 1.0, 0.4, values=2, distinct=64), "few-values"),  # bits
        (training_set(1.0, 1.0, 0.4, values=None), "few-values"),  # tokens
        (training_set(1.0, 1.0, values=2, dimensions=2), "few-values"),  # boards
        (training_set(1.0, 1.0, distinct=6), "prototypes"),
    ],
)
def test_what_may_repeat(run: Run, exception: str) -> None:
    (verdict,) = said(duplicate_samples, run)
    assert isinstance(verdict, Normal)
    assert verdict.exception == exception


@pytest.mark.parametrize(
    "run",
    [
        training_set(1.0, 1.0, distinct=500),
        training_set(1.0, 1.0, distinct=500, values=200, dimensions=3),  # photographs
        training_set(0.04, 0.02, length=50_000, distinct=980),  # pairs are rarely read whole
        training_set(0.1, 0.05, 0.05),
    ],
)
def test_most_are_there_twice_or_with_two_labels(run: Run) -> None:
    (finding,) = said(duplicate_samples, run)
    assert isinstance(finding, Finding)
    assert finding.severity is Severity.INFO
    assert finding.confidence is Confidence.HINT
    assert "5 and 99" in finding.summary


def test_nothing_read() -> None:
    run = run_of({DATASET_DUPLICATES: {"train": [0.0]}})
    (verdict,) = said(duplicate_samples, run)
    assert isinstance(verdict, NotExamined)


def test_after_a_training_only_if_it_failed() -> None:
    falling = 2.0 * 0.98 ** np.arange(200)
    (note,) = said(duplicate_samples, training_set(1.0, 1.0, distinct=500, loss=falling))
    assert isinstance(note, Normal)
    assert note.exception == NO_DAMAGE
    (finding,) = said(duplicate_samples, training_set(1.0, 1.0, distinct=500, loss=falling[::-1]))
    assert isinstance(finding, Finding)
    (verdict,) = said(
        duplicate_samples, training_set(1.0, 1.0, distinct=500, loss=falling, asked=True)
    )
    assert isinstance(verdict, Finding)
