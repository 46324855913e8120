"""worst-checkpoint: restored weights beside the metrics of the evaluation that they are of."""

import numpy as np
import pytest

from holter.diagnosis.rules.worst_checkpoint import worst_checkpoint
from holter.record import Event, Run
from holter.record.events import FigurePrinted, StateLoaded
from holter.record.findings import Clear, Finding, NotExamined
from holter.record.signals import LOSS
from synthetic import run_of, said

STEPS = (9, 19, 29, 39, 49)
ERRORS = (0.9, 0.6, 0.5, 0.4, 0.42)


def run(of_step: int | None, at: int = 49, **figures: tuple[float, ...]) -> Run:
    """A run of 50 steps in which weights are loaded after one of them."""
    events = [Event(at, 0.0, StateLoaded("Net 0", 4, 0, 0, where="train.py:9", of_step=of_step))]
    for name, values in figures.items():
        events.append(Event(49, 0.0, FigurePrinted(name, STEPS[: len(values)], values)))
    return run_of({LOSS: {"": np.linspace(1, 0.1, 50)}}, events=events)


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        (run(9, val_mae=ERRORS), Finding),
        (run(39, val_mae=ERRORS), Clear),
        (run(19, val_mae=ERRORS), Clear),  # not the best, and not the worst
        (run(9, val_acc=(0.3, 0.6, 0.7, 0.8, 0.8)), Finding),
        (run(49, val_acc=(0.3, 0.6, 0.7, 0.8, 0.9)), Clear),
        (run(9, val_mae=ERRORS, val_recall=(0.9, 0.5, 0.4, 0.4, 0.4)), Clear),  # by another metric
        (run(9, at=20, val_mae=ERRORS), NotExamined),  # training goes on
        (run(None, val_mae=ERRORS), NotExamined),
        (run(9, val_mae=ERRORS[:3]), NotExamined),
        (run(9, train_mae=ERRORS), NotExamined),
        (run(9, val_acc=(0.8, 0.81, 0.8, 0.82, 0.81)), NotExamined),  # hardly different
    ],
)
def test_verdicts(made: Run, kind: type) -> None:
    (verdict,) = said(worst_checkpoint, made)
    assert isinstance(verdict, kind), verdict


def test_names_both_evaluations() -> None:
    (finding,) = said(worst_checkpoint, run(9, val_mae=ERRORS))
    assert isinstance(finding, Finding)
    assert "after step 9" in finding.summary
    assert "after step 39" in finding.summary
