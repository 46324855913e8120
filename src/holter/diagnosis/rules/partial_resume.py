"""Training continues from the weights of a checkpoint, but not from its optimizer or schedule."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.curve import running_median
from holter.diagnosis.rule import exception, rule
from holter.diagnosis.wording import of, percent, portion
from holter.record.events import SchedulerSeen
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    CHECKPOINT_OPTIMIZER_STEPS,
    CHECKPOINT_RESTORED,
    CHECKPOINT_SAME_OPTIMIZER,
    CHECKPOINT_SCHEDULER_STEPS,
    CHECKPOINT_WEIGHTS,
    LOSS,
    Signal,
)

_LEVEL = 10  # losses that make a level


@dataclass(frozen=True, slots=True)
class _Resume:
    """What an optimizer's training took from a checkpoint."""

    owner: str
    step: int
    weights: float  # share that was loaded
    same: bool
    lost: tuple[str, ...]  # sentences
    evidence: tuple[Evidence, ...]

    @property
    def says(self) -> str:
        """What was not restored, in words."""
        return "; ".join(self.lost)


@exception
def other_weights(resume: _Resume) -> str | None:
    """Only some weights come from the checkpoint: a pretrained model is fine-tuned."""
    if resume.weights >= 1:
        return None
    return (
        f"{percent(resume.weights)} of the parameters come from a checkpoint with the state of an"
        " optimizer, which was not loaded"
    )


@exception
def other_settings(resume: _Resume) -> str | None:
    """The optimizer settings differ from the saved ones: a new training starts here."""
    if resume.same:
        return None
    return (
        "weights come from a checkpoint with the state of an optimizer that has other parameter"
        " groups, another initial learning rate or other hyperparameters"
    )


@rule(
    severity=Severity.WARNING,
    level=Level.PROCEDURE,
    needs=(CHECKPOINT_WEIGHTS,),
    exceptions=(other_weights, other_settings),
)
def partial_resume(
    facts: Facts,
    *,
    rise: Annotated[float, "times the first level by which the loss is said to rise"] = 1.2,
) -> Iterator[Verdict]:
    """Training continues from the weights of a checkpoint, but not from its optimizer or schedule.

    ## What it does
    Examines what `torch.load` returned before the first step. It reports if all weights come from a
    checkpoint that also holds the state of an optimizer or scheduler, the optimizer has the same
    configuration, and it starts without state or the scheduler starts at 0.

    ## Why it matters
    Adam without its moments takes steps of full length in the direction of single batches, and a
    schedule that starts again raises the learning rate to its initial value. The loss jumps, and
    the run needs many steps to recover.

    ## Example
    ```python
    model.load_state_dict(ckpt["model"])                                                 # bad
    for name, part in parts.items(): part.load_state_dict(ckpt[name])   # all of them    # good
    ```

    ## What to do
    Load every state that the checkpoint holds: model, optimizer, scheduler and loss scaler, each
    after it was created.

    ## When it is wrong
    A new training that deliberately starts from the weights of an old one with the same optimizer
    and learning rate, for example on other data.

    ## How to confirm
    - Print `len(optimizer.state)` and `scheduler.last_epoch` before the first step: both are 0 in a
      new training but not after a complete resume.
    """
    resumes = [_resume(facts, owner) for owner in facts.run[CHECKPOINT_WEIGHTS]]
    examined = [resume for resume in resumes if resume is not None]
    if not examined:
        yield partial_resume.not_examined("no trained parameter was loaded from a checkpoint")
    for resume in examined:
        if not resume.lost:
            yield partial_resume.clear(
                f"{portion(resume.weights)} of the weights{of(resume.owner)} come from a checkpoint"
                " whose states of the optimizer and schedule were restored or are empty"
            )
            continue
        excuse = partial_resume.excused(resume)
        if excuse is not None:
            yield excuse
            continue
        rose = _rise(facts, rise)
        yield partial_resume.finding(
            resume.says + ("" if rose is None else f"; {rose.says}"),
            confidence=Confidence.LIKELY,
            onset=resume.step,
            evidence=(*resume.evidence, *(() if rose is None else (rose,))),
            fix="load all states of the checkpoint:"
            ' `optimizer.load_state_dict(ckpt["optimizer"])`,'
            ' `scheduler.load_state_dict(ckpt["scheduler"])`',
        )


def _resume(facts: Facts, owner: str) -> _Resume | None:
    """Return what the training of an optimizer took from a checkpoint; None if nothing."""
    weights = _value(facts, CHECKPOINT_WEIGHTS, owner)
    if weights is None or not weights > 0:
        return None
    step = facts.run[CHECKPOINT_WEIGHTS][owner].first
    saved, schedule = (
        _value(facts, signal, owner)
        for signal in (CHECKPOINT_OPTIMIZER_STEPS, CHECKPOINT_SCHEDULER_STEPS)
    )
    lost, evidence = [], []
    if saved is not None and not _value(facts, CHECKPOINT_RESTORED, owner):
        count = f" after {saved:.0f} steps" if saved else ""
        lost.append(
            f"all weights{of(owner)} come from a checkpoint with the optimizer's state{count}, but"
            " the optimizer starts without a state"
        )
        evidence.append(
            Evidence(CHECKPOINT_RESTORED, (step, step), "no state before the first update", owner)
        )
    position = _scheduler_position(facts)
    if schedule is not None and position is not None and position <= 1 < schedule:
        lost.append(
            f"the scheduler starts at step 0, that of the checkpoint was at step {schedule:.0f}"
        )
        evidence.append(
            Evidence(CHECKPOINT_SCHEDULER_STEPS, (step, step), f"saved: {schedule:.0f}", owner)
        )
    same = bool(_value(facts, CHECKPOINT_SAME_OPTIMIZER, owner))
    return _Resume(owner, step, weights, same, tuple(lost), tuple(evidence))


def _value(facts: Facts, signal: Signal, owner: str) -> float | None:
    series = facts.run[signal].get(owner) if signal in facts.run else None
    values = [] if series is None else series.values[np.isfinite(series.values)].tolist()
    return values[0] if values else None


def _scheduler_position(facts: Facts) -> int | None:
    """Return how many calls the first scheduler had seen after its first one, or None."""
    first = next(iter(facts.run.events_of(SchedulerSeen)), None)
    return None if first is None else first.what.position


def _rise(facts: Facts, times: float) -> Evidence | None:
    """Return how the loss rose in the first half of the run, or None if it did not."""
    loss = facts.falling_loss
    if loss is None or len(loss) < 4 * _LEVEL:
        return None
    levels = running_median(np.asarray(loss.values[: len(loss) // 2], np.float64), _LEVEL)
    first, highest = float(levels[0]), float(levels.max())
    if not first > 0 or highest < times * first:
        return None
    step = int(loss.steps[int(levels.argmax()) + _LEVEL - 1])
    says = f"the loss rises from {first:.3g} to {highest:.3g} by step {step}"
    return Evidence(LOSS, (loss.first, step), says)
