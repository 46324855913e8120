"""Synchronising calls make host and GPU wait for each other at every step."""

from collections.abc import Iterator
from typing import Annotated

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import duration
from holter.record.events import DeviceRead
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import SYNC_CALLS, TIME_STEP, TIME_SYNC

_LINES = 3  # that are named


@rule(severity=Severity.WARNING, level=Level.SYSTEM, needs=(TIME_STEP, TIME_SYNC), preview=True)
def synchronising_calls(
    facts: Facts,
    *,
    min_gain: Annotated[float, "share of the step that could be saved"] = 0.15,
    min_calls: Annotated[float, "such calls in a step"] = 1.0,
) -> Iterator[Verdict]:
    """Synchronising calls make host and GPU wait for each other at every step.

    ## What it does
    Counts calls such as `item()` and `cpu()` on tensors of a GPU, and measures how long they wait.
    If the rest of the host's step takes as long, host and GPU take turns instead of working in
    parallel.

    ## Why it matters
    The host launches GPU work ahead of time. After a synchronising call the queue is empty, and the
    GPU is idle until the host has caught up.

    ## Example
    ```python
    total += loss.item()  # bad
    total += loss.detach()  # good
    ```

    ## What to do
    Keep values on the GPU and read them every hundred steps: `total += loss.detach()`. Replace
    `if loss > x:` by `torch.where`. Copy with `non_blocking=True` from pinned memory.

    ## When it is wrong
    Calls inside compiled code are not seen. If the algorithm needs the value at every step, as in
    reinforcement learning, the wait cannot be avoided.

    ## How to confirm
    - Remove the named lines, and compare the step time.
    """
    times = facts.time
    if isinstance(times, str):
        yield synchronising_calls.not_examined(times)
        return
    calls, seconds = times.sync_calls or 0.0, times.sync or 0.0
    measured = f"{calls:.3g} calls in a step wait {duration(seconds)} for the GPU"
    if times.sync_gain < min_gain or calls < min_calls:
        yield synchronising_calls.clear(f"{measured}, of {duration(times.step)}")
        return
    reads = [event.what for event in facts.run.events_of(DeviceRead)]
    lines = ", ".join(f"{read.where} ({read.call})" for read in reads[:_LINES])
    span = (times.first, times.last)
    yield synchronising_calls.finding(
        f"{measured} ({lines or 'lines unknown'}); without them a step of {duration(times.step)}"
        f" would take {duration(times.step * (1 - times.sync_gain))}",
        confidence=Confidence.LIKELY,
        onset=times.first,
        evidence=(
            Evidence(SYNC_CALLS, span, f"{calls:.3g} in a step"),
            Evidence(TIME_SYNC, span, f"{duration(seconds)} in a step"),
        ),
        fix="keep values on the GPU and read them every hundred steps: `total += loss.detach()`"
        " in place of `loss.item()`",
    )
