"""A scheduler is stepped before the optimizer."""

from collections.abc import Iterator

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import LR, SCHEDULE_STEPS


@rule(
    severity=Severity.WARNING,
    level=Level.PROCEDURE,
    needs=(SCHEDULE_STEPS,),
)
def scheduler_before_optimizer(facts: Facts) -> Iterator[Verdict]:
    """A scheduler is stepped before the optimizer.

    ## What it does
    Checks whether the first `step()` of a scheduler comes before the first `step()` of any
    optimizer. It ignores several calls before training, which advance a schedule on resuming, a
    first step that a GradScaler skipped, and `step(epoch)` with an explicit epoch.

    ## Why it matters
    The first value of the schedule is never used, and all later ones are one step (or epoch) early.
    For a long cosine that makes little difference; it matters for a schedule of a few values, and
    for a warm-up with a small first value.

    ## Example
    ```python
    scheduler.step(); optimizer.step()   # bad
    optimizer.step(); scheduler.step()   # good
    ```

    ## What to do
    Call `scheduler.step()` after `optimizer.step()`.

    ## When it is wrong
    A single call before training may advance the schedule on purpose.

    ## How to confirm
    - Print the learning rate at the first `optimizer.step()`: it should be the schedule's first.
    """
    if not facts.schedulers:
        yield scheduler_before_optimizer.not_examined("no scheduler was stepped")
        return
    early = next((scheduler for scheduler in facts.schedulers if scheduler.early), None)
    if early is None:
        names = ", ".join(scheduler.name for scheduler in facts.schedulers)
        yield scheduler_before_optimizer.clear(f"the optimizer was stepped before {names}")
        return
    rates = [rate for rate in facts.run[LR].values() if len(rate)] if LR in facts.run else []
    used = f"; the first update uses {float(rates[0].values[0]):.3g}" if rates else ""
    yield scheduler_before_optimizer.finding(
        f"{early} was stepped before the optimizer: the first value of the schedule is never"
        f" used{used}",
        confidence=Confidence.CERTAIN,
        onset=early.step,
        evidence=(
            Evidence(
                SCHEDULE_STEPS, (0, min(facts.run.steps, 20) - 1), "stepped before any update"
            ),
        ),
        fix="call `scheduler.step()` after `optimizer.step()`",
    )
