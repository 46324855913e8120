"""A scheduler is stepped before the optimizer."""

from collections.abc import Iterator

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.events import Resumed
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
    Looks at whether a scheduler's first `step()` came before the first `step()` of any optimizer.
    A first step that the GradScaler skipped is no fault: the script did call it.

    ## Why it matters
    The first value of the schedule is never used, and every later one comes a step (or an epoch)
    early. It is harmless with a long cosine, and not with a schedule of a few values, or with a
    warm-up whose first value was meant to be small.

    ## What to do
    Call `scheduler.step()` after `optimizer.step()`.

    ## When it is wrong
    A call before training that moves a schedule on purpose, as some scripts do to continue it.

    ## How to confirm
    - Print the learning rate at the first `optimizer.step()`: it should be the schedule's first.
    """
    known = facts.schedulers
    if not known:
        yield scheduler_before_optimizer.not_examined("no scheduler was seen to begin")
        return
    early = [each for each in known if each.early]
    skipped = facts.skipped_steps
    if early and len(skipped) and skipped[0] == 0:
        yield scheduler_before_optimizer.normal(
            "the GradScaler skipped the first step, so torch may warn that a scheduler was stepped"
            " before the optimizer: it was not"
        )
        early = []
    if not early:
        yield scheduler_before_optimizer.clear(
            f"the optimizer stepped before {', '.join(each.name for each in known)}"
        )
        return
    resumed = any(event.step <= early[0].step for event in facts.run.events_of(Resumed))
    if resumed:
        yield scheduler_before_optimizer.not_examined("the run was resumed: steps came before it")
        return
    rate = next(iter(facts.run[LR].items()), None) if LR in facts.run else None
    used = (
        f"; the first update was made at {float(rate[1].values[0]):.3g}"
        if rate is not None and len(rate[1])
        else ""
    )
    yield scheduler_before_optimizer.finding(
        f"{early[0]} was stepped before the optimizer: the first value of the schedule is never"
        f" used{used}",
        confidence=Confidence.CERTAIN,
        onset=early[0].step,
        evidence=(
            Evidence(
                SCHEDULE_STEPS, (0, min(facts.run.steps, 20) - 1), "stepped before any update"
            ),
        ),
        fix="call scheduler.step() after optimizer.step()",
    )
