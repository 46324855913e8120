"""Classes that are confused with each other, or numbered otherwise, by the counts of a pass."""

import numpy as np
import pytest

from holter.diagnosis.rules.indistinct_classes import indistinct_classes
from holter.diagnosis.rules.validation_mismatch import validation_mismatch
from holter.record import Event, Run
from holter.record.events import ClassCount, ClassCounts, Confusion, PassMeasured
from holter.record.findings import Clear, Confidence, NotExamined
from holter.record.signals import LOSS, VAL_BALANCED_ACCURACY, VAL_LOSS
from synthetic import found, run_of, said, series
from validations import FUNCTION, validated

STEPS = (9, 19, 29)


def run(table: list[list[int]]) -> Run:
    """A run whose last pass has these confusions: rows are targets, columns predictions."""
    signals = {
        LOSS: {"": 2.0 * 0.95 ** np.arange(30)},
        VAL_LOSS: {"cross_entropy on val": series([1.0, 0.5, 0.4], STEPS)},
        VAL_BALANCED_ACCURACY: {"cross_entropy on val": series([0.5, 0.6, 0.7], STEPS)},
    }
    what = PassMeasured("cross_entropy on val", sum(map(sum, table)), classes=counts(table))
    return run_of(signals, events=[Event(step, 0.0, what) for step in STEPS])


def counts(table: list[list[int]]) -> ClassCounts:
    made = np.array(table)
    each = tuple(
        ClassCount(n, int(row.sum()), int(made[:, n].sum()), int(row[n]), 0.5)
        for n, row in enumerate(made)
    )
    confusions = tuple(
        Confusion(a, b, int(made[a, b]))
        for a in range(len(made))
        for b in range(len(made))
        if a != b and made[a, b]
    )
    right, largest = int(made.trace()), int(made.sum(axis=1).max())
    return ClassCounts(len(made), len(made), right, largest, 0.7, each, confusions)


def test_a_pair_at_chance() -> None:
    (finding,) = found(indistinct_classes, run([[2, 38, 0], [16, 24, 0], [0, 1, 39]]))
    assert finding.confidence is Confidence.HINT
    assert "26 of 80 targets of classes 0 and 1" in finding.summary


@pytest.mark.parametrize(
    "table",
    [
        [[30, 10, 0], [9, 31, 0], [0, 0, 40]],  # similar classes
        [[20, 20, 0], [20, 20, 0], [10, 10, 20]],  # nothing is told apart well
        [[20, 10, 10], [10, 20, 10], [0, 0, 40]],  # confused with others as well
    ],
)
def test_other_confusions(table: list[list[int]]) -> None:
    (verdict,) = said(indistinct_classes, run(table))
    assert isinstance(verdict, Clear)


def test_two_classes_are_a_matter_of_the_whole_task() -> None:
    (verdict,) = said(indistinct_classes, run([[20, 20], [20, 20]]))
    assert isinstance(verdict, NotExamined)


def test_classes_that_are_numbered_otherwise_are_evidence_of_a_mismatch() -> None:
    t = np.arange(10)
    shifted = PassMeasured(FUNCTION, 120, classes=counts([[0, 40, 0], [0, 0, 40], [39, 0, 1]]))
    made = validated(
        2.3 * np.exp(-t / 3),
        2.4 + 0.2 * t,
        val_accuracy=np.zeros(10),
        accuracy=np.linspace(0.1, 0.99, 10),
        events=[Event(9, 0.0, shifted)],
    )
    (finding,) = found(validation_mismatch, made)
    assert "(0 as 1, 1 as 2" in finding.evidence[0].says
