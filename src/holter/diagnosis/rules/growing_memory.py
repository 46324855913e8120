"""Memory grows with every step."""

from collections.abc import Iterator
from typing import Annotated

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.memory import (
    Keeper,
    MemoryGrowth,
    growth,
    input_growth,
    memory_keepers,
)
from holter.diagnosis.rule import exception, rule
from holter.diagnosis.wording import size
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    MEMORY_ALLOCATED,
    MEMORY_HELD,
    MEMORY_PROCESS,
    MEMORY_WORKERS,
    Signal,
)

_OF = {
    MEMORY_PROCESS: "memory of the process",
    MEMORY_WORKERS: "memory of the loader workers",
    MEMORY_ALLOCATED: "GPU memory",
}
_LARGER = 1.3  # times, from which on a step works on more than before
_EXPLAINED = 0.5  # share of the growth that a variable has to hold


@exception
def larger_batches(facts: Facts, growing: MemoryGrowth) -> str | None:
    """The steps process more data, such as longer sequences, and need more memory."""
    larger = input_growth(facts.run, growing)
    if larger < _LARGER:
        return None
    return (
        f"memory grows by {size(growing.total)}, and the inputs of the model become {larger:.2g}"
        " times as large"
    )


@rule(
    severity=Severity.WARNING,
    level=Level.PROCEDURE,
    needs=(MEMORY_PROCESS,),
    exceptions=(larger_batches,),
    preview=True,
)
def growing_memory(
    facts: Facts,
    *,
    min_growth: Annotated[float, "bytes by which memory grows"] = 64 * 2**20,
    min_share: Annotated[float, "the same as a share of the memory at the beginning"] = 0.1,
) -> Iterator[Verdict]:
    """Memory grows with every step.

    ## What it does
    Reads the private memory of the process, of its loader workers and of the GPU at the same point
    of steps, and estimates the slope after warm-up. Growth in every part of the run is reported; a
    cache that fills up is not. Lists and dicts of tensors or arrays that grow in the training loop
    are named with their line.

    ## Why it matters
    The run ends when memory runs out, often after hours. On a shared machine, other jobs fail as
    well.

    ## Example
    ```python
    history.append(features)  # bad
    history.append(features.mean().item())  # good
    ```

    ## What to do
    Keep numbers instead of tensors, and only as many as you need: `collections.deque(maxlen=100)`.
    In a data set, do not append to anything in `__getitem__`; store samples in arrays instead of
    lists.

    ## When it is wrong
    A cache that takes longer to fill than the run lasts; within the first pass over the data a
    finding is a hint. Copy-on-write pages of forked workers are not counted.

    ## How to confirm
    - Run with twice as many steps: a leak doubles the growth.
    - `tracemalloc` lists the lines that allocate Python objects.
    """
    reported = False
    for signal, name in _OF.items():
        growing = growth(facts, signal)
        if isinstance(growing, str):
            if signal is MEMORY_PROCESS:
                yield growing_memory.not_examined(growing)
                return
            continue
        large = growing.total >= max(min_growth, min_share * growing.begin)
        if not growing.is_steady or not large:
            continue
        excuse = growing_memory.excused(facts, growing)
        reported = True
        yield excuse if excuse is not None else _finding(facts, signal, name, growing)
    if not reported:
        growing = growth(facts, MEMORY_PROCESS)
        assert not isinstance(growing, str)
        yield growing_memory.clear(
            f"the process grows by {size(max(growing.total, 0.0))} in"
            f" {growing.last - growing.first} steps"
        )


def _finding(facts: Facts, signal: Signal, name: str, growing: MemoryGrowth) -> Verdict:
    keeper = _keeper(facts, signal, growing)
    steps = (growing.first, growing.last)
    evidence = [Evidence(signal, steps, f"{size(growing.begin)} to begin with")]
    held = ""
    if keeper is not None:
        where = f" ({keeper.where})" if keeper.where else ""
        held = f"; `{keeper.variable}`{where} holds {size(keeper.most)}"
        says = f"{size(keeper.most)}" + (f": `{keeper.code}`" if keeper.code else "")
        seen = (keeper.first, keeper.last)
        evidence.append(Evidence(MEMORY_HELD, seen, says, keeper.variable))
    repeated = growing.passes is not None and growing.passes > 0
    return growing_memory.finding(
        f"the {name} grows by {size(growing.slope)} per step, {size(growing.total)} over"
        f" {growing.last - growing.first} steps{held}",
        confidence=Confidence.LIKELY if repeated or keeper is not None else Confidence.HINT,
        onset=growing.first,
        evidence=evidence,
        fix=_fix(signal, keeper),
    )


def _keeper(facts: Facts, signal: Signal, growing: MemoryGrowth) -> Keeper | None:
    """Return the variable that holds most of the growth."""
    if signal is MEMORY_WORKERS:
        return None
    for keeper in memory_keepers(facts.run):
        if keeper.per_step >= _EXPLAINED * growing.slope:
            return keeper
    return None


def _fix(signal: Signal, keeper: Keeper | None) -> str:
    if keeper is not None:
        return (
            f"keep numbers instead of tensors in `{keeper.variable}`, or only the last ones:"
            f" `{keeper.variable} = collections.deque(maxlen=100)`"
        )
    if signal is MEMORY_WORKERS:
        return (
            "do not append to anything in `__getitem__` of the data set, and store samples in"
            " arrays instead of lists; restarting the workers at every pass"
            " (`persistent_workers=False`) frees the memory"
        )
    return (
        "look for growing lists, dicts and caches, and for tensors stored with their graph: store"
        " `.detach()` or `.item()` values"
    )
