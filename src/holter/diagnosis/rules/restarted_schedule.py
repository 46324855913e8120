"""The learning-rate schedule restarts after a resume."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.schedule import Rate
from holter.diagnosis.rule import exception, rule
from holter.diagnosis.wording import of
from holter.record.events import Resumed, SchedulerSeen
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import LR, OPTIMIZER_AGE

_COMPARED = 100  # steps after a resume that are compared with the first steps of the run
_FEWEST = 3  # of them that have to be recorded
_NEAR = 5  # losses on each side of a resume


@dataclass(frozen=True, slots=True)
class Resume:
    """A step at which training continues, and whether the recording says so itself."""

    step: int
    recorded: bool  # else it is inferred from a second scheduler of the same class


@exception
def cyclic_scheduler(facts: Facts, rate: Rate, resume: Resume) -> str | None:
    """A cyclic scheduler repeats its first values in every cycle."""
    name = next((scheduler.name for scheduler in facts.schedulers if scheduler.is_cyclic), None)
    if name is None:
        return None
    return f"{name} repeats its first values: {_change(rate, resume.step)} at step {resume.step}"


@exception
def another_training(facts: Facts, _: Rate, resume: Resume) -> str | None:
    """The loss is back at its initial value: the script trains another model with this schedule."""
    loss = facts.falling_loss
    if resume.recorded or loss is None:
        return None
    index = int(np.searchsorted(loss.steps, resume.step))
    if min(index, len(loss) - index) < _NEAR:
        return None
    pieces = loss.values[:_NEAR], loss.values[index - _NEAR : index], loss.values[index:][:_NEAR]
    first, before, after = (float(np.median(piece)) for piece in pieces)
    if abs(after - before) < abs(first - after):
        return None
    return (
        f"the schedule restarts at step {resume.step}, where the loss goes from {before:.3g} to"
        f" {after:.3g}; the run began at {first:.3g}"
    )


@exception
def another_phase(facts: Facts, rate: Rate, resume: Resume) -> str | None:
    """A new optimizer with its own schedule starts the next phase of the training."""
    if resume.recorded or not _state_lost(facts, resume.step):
        return None
    return f"{_change(rate, resume.step)} at step {resume.step}, with a new optimizer"


@rule(
    severity=Severity.WARNING,
    level=Level.PROCEDURE,
    needs=(LR,),
    exceptions=(cyclic_scheduler, another_training, another_phase),
)
def restarted_schedule(
    facts: Facts,
    *,
    jump: Annotated[float, "factor between the rates before and after a resume"] = 1.5,
    tolerance: Annotated[float, "relative deviation from the first rates of the run"] = 0.05,
) -> Iterator[Verdict]:
    """The learning-rate schedule restarts after a resume.

    ## What it does
    Compares the learning rate after each resume with that before it and with that of the first
    steps of the run. It reports if the rate repeats that of the first steps and is far from its
    value before the resume. A second scheduler of the same class within one run counts as a resume
    and gives a hint.

    ## Why it matters
    A rate that returns to its peak undoes the benefit of the decay: the loss jumps and takes long
    to recover. A repeated warm-up wastes its steps.

    ## Example
    ```python
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)  # bad
    torch.save({..., "scheduler": scheduler.state_dict()}, path)                          # good
    ```

    ## What to do
    Save `scheduler.state_dict()` with model and optimizer, and load it after creating the
    scheduler; or create the scheduler with `last_epoch` set to the step of the checkpoint.

    ## When it is wrong
    A second phase deliberately continues with the weights and the optimizer of the first, and with
    the same schedule.

    ## How to confirm
    - Print `scheduler.get_last_lr()` before the checkpoint is saved and after it is loaded.
    """
    resumes = _resumes(facts)
    if not resumes:
        yield restarted_schedule.not_examined("the run was not resumed")
        return
    for rate in facts.rates:
        restarts = [resume for resume in resumes if _repeats(rate, resume.step, jump, tolerance)]
        excuses = {resume: restarted_schedule.excused(facts, rate, resume) for resume in restarts}
        yield from (excuse for excuse in excuses.values() if excuse is not None)
        resume = next((resume for resume in restarts if excuses[resume] is None), None)
        if resume is not None:
            yield _finding(facts, rate, resume)
        elif not restarts:
            changes = ", ".join(_change(rate, resume.step) for resume in resumes[-3:])
            yield restarted_schedule.clear(
                f"the learning rate{of(rate.optimizer)} continues after each resume: {changes}"
            )


def _finding(facts: Facts, rate: Rate, resume: Resume) -> Verdict:
    step, change = resume.step, _change(rate, resume.step)
    lost = _state_lost(facts, step)
    evidence = [Evidence(LR, (max(step - 20, 0), step + 20), change, rate.group)]
    if lost:
        evidence.append(Evidence(OPTIMIZER_AGE, (step, step + 1), "back at 1"))
    return restarted_schedule.finding(
        f"the learning rate{of(rate.optimizer)} goes {change} at step {step},"
        f" {'after a resume' if resume.recorded else 'with a new scheduler'}: the schedule starts"
        f" again at {rate.values[0]:.3g}" + ("; the optimizer's state is also new" if lost else ""),
        confidence=Confidence.LIKELY if resume.recorded else Confidence.HINT,
        onset=step,
        evidence=evidence,
        fix="save and load `scheduler.state_dict()` together with model and optimizer",
    )


def _resumes(facts: Facts) -> list[Resume]:
    """Return where training continues, or may continue, after a checkpoint; in order of steps."""
    names: set[str] = set()
    resumes: dict[int, Resume] = {}
    for resumed in facts.run.events_of(Resumed):
        resumes[resumed.step] = Resume(resumed.step, recorded=True)
    for event in facts.run.events_of(SchedulerSeen):
        if event.step > 0 and event.what.scheduler in names:
            resumes.setdefault(event.step, Resume(event.step, recorded=False))
        names.add(event.what.scheduler)
    return sorted(resumes.values(), key=lambda resume: resume.step)


def _around(rate: Rate, step: int) -> tuple[float, float] | None:
    """Return the rate before and after `step`."""
    before = int(np.searchsorted(rate.steps, step)) - 1
    after = int(np.searchsorted(rate.steps, step, "right"))
    if before < 0 or after >= len(rate.steps):
        return None
    return float(rate.values[before]), float(rate.values[after])


def _repeats(rate: Rate, step: int, jump: float, tolerance: float) -> bool:
    """Whether the rate after `step` equals that of the first steps, and not the one before it."""
    around = _around(rate, step)
    after = (rate.steps > step + 1) & (rate.steps <= step + min(step, _COMPARED))
    steps, values = rate.steps[after], rate.values[after]
    if around is None or len(steps) < _FEWEST:
        return False
    # the step that was open at the resume may count or not
    first = np.array(
        [[rate.at(int(later) - step + shift) or 0 for shift in (-1, 0, 1)] for later in steps]
    )
    low, high = first.min(axis=1) * (1 - tolerance), first.max(axis=1) * (1 + tolerance)
    if not ((values >= low) & (values <= high)).all():
        return False
    ratio = np.maximum(values, 1e-3 * rate.peak) / max(around[0], 1e-3 * rate.peak)
    return bool(np.abs(np.log(ratio)).max() > np.log(jump))


def _change(rate: Rate, step: int) -> str:
    around = _around(rate, step)
    return "unknown" if around is None else f"from {around[0]:.3g} to {around[1]:.3g}"


def _state_lost(facts: Facts, step: int) -> bool:
    """Whether the optimizer's own count of steps restarted at `step`."""
    if OPTIMIZER_AGE not in facts.run:
        return False
    for age in facts.run[OPTIMIZER_AGE].values():
        near = age.values[(age.steps >= step) & (age.steps <= step + 1)]
        if len(near) and near.min() <= 1:
            return True
    return False
