"""A schedule configured in steps is stepped once per epoch."""

from collections.abc import Iterator
from typing import Annotated

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.schedule import Epochs, Pace, Rate, Scheduler, call_intervals
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import of
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import LR, SCHEDULE_STEPS


@rule(
    severity=Severity.WARNING,
    level=Level.PROCEDURE,
    needs=(LR, SCHEDULE_STEPS),
)
def stalled_schedule(
    facts: Facts,
    *,
    min_ratio: Annotated[float, "length of the schedule over the calls it got"] = 5.0,
    tolerance: Annotated[float, "deviation of its length from the steps of the run"] = 0.1,
    min_calls: Annotated[int, "calls of the scheduler needed"] = 3,
) -> Iterator[Verdict]:
    """A schedule configured in steps is stepped once per epoch.

    ## What it does
    Looks at finished runs whose schedulers are stepped about once per epoch, or at a regular
    interval if epochs are unknown. It reports a schedule that is many times longer than its number
    of calls, if its learning rate is still rising at the end of the run or if its length is the
    number of steps. A warm-up of unknown length that lasts to the end is a hint, and likely if the
    rate is 0 for the whole first epoch.

    ## Why it matters
    The learning rate hardly changes: it stays at a fraction of its target, or never decays. The
    loss falls more slowly and less far than it could.

    ## Example
    ```python
    for epoch in range(epochs): train_epoch(); one_cycle.step()   # bad
    for batch in loader: train_batch(batch); one_cycle.step()     # good
    ```

    ## What to do
    Move `scheduler.step()` into the loop over batches, right after `optimizer.step()`; or set the
    length of the schedule in epochs.

    ## When it is wrong
    A run that ends long before its schedule, by early stopping or as a trial, and happens to have
    as many steps as the schedule has epochs.

    ## How to confirm
    - Print the learning rate at the end of each epoch, with the scheduler's calls and length.
    - Repeat some epochs with `scheduler.step()` after each batch.
    """
    pace, epochs = facts.scheduler_pace, facts.epochs or call_intervals(facts)
    if pace is None or not facts.rates:
        yield stalled_schedule.not_examined("no scheduler was stepped")
        return
    if pace.per_step > 0.5:
        yield stalled_schedule.clear(f"schedulers are stepped {pace.per_step:.2g} times per step")
        return
    status = facts.run.meta.status
    if status in ("interrupted", "failed", "running"):
        yield stalled_schedule.not_examined(f"the run is {status}: its schedule has not ended")
        return
    if epochs is None or pace.calls < min_calls:
        yield stalled_schedule.not_examined(
            f"{pace.calls:.0f} of the {min_calls} calls of schedulers needed"
            if epochs is not None
            else "the epoch length is unknown: no loader, validation or regular scheduler calls"
        )
        return
    if not 0.5 <= pace.calls / epochs.count <= 2:
        yield stalled_schedule.clear(
            f"schedulers are stepped about {pace.calls:.0f} times in {epochs.count} {epochs.kind}"
        )
        return
    finding = _finding(facts, pace, epochs, min_ratio, tolerance)
    if finding is not None:
        yield finding
        return
    names = ", ".join(map(str, facts.schedulers)) or "schedulers"
    first, last = facts.rates[0].values[[0, -1]]
    yield stalled_schedule.clear(
        f"{names}: stepped about {pace.calls:.0f} times in {facts.run.steps} steps; the learning"
        f" rate went from {first:.3g} to {last:.3g}"
    )


def _finding(
    facts: Facts, pace: Pace, epochs: Epochs, min_ratio: float, tolerance: float
) -> Verdict | None:
    steps = facts.run.steps
    before_last_epoch = int(steps - 1.5 * epochs.length)
    rising = next((rate for rate in facts.rates if rate.rises_until(before_last_epoch)), None)
    too_long = {
        scheduler: scheduler.horizon
        for scheduler in facts.schedulers
        if scheduler.horizon is not None and scheduler.horizon >= min_ratio * max(pace.calls, 1)
    }
    counted = [name for name, calls in too_long.items() if abs(calls / steps - 1) <= tolerance]
    if rising is not None and too_long:
        # a warm-up that is longer than the run, in whatever unit, may be meant for a longer one
        fitting = counted or [name for name, calls in too_long.items() if calls <= 2 * steps]
        scheduler = next(iter(fitting or too_long))
        return _report(facts, rising, pace, epochs, scheduler, sure=bool(fitting))
    if rising is not None and all(scheduler.horizon is None for scheduler in facts.schedulers):
        sure = _first_epoch_at_zero(rising, epochs)
        return _report(facts, rising, pace, epochs, None, sure=sure)
    if counted:
        return _report(facts, facts.rates[0], pace, epochs, counted[0], sure=True)
    return None


def _first_epoch_at_zero(rate: Rate, epochs: Epochs) -> bool:
    first = rate.values[rate.steps < 0.9 * epochs.length]
    return len(first) > 1 and not first.any()


def _report(
    facts: Facts,
    rate: Rate,
    pace: Pace,
    epochs: Epochs,
    scheduler: Scheduler | None,
    *,
    sure: bool,
) -> Verdict:
    last = facts.run.steps - 1
    subject = "the scheduler" if scheduler is None else str(scheduler)
    change = f"from {rate.values[0]:.3g} to {rate.values[-1]:.3g}"
    rises = rate.values[-1] > 1.5 * rate.values[0]
    state = "still rises" if rises else "has not decayed"
    return stalled_schedule.finding(
        f"the learning rate{of(rate.optimizer)} {state} at the end of the run, {change} in"
        f" {facts.run.steps} steps: {subject} is stepped about {pace.calls:.0f} times, in"
        f" {epochs.count} {epochs.kind}",
        confidence=Confidence.LIKELY if sure else Confidence.HINT,
        onset=min(int(epochs.length), last),
        evidence=(
            Evidence(LR, (0, last), change, rate.group),
            Evidence(SCHEDULE_STEPS, (0, last), f"about {pace.calls:.0f} calls"),
        ),
        fix="call `scheduler.step()` after every `optimizer.step()`, or set its length in epochs",
    )
