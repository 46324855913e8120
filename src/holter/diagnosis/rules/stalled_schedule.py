"""A schedule made for steps is stepped once per epoch."""

from collections.abc import Iterator

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.schedule import (
    Laps,
    Pace,
    Rate,
    Scheduler,
)
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import of
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import LR, SCHEDULE_STEPS

_SLOW = 0.5  # calls per step from which on a scheduler is stepped with the batches
_EQUAL = 0.1  # a horizon that is the number of steps but for this share was counted in steps
_FEWEST_CALLS = 3


@rule(
    severity=Severity.WARNING,
    level=Level.PROCEDURE,
    needs=(LR, SCHEDULE_STEPS),
)
def stalled_schedule(facts: Facts, *, min_ratio: float = 5.0) -> Iterator[Verdict]:
    """A schedule made for steps is stepped once per epoch.

    ## What it does
    Looks at finished runs whose schedulers are stepped about once per epoch, three times at least.
    The schedule is stalled where it stretches over `min_ratio` times as many calls as it got, and
    either its learning rate still rises when the run ends, so that training never left the
    warm-up, or its length is the number of the run's steps. A warm-up whose length is not known is
    a hint if it lasts to the end, and likely stalled if the first epoch passed at a rate of 0.

    ## Why it matters
    The learning rate hardly moves: it stays at a fraction of what was set, or never comes down.
    The loss falls all the same, only slower and less far than it should.

    ## What to do
    Move `scheduler.step()` into the loop over batches, right after `optimizer.step()`; or give the
    schedule its length in epochs.

    ## When it is wrong
    A run that was ended far before its schedule, by early stopping or to try things out, if it has
    as many steps as the schedule has epochs.

    ## How to confirm
    - Print the learning rate at the end of each epoch, beside the calls and the scheduler's length.
    - Repeat some epochs with `scheduler.step()` after each batch.
    """
    known, often, epochs = facts.rates, facts.scheduler_pace, facts.epochs
    if often is None or not known:
        yield stalled_schedule.not_examined("no scheduler was seen to be stepped")
        return
    if often.per_step > _SLOW:
        yield stalled_schedule.clear(f"schedulers are stepped {often.per_step:.2g} times a step")
        return
    status = facts.run.meta.status
    if status in ("interrupted", "failed", "running"):
        yield stalled_schedule.not_examined(f"the run is {status}: its schedule had more to come")
        return
    if epochs is None or often.calls < _FEWEST_CALLS:
        yield stalled_schedule.not_examined(
            f"{often.calls:.0f} calls of schedulers, at least {_FEWEST_CALLS} are needed"
            if epochs is not None
            else "neither a loader nor regular validations tell what an epoch is"
        )
        return
    if not 0.5 <= often.calls / epochs.count <= 2:
        yield stalled_schedule.clear(
            f"schedulers are stepped about {often.calls:.0f} times in {epochs.count} {epochs.kind}"
        )
        return
    found = [*_findings(facts, known, often, epochs, min_ratio)]
    yield from found
    if not found:
        spans = ", ".join(str(each) for each in facts.schedulers) or "schedulers"
        yield stalled_schedule.clear(
            f"{spans}: stepped about {often.calls:.0f} times in {facts.run.steps} steps, the"
            " learning"
            f" rate went from {known[0].values[0]:.3g} to {known[0].values[-1]:.3g}"
        )


def _findings(
    facts: Facts, known: list[Rate], often: Pace, epochs: Laps, min_ratio: float
) -> Iterator[Verdict]:
    last_lap = facts.run.steps - 1.5 * epochs.length
    rising = next((rate for rate in known if rate.rises_until(int(last_lap))), None)
    slow = [
        each
        for each in facts.schedulers
        if each.horizon is not None and each.horizon >= min_ratio * max(often.calls, 1)
    ]
    counted = [
        each for each in slow if each.horizon and abs(each.horizon / facts.run.steps - 1) <= _EQUAL
    ]
    if rising is not None and slow:
        # of a plain warm-up, a length in epochs beyond the whole run makes no sense
        meant = counted or [each for each in slow if (each.horizon or 0) <= 2 * facts.run.steps]
        if meant:
            yield _finding(facts, rising, often, epochs, meant[0])
    elif rising is not None and all(each.horizon is None for each in facts.schedulers):
        yield _finding(facts, rising, often, epochs, None)
    elif counted:
        yield _finding(facts, known[0], often, epochs, counted[0])


def _first_lap_at_zero(rate: Rate, epochs: Laps) -> bool:
    first = rate.values[rate.steps < 0.9 * epochs.length]
    return len(first) > 1 and not first.any()


def _finding(
    facts: Facts, rate: Rate, often: Pace, epochs: Laps, scheduler: Scheduler | None
) -> Verdict:
    last = facts.run.steps - 1
    who = str(scheduler) if scheduler is not None else "a schedule that warms up"
    went = f"from {rate.values[0]:.3g} to {rate.values[-1]:.3g}"
    rises = rate.values[-1] > 1.5 * rate.values[0]
    state = "is still warming up" if rises else "has not come down"
    # the length and the calls agree, or a whole epoch was spent at 0
    sure = scheduler is not None or _first_lap_at_zero(rate, epochs)
    return stalled_schedule.finding(
        f"the learning rate{of(rate.optimizer)} {state} when the run ends, {went} in"
        f" {facts.run.steps}"
        f" steps: {who} is stepped about {often.calls:.0f} times, in {epochs.count} {epochs.kind}",
        confidence=Confidence.LIKELY if sure else Confidence.HINT,
        onset=min(int(epochs.length), last),
        evidence=(
            Evidence(LR, (0, last), went, rate.group),
            Evidence(SCHEDULE_STEPS, (0, last), f"about {often.calls:.0f} calls in all"),
        ),
        fix="call scheduler.step() after every optimizer.step(), or count the schedule in epochs",
    )
