"""GPU memory is fragmented, and allocations fail until the cache is emptied."""

from collections.abc import Iterator
from typing import Annotated

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.fragmentation import Fragmentation, fragmentation
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import percent, size
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import MEMORY_PEAK, MEMORY_RESERVED, MEMORY_RETRIES

_MANY = 8  # sizes of inputs from which on they vary


@rule(
    severity=Severity.WARNING,
    level=Level.SYSTEM,
    needs=(MEMORY_RETRIES, MEMORY_RESERVED, MEMORY_PEAK),
    preview=True,
)
def fragmented_memory(
    facts: Facts,
    *,
    min_unused: Annotated[float, "share of reserved GPU memory that no tensor ever used"] = 0.2,
    min_retries: Annotated[int, "allocations that had to be retried after warm-up"] = 3,
) -> Iterator[Verdict]:
    """GPU memory is fragmented, and allocations fail until the cache is emptied.

    ## What it does
    Compares the memory reserved by torch's allocator with the peak memory in tensors, and counts
    allocations that succeeded only after the allocator had released its cached memory.

    ## Why it matters
    Before such a retry the GPU has to finish all queued work, and memory is then requested again
    from the driver, which may take longer than a step. Eventually an out-of-memory error follows
    although enough memory is unused.

    ## Example
    ```python
    batch = pad_sequence(rows)  # as long as the longest row of this batch  # bad
    batch = padded(rows, multiple=128)  # a few lengths in the whole run  # good
    ```

    ## What to do
    Set `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`. Pad batches to a few lengths, and train
    on the longest batch first: its blocks fit all others.

    ## When it is wrong
    If a script evaluates with a different batch size, the peak may be in the evaluation, and
    retries at its start are rare and cheap.

    ## How to confirm
    - Train with `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`, and compare the retries and the
      time of a step.
    """
    memory = fragmentation(facts.run)
    if isinstance(memory, str):
        yield fragmented_memory.not_examined(memory)
        return
    held = f"{size(memory.reserved)} reserved for at most {size(memory.peak)} in tensors"
    if memory.unused < min_unused:
        retried = f", {memory.retries} retries" if memory.retries else ""
        yield fragmented_memory.clear(f"{held}{retried}")
    elif memory.retries < min_retries:
        yield fragmented_memory.harmless(f"{held}, and {memory.retries} allocations were retried")
    else:
        yield _finding(memory, held)


def _finding(memory: Fragmentation, held: str) -> Verdict:
    span = (memory.first, memory.last)
    vary = memory.sizes >= _MANY
    sizes = f"; the inputs had {memory.sizes} different sizes" if vary else ""
    pad = ". Pad batches to a few lengths, and train on the longest first" if vary else ""
    return fragmented_memory.finding(
        f"{memory.retries} allocations in {memory.last - memory.first} steps failed until the cache"
        f" of the GPU allocator was emptied, with {percent(memory.unused)} of its memory in no"
        f" tensor ({held}){sizes}",
        confidence=Confidence.LIKELY,
        onset=memory.onset,
        evidence=(
            Evidence(MEMORY_RETRIES, span, f"{memory.retries} more"),
            Evidence(MEMORY_RESERVED, span, f"{size(memory.reserved)} at most"),
            Evidence(MEMORY_PEAK, span, size(memory.peak)),
        ),
        fix=f"set `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True` in the environment{pad}",
    )
