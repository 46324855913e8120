"""Interruptions such as checkpoints take a large share of the time."""

from collections.abc import Iterator
from typing import Annotated

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.time import Breakdown, Slow
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import duration, percent
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import TIME_STEP

_WORTH_A_NOTE = 0.1  # share of the run
_FIXES = {
    "checkpoint": "save less often, or only what is needed to resume (weights, optimizer,"
    " scheduler, step), and write in a thread: `torch.distributed.checkpoint.async_save(...)`",
    "garbage collection": "keep fewer Python objects, or collect by hand: `gc.disable()` before"
    " the loop and `gc.collect()` once an epoch",
    "compilation": "avoid new shapes: pad batches to a few sizes, or `torch.compile(model,"
    " dynamic=True)`",
}


@rule(severity=Severity.WARNING, level=Level.SYSTEM, needs=(TIME_STEP,), preview=True)
def slow_steps(
    facts: Facts,
    *,
    min_share: Annotated[float, "share of the run that interruptions take"] = 0.3,
    min_lost: Annotated[float, "seconds that they take"] = 1.0,
    min_count: Annotated[int, "interruptions"] = 5,
) -> Iterator[Verdict]:
    """Interruptions such as checkpoints take a large share of the time.

    ## What it does
    Looks at steps that take more than four times the median, and at where the time goes:
    evaluation, `torch.save`, garbage collection, compilation, or waiting for data. Checkpoints,
    garbage collections and compilations that take a large share of the run are reported; evaluation
    and the rest are noted.

    ## Why it matters
    No training happens during that time. It is easy to miss, because most steps are fast.

    ## Example
    ```python
    if step % 5 == 0: torch.save(everything, path)  # bad
    if step % 5000 == 0: torch.save(everything, path)  # good
    ```

    ## What to do
    Save less often, or in the background. Avoid shapes that change at every step where the model is
    compiled. Keep large Python structures out of the process that trains.

    ## When it is wrong
    In short runs the first compilation takes most of the time; a long run has it once.

    ## How to confirm
    - Disable the interruption for a few hundred steps, and compare the time.
    """
    times = facts.time
    if isinstance(times, str):
        yield slow_steps.not_examined(times)
        return
    reported = False
    for slow in times.slow:
        share = slow.excess / times.total
        known = slow.cause in _FIXES
        if slow.excess < min_lost or share < _WORTH_A_NOTE:
            continue
        if known and share >= min_share and len(slow.steps) >= min_count:
            reported = True
            yield _finding(times, slow, share)
        else:
            yield slow_steps.normal(_note(times, slow, share))
    if not reported:
        count = sum(len(slow.steps) for slow in times.slow)
        yield slow_steps.clear(
            f"{count} steps take more than four times the median of {duration(times.median)}"
        )


def _note(times: Breakdown, slow: Slow, share: float) -> str:
    cause = slow.cause or "something that holter does not measure"
    return (
        f"{len(slow.steps)} slow steps take {percent(share)} of the time: {cause}"
        f" ({duration(slow.excess / len(slow.steps))} each; the median step takes"
        f" {duration(times.median)})"
    )


def _finding(times: Breakdown, slow: Slow, share: float) -> Verdict:
    first, last = slow.steps[0], slow.steps[-1]
    return slow_steps.finding(
        _note(times, slow, share),
        confidence=Confidence.LIKELY,
        onset=first,
        evidence=(
            Evidence(slow.signal, (first, last), f"on {len(slow.steps)} slow steps"),
            Evidence(TIME_STEP, (first, last), f"{duration(times.median)} in the median"),
        ),
        fix=_FIXES[slow.cause],
    )
