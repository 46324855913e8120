"""aliased-checkpoint: states that are loaded from the model's own memory."""

import numpy as np
import pytest

from holter import check, diagnose
from holter.diagnosis.rules.aliased_checkpoint import aliased_checkpoint
from holter.record import Event, Run
from holter.record.events import FigurePrinted, StateLoaded
from holter.record.findings import Clear, Confidence, Finding, NotExamined
from holter.record.signals import LOSS
from synthetic import run_of, said


def load(own: int, found: int = 4, at: int = 49, module: str = "Net 0") -> Event[StateLoaded]:
    return Event(at, 0.0, StateLoaded(module, found, 0, 0, where="train.py:9", own=own))


def run(*events: Event) -> Run:
    """A run of 50 steps."""
    return run_of({LOSS: {"": np.linspace(1, 0.1, 50)}}, events=list(events))


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        (run(load(own=4)), Finding),
        (run(load(own=4, at=20)), Finding),  # the training continues from its own weights
        (run(load(own=4, at=20), load(own=0)), Finding),
        (run(load(own=0)), Clear),
        (run(load(own=3)), Clear),  # one tensor was replaced
        (run(load(own=4, at=0)), NotExamined),
        (run(load(own=0, found=0)), NotExamined),
        (run(), NotExamined),
    ],
)
def test_verdicts(made: Run, kind: type) -> None:
    (verdict,) = said(aliased_checkpoint, made)
    assert isinstance(verdict, kind), verdict


def test_names_the_line_and_the_number_of_tensors() -> None:
    (finding,) = said(aliased_checkpoint, run(load(own=4)))
    assert isinstance(finding, Finding)
    assert finding.confidence is Confidence.CERTAIN
    assert finding.onset == 49
    assert "all 4 tensors of the state that Net loads after step 49 (train.py:9)" in finding.summary
    assert "deepcopy" in finding.fix


def test_loads_of_one_model_are_one_finding() -> None:
    loads = [load(own=4, at=step) for step in (10, 20, 30)]
    found = said(aliased_checkpoint, run(*loads, load(own=4, module="Critic 1")))
    first, second = (finding for finding in found if isinstance(finding, Finding))
    assert "after step 10" in first.summary
    assert "in 2 later loads" in first.summary
    assert "Critic" in second.summary


def test_explains_that_the_worst_weights_are_used() -> None:
    """The last evaluation is the worst one, and its weights are those that are loaded."""
    steps, errors = (9, 19, 29, 39, 49), (0.5, 0.4, 0.6, 0.8, 0.9)
    state = StateLoaded("Net 0", 4, 0, 0, where="train.py:9", of_step=49, own=4)
    figure = FigurePrinted("val mae", steps, errors)
    checkup = check(run(Event(49, 0.0, state), Event(49, 0.0, figure)))
    assert {"aliased-checkpoint", "worst-checkpoint"} <= {each.rule for each in checkup.findings}
    leading = diagnose(checkup).leading
    assert leading is not None
    assert leading.rule == "aliased-checkpoint"
