"""imbalance-collapse: accuracy at the share of the most frequent class, balanced at chance."""

import numpy as np
import pytest

from holter.diagnosis.rules.imbalance_collapse import imbalance_collapse
from holter.record import Event, Run
from holter.record.events import ClassCount, ClassCounts, PassMeasured
from holter.record.findings import Clear, Finding, Normal, NotExamined
from holter.record.signals import LOSS, VAL_BALANCED_ACCURACY, VAL_LOSS
from synthetic import run_of, said, series

OWNER = "cross_entropy on val_loader"


def run(*classes: ClassCount, step: int = 99, owner: str = OWNER) -> Run:
    present = [one for one in classes if one.support]
    recall = float(np.mean([one.right / one.support for one in present]))
    targets = sum(one.support for one in classes)
    counts = ClassCounts(
        number=len(classes),
        present=len(present),
        right=sum(one.right for one in classes),
        largest=max(one.support for one in classes),
        recall=recall,
        each=tuple(one for one in classes if one.support or one.predicted),
    )
    return run_of(
        {
            LOSS: {"": np.ones(100)},
            VAL_LOSS: {owner: series([0.3], [step])},
            VAL_BALANCED_ACCURACY: {owner: series([recall], [step])},
        },
        events=[Event(step, 0.0, PassMeasured(owner, targets, classes=counts))],
    )


COLLAPSED = (ClassCount(0, 900, 1000, 900, 0.11), ClassCount(1, 100, 0, 0, 2.3))


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        (run(*COLLAPSED), Finding),
        (run(*COLLAPSED, step=10), NotExamined),
        # the rare class is found
        (run(ClassCount(0, 900, 930, 890, 0.1), ClassCount(1, 100, 70, 60, 1.0)), Clear),
        # two equal classes: the accuracy does not look good
        (run(ClassCount(0, 500, 1000, 500, 0.7), ClassCount(1, 500, 0, 0, 0.7)), Clear),
        # too few rare targets
        (run(ClassCount(0, 100, 105, 100, 0.1), ClassCount(1, 5, 0, 0, 3.0)), NotExamined),
        # told apart, but below one half
        (run(ClassCount(0, 900, 1000, 900, 0.1), ClassCount(1, 100, 0, 0, 1.2)), Normal),
        # nearly all predictions are of a class that is rare: something else is wrong
        (run(ClassCount(0, 900, 0, 0, 0.1), ClassCount(1, 100, 1000, 100, 2.3)), Clear),
    ],
)
def test_verdicts(made: Run, kind: type) -> None:
    (verdict,) = said(imbalance_collapse, made)
    assert isinstance(verdict, kind), verdict


def test_says_both_accuracies() -> None:
    (finding,) = said(imbalance_collapse, run(*COLLAPSED))
    assert isinstance(finding, Finding)
    assert "accuracy 90 %, balanced accuracy 50 % (chance 50 %)" in finding.summary
    assert finding.onset == 99


def test_data_that_are_trained_on_are_no_validation() -> None:
    made = run(*COLLAPSED, owner="mse_loss on other")
    made_again = run_of({LOSS: {"": np.ones(100)}, VAL_BALANCED_ACCURACY: {"x": series([0.5])}})
    assert isinstance(said(imbalance_collapse, made)[0], Finding)
    assert isinstance(said(imbalance_collapse, made_again)[0], NotExamined)
