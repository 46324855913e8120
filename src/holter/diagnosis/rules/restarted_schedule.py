"""After a resume the schedule begins anew."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.schedule import Rate
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import of
from holter.record.events import Resumed, SchedulerSeen
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import LR, OPTIMIZER_AGE

_RESUME = "at the resume"
_REPLAYED = 100  # steps after a resume that are compared with the first of the run
_FEWEST = 3  # of them that have to be read
_JUMP = 1.5  # factor by which a rate has to differ from that before to count
_SAME = 0.05  # share by which a rate that is repeated may be off
_NEAR = 5  # losses on each side of a resume


@rule(
    severity=Severity.WARNING,
    level=Level.PROCEDURE,
    needs=(LR,),
)
def restarted_schedule(facts: Facts) -> Iterator[Verdict]:
    """After a resume the schedule begins anew.

    ## What it does
    Compares the learning rate after each resume, over up to 100 steps, with that before it and with
    that of the first steps of the run. Where it repeats those and is off the former by half or
    more, the schedule was not restored. Within one run,
    a second scheduler of the same class is taken for a resume if the loss and the optimizer's state
    went on; that is a hint. Schedules that are made to restart (warm restarts, cyclic and one-cycle
    ones) are left out.

    ## Why it matters
    A rate that is back at its peak undoes what its decay has gained: the loss jumps and takes long
    to come back. A warm-up that is repeated wastes the steps it takes.

    ## What to do
    Save `scheduler.state_dict()` with model and optimizer, and load it after the scheduler is made;
    or make the scheduler with `last_epoch` set to the step at which training goes on.

    ## When it is wrong
    A second phase that starts on purpose from the weights of the first, with the same schedule.

    ## How to confirm
    - Print `scheduler.get_last_lr()` before the checkpoint is saved and after it is loaded.
    """
    resumes = _resumes(facts)
    if not resumes:
        yield restarted_schedule.not_examined("the run was not resumed")
        return
    if any(each.is_cyclic for each in facts.schedulers):
        yield restarted_schedule.not_examined("the scheduler is made to restart")
        return
    for rate in facts.rates:
        found = next((step for step in resumes if _restarts(facts, rate, step)), None)
        if found is None:
            pairs = ", ".join(_went(rate, step) for step in list(resumes)[-3:])
            yield restarted_schedule.clear(
                f"the learning rate{of(rate.optimizer)} went on over each resume: {pairs}"
            )
            continue
        lost = _state_lost(facts, found)
        yield restarted_schedule.finding(
            f"the learning rate{of(rate.optimizer)} goes {_went(rate, found)} {resumes[found]} at"
            f" step {found}, back to where the run began ({rate.values[0]:.3g})"
            + ("; the optimizer's state was lost as well" if lost else ""),
            confidence=Confidence.LIKELY if resumes[found] == _RESUME else Confidence.HINT,
            onset=found,
            evidence=(
                Evidence(LR, (max(found - 20, 0), found + 20), _went(rate, found), rate.group),
                *((Evidence(OPTIMIZER_AGE, (found, found + 1), "back at 1"),) if lost else ()),
            ),
            fix="save and load scheduler.state_dict() together with model and optimizer",
        )


def _resumes(facts: Facts) -> dict[int, str]:
    """The steps at which training may have been taken up again, and what says so."""
    known: set[str] = set()
    found: dict[int, str] = {}
    for event in facts.run.events:
        if isinstance(event.what, Resumed):
            found[event.step] = _RESUME
        elif isinstance(event.what, SchedulerSeen):
            name = event.what.scheduler
            if event.step > 0 and name in known:
                found.setdefault(event.step, "with a new scheduler")
            known.add(name)
    return dict(sorted(found.items()))


def _carried(facts: Facts, step: int) -> bool:
    """Whether the weights went on: the loss is nearer to where it was than to where it began."""
    loss = facts.falling_loss
    if loss is None:
        return False
    at = int(np.searchsorted(loss.steps, step))
    if min(at, len(loss) - at) < _NEAR:
        return False
    first, before, after = loss.values[:_NEAR], loss.values[:at][-_NEAR:], loss.values[at:][:_NEAR]
    now = np.median(after)
    return bool(abs(now - np.median(before)) < abs(np.median(first) - now))


def _around(rate: Rate, step: int) -> tuple[float, float] | None:
    """The rate before and after `step`."""
    before = int(np.searchsorted(rate.steps, step)) - 1
    after = int(np.searchsorted(rate.steps, step, "right"))
    if before < 0 or after >= len(rate.steps):
        return None
    return float(rate.values[before]), float(rate.values[after])


def _replays(rate: Rate, step: int) -> bool:
    """Whether the rate after `step` is what it was after the start of the run, and not before."""
    around = _around(rate, step)
    after = (rate.steps > step + 1) & (rate.steps <= step + min(step, _REPLAYED))
    steps, values = rate.steps[after], rate.values[after]
    if around is None or len(steps) < _FEWEST:
        return False
    # the step that was open at the resume may count or not
    near = np.array(
        [[rate.at(int(each) - step + off) or 0 for off in (-1, 0, 1)] for each in steps]
    )
    low, high = near.min(axis=1) * (1 - _SAME), near.max(axis=1) * (1 + _SAME)
    if not ((values >= low) & (values <= high)).all():
        return False
    ratio = np.maximum(values, 1e-3 * rate.peak) / max(around[0], 1e-3 * rate.peak)
    return bool(np.abs(np.log(ratio)).max() > np.log(_JUMP))


def _restarts(facts: Facts, rate: Rate, step: int) -> bool:
    if not _replays(rate, step):
        return False
    if _resumes(facts)[step] == _RESUME:
        return True
    # a new scheduler within a run may as well begin another training or another phase of it
    return _carried(facts, step) and not _state_lost(facts, step)


def _went(rate: Rate, step: int) -> str:
    around = _around(rate, step)
    if around is None:
        return "unread"
    return f"from {around[0]:.3g} to {around[1]:.3g}"


def _state_lost(facts: Facts, step: int) -> bool:
    if OPTIMIZER_AGE not in facts.run:
        return False
    for age in facts.run[OPTIMIZER_AGE].values():
        near = age.values[(age.steps >= step) & (age.steps <= step + 1)]
        if len(near) and near.min() <= 1:
            return True
    return False
