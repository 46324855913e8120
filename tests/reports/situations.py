"""Runs and checkups made by hand, one for each situation a report has to show."""

import inspect
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from holter.diagnosis.engine import Checkup
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import Rule
from holter.record import Event, Run
from holter.record.events import ExceptionRaised, Occurrence
from holter.record.findings import (
    Clear,
    Confidence,
    Evidence,
    Finding,
    Level,
    Normal,
    NotExamined,
    Severity,
)
from holter.record.meta import Environment, Git, Machine, Meta, ModelSummary
from holter.record.signals import GRAD_NORM, GRAD_TOTAL_NORM, LOSS, LR, WATCH_TIME
from synthetic import run_of

SUMMARY = (
    "12 of 14 trainable parameters get gradients but are in no optimizer:"
    " features.0.weight, features.0.bias and 10 more"
)
META = Meta(
    status="finished",
    duration=30.0,
    seed=0,
    model=(ModelSummary("model", "Net", parameters=14, trainable=14),),
    environment=Environment(
        command=("train.py", "--epochs", "3"),
        started="2026-03-01T12:00:00",
        python="3.11.9",
        versions={"holter": "0.1.0", "torch": "2.6.0"},
        machine=Machine("box"),
        git=Git("abc1234", dirty=False),
    ),
)


def _rule(
    name: str,
    *,
    level: Level = Level.PROCEDURE,
    symptom: bool = False,
    confirm: str = "- Look at it.",
) -> Rule:
    def function(run: Run) -> object:
        return iter(())

    function.__doc__ = f"""The run has {name}.

    ## What it does
    Looks for `{name}`.

    ## Why it matters
    It does.

    ## What to do
    Undo it.

    ## When it is wrong
    Never.

    ## How to confirm
    {confirm}
    """
    function.__doc__ = inspect.cleandoc(function.__doc__)
    return Rule(name, Severity.ERROR, level, (LOSS,), symptom, False, (), function)  # type: ignore[arg-type]


_RULES = (
    _rule("odd-norms", level=Level.NUMERICS),
    _rule(
        "flat-curve",
        symptom=True,
        confirm="- Train on one batch only: a model that can learn drives its loss to the floor.\n"
        "    - Repeat the run with `lr` ten times as large.",
    ),
    _rule(
        "outside-optimizer",
        confirm="- `print(len(list(model.parameters())),"
        ' sum(len(g["params"]) for g in optimizer.param_groups))`',
    ),
    _rule("tiny-rate", level=Level.HYPERPARAMETER),
    _rule("zero-gradients", level=Level.NUMERICS),
    _rule("same-batches", level=Level.DATA),
    _rule("skipped-updates", level=Level.NUMERICS),
)
RULES: Mapping[str, Rule] = {each.name: each for each in _RULES}


def explained_by(cause: str) -> frozenset[str]:
    """Every cause explains the flat curve."""
    return frozenset({"flat-curve"} if cause not in ("flat-curve", "odd-norms") else ())


FLAT = Finding(
    "flat-curve",
    Severity.ERROR,
    Confidence.LIKELY,
    Level.PROCEDURE,
    "loss 2.30 at step 0, 2.30 at step 299",
    0,
    (Evidence(LOSS, (0, 299), "median of the first 30 steps 2.303, of the last 30 2.302"),),
    "find out why the model does not learn before training on",
)
OUTSIDE = Finding(
    "outside-optimizer",
    Severity.ERROR,
    Confidence.CERTAIN,
    Level.PROCEDURE,
    SUMMARY,
    0,
    (
        Evidence(GRAD_NORM, (0, 299), "median 0.41, never applied", "features.0.weight"),
        Evidence(GRAD_NORM, (0, 299), "median 0.02, never applied", "features.0.bias"),
    ),
    "build the optimizer after the last layer was added:"
    " `torch.optim.SGD(model.parameters(), lr=0.1)`",
    explains=("flat-curve",),
)

ODD = Finding(
    "odd-norms",
    Severity.WARNING,
    Confidence.HINT,
    Level.NUMERICS,
    "gradient norm of classifier.weight is 40 times its median on 3 of 300 steps",
    17,
    (
        Evidence(
            GRAD_TOTAL_NORM,
            (17, 17),
            "norm 8.2 at step 17 against a median of 0.2 over the 100 steps before;"
            " the loss of the same step is inside its normal range",
            "a_rather_long_optimizer_name",
        ),
    ),
    "no change is needed as long as the gradients are clipped",
    preview=True,
)
RULED_OUT = (
    Clear("tiny-rate", "lr 0.1 on all 300 steps"),
    Clear("zero-gradients", "smallest total norm 0.2"),
)
UNKNOWN = (
    NotExamined("same-batches", "no loader was seen"),
    NotExamined("skipped-updates", "the training uses no GradScaler"),
)
NORMAL = (Normal("odd-norms", "pre-clip norm 11,140 on one step of 300; update unchanged"),)


def run(
    *,
    steps: int = 300,
    learned: bool = False,
    events: tuple[Event[Occurrence], ...] = (),
    **meta: Any,
) -> Run:
    if steps == 0:
        return run_of({}, events=events, meta=replace(META, **meta))
    signals = {
        LOSS: {
            "": [math.nan if n == 7 else 2.3 * (0.99**n if learned else 1) for n in range(steps)]
        },
        LR: {"": [0.1] * steps},
        WATCH_TIME: {"": [0.0007] * steps},
    }
    return run_of(signals, events=events, meta=replace(META, **meta))


_RAISED = Event(120, 0.0, ExceptionRaised("ValueError", "bad\nshape: 100%, so"))

_MADE: Mapping[str, tuple[Run, Checkup]] = {
    "known": (run(), Checkup((OUTSIDE, FLAT, ODD), NORMAL, RULED_OUT, UNKNOWN)),
    "unknown": (run(), Checkup((FLAT,), (), RULED_OUT, UNKNOWN)),
    "preview": (run(learned=True), Checkup((ODD,), (), RULED_OUT, ())),
    "nothing": (run(learned=True), Checkup((), NORMAL, (*RULED_OUT, Clear("odd-norms")), UNKNOWN)),
    "nothing-examined": (run_of({LOSS: {"": [1.0]}}), Checkup((), (), (), UNKNOWN)),
    "no-steps": (run(steps=0), Checkup((), (), (), UNKNOWN)),
    "failed": (
        run(steps=121, events=(_RAISED,), status="failed"),
        Checkup((), (), RULED_OUT, ()),
    ),
    "interrupted": (run(status="interrupted"), Checkup((FLAT,), (), (), ())),
    "running": (run(learned=True, status="running"), Checkup((), (), RULED_OUT, ())),
    "notes": (
        run(
            learned=True,
            notes=("the optimizer of model.head is built in compiled code", "no loader was seen"),
        ),
        Checkup((), (), RULED_OUT, ()),
    ),
}
SITUATIONS: Mapping[str, tuple[Run, Checkup]] = {
    name: (made, replace(checkup, outcome=Facts(made).run_outcome))
    for name, (made, checkup) in _MADE.items()
}
