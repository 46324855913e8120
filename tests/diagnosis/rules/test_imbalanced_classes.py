from typing import Any

import numpy as np
import pytest

from holter.diagnosis.rule import NO_DAMAGE
from holter.diagnosis.rules.imbalanced_classes import imbalanced_classes
from holter.record import Event, Run
from holter.record.events import ExperimentsChosen
from holter.record.findings import Clear, Confidence, Finding, Normal, NotExamined, Severity
from holter.record.signals import (
    DATASET_CLASS,
    DATASET_CLASS_COUNT,
    DATASET_CLASS_WEIGHTS,
    LOSS,
    Signal,
)
from synthetic import run_of, said


def counted(
    *counts: float, weighted: bool = False, loss: np.ndarray | None = None, asked: bool = False
) -> Run:
    signals: dict[Signal, Any] = {
        **({} if loss is None else {LOSS: {"": loss}}),
        DATASET_CLASS: {"train": [float(each) for each in range(len(counts))]},
        DATASET_CLASS_COUNT: {"train": list(counts)},
        DATASET_CLASS_WEIGHTS: {"train": [float(weighted)]},
    }
    return run_of(signals, events=[Event(0, 0.0, ExperimentsChosen(("data",)))] if asked else [])


@pytest.mark.parametrize(
    ("run", "kind"),
    [
        (counted(500, 500), Clear),
        (counted(700, 290, 10), Clear),
        (counted(900, 100), Normal),
        (counted(1000), Normal),  # a placeholder for labels
        (counted(60, 1), NotExamined),
    ],
)
def test_no_fault(run: Run, kind: type) -> None:
    (verdict,) = said(imbalanced_classes, run)
    assert isinstance(verdict, kind)


def test_weighted_classes() -> None:
    (note,) = said(imbalanced_classes, counted(990, 10, weighted=True))
    assert isinstance(note, Normal)
    assert note.exception == "weighted-classes"


def test_nearly_all_of_one_class() -> None:
    (finding,) = said(imbalanced_classes, counted(10, 980, 10))
    assert isinstance(finding, Finding)
    assert finding.severity is Severity.INFO
    assert finding.confidence is Confidence.HINT
    assert "980 of 1000 training samples belong to class 1" in finding.summary


def test_after_a_training_only_if_it_failed() -> None:
    falling = 2.0 * 0.98 ** np.arange(200)
    (note,) = said(imbalanced_classes, counted(990, 10, loss=falling))
    assert isinstance(note, Normal)
    assert note.exception == NO_DAMAGE
    (finding,) = said(imbalanced_classes, counted(990, 10, loss=falling[::-1]))
    assert isinstance(finding, Finding)
    (verdict,) = said(imbalanced_classes, counted(990, 10, loss=falling, asked=True))
    assert isinstance(verdict, Finding)
