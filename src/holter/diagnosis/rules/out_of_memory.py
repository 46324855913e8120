"""The training ran out of memory."""

from collections.abc import Iterator
from typing import Annotated

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import percent, size
from holter.record.events import MemoryExhausted
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import MEMORY_ALLOCATED, MEMORY_PROCESS

_SHOWN = 4  # holders


@rule(severity=Severity.ERROR, level=Level.SYSTEM, needs=())
def out_of_memory(
    facts: Facts,
    *,
    min_fragmented: Annotated[float, "share of reserved GPU memory in no tensor"] = 0.2,
) -> Iterator[Verdict]:
    """The training ran out of memory.

    ## What it does
    Reports the allocation that failed and ended the training: the line, the requested size, and the
    largest memory holders at that time.

    ## Why it matters
    The run has ended.

    ## Example
    ```python
    distances = (x[:, None] - x[None]).pow(2).sum(-1)  # of 100,000 rows  # bad
    distances = torch.cdist(x, x[:1000])  # good
    ```

    ## What to do
    If one allocation is far larger than the others, look at its line: it may be an unintended
    broadcast. Otherwise use smaller batches with gradient accumulation, `torch.autocast`,
    `torch.utils.checkpoint`, or an optimizer with less state.

    ## When it is wrong
    Another process may have used the memory: see `nvidia-smi`.

    ## How to confirm
    - `holter try batch-size train.py` finds the largest batch that fits.
    """
    exhausted = facts.run.events_of(MemoryExhausted)
    if not exhausted:
        yield out_of_memory.clear("no allocation failed")
        return
    event = exhausted[-1]
    what = event.what
    gpu = what.device == "cuda"
    asked = f" when {size(what.requested)} were requested" if what.requested else ""
    holders = ", ".join(
        f"{name} {size(held)}"
        for name, held in list(zip(what.holders, what.sizes, strict=True))[:_SHOWN]
    )
    yield out_of_memory.finding(
        f"{'the GPU' if gpu else 'the host'} ran out of memory at step {event.step}"
        + (f" in {what.where}" if what.where else "")
        + asked
        + (f"; largest: {holders}" if holders else ""),
        confidence=Confidence.CERTAIN,
        onset=event.step,
        evidence=(
            Evidence(
                MEMORY_ALLOCATED if gpu else MEMORY_PROCESS,
                (0, event.step),
                f"holders: {holders or 'unknown'}",
            ),
        ),
        fix=_fix(what, min_fragmented),
    )


def _fix(what: MemoryExhausted, min_fragmented: float) -> str:
    if what.reserved and what.allocated is not None:
        unused = (what.reserved - what.allocated) / what.reserved
        if unused >= min_fragmented:
            return (
                f"{percent(unused)} of the reserved memory is in no tensor: it is fragmented. Set"
                " `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`, and pad batches to a few"
                " sizes"
            )
    largest = what.sizes[0] if what.sizes else 0
    if what.requested and what.requested > 4 * max(largest, 1):
        return (
            f"look at the shapes in {what.where or 'that line'}: this tensor is"
            f" {what.requested / max(largest, 1):.2g} times as large as any other; process it in"
            " chunks, or use an operation that does not build it, such as `torch.cdist`"
        )
    return (
        "use smaller batches with gradient accumulation, `torch.autocast` or"
        " `torch.utils.checkpoint`; `holter try batch-size` finds the largest batch that fits"
    )
