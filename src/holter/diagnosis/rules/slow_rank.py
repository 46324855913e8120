"""One rank is slower than the others, which wait for it at every step."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.ranks import Ranks
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import percent
from holter.record import Run
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    TIME_BACKWARD,
    TIME_CHECKPOINT,
    TIME_DATA_WAIT,
    TIME_EVALUATION,
    TIME_FORWARD,
    TIME_OPTIMIZER,
    TIME_STEP,
    Signal,
)

_WARM_UP = 0.2  # share of the steps that is left out
# What a rank does outside of the phase in which it waits, in words and with what helps.
_PHASES: Mapping[Signal, tuple[str, str]] = {
    TIME_DATA_WAIT: (
        "waiting for its loader",
        "look at the data and the disk of that rank; more loader workers or a cache hide the wait",
    ),
    TIME_FORWARD: (
        "in its forward pass",
        "balance the work: give all ranks batches of similar size, and compare their devices",
    ),
    TIME_OPTIMIZER: ("in the update", "compare the devices and the optimizers of the ranks"),
    TIME_EVALUATION: ("in validation", "spread validation over all ranks"),
    TIME_CHECKPOINT: ("writing checkpoints", "write checkpoints asynchronously, or less often"),
}


@dataclass(frozen=True, slots=True)
class _Delay:
    """The rank that the others wait for, and how it spends the time."""

    rank: int
    wait: float  # seconds of a step that the others wait
    step: float  # seconds of a step
    last: float  # share of the steps in which it is the last to arrive
    phase: Signal  # with the largest excess over the other ranks
    excess: float  # seconds of a step


@rule(severity=Severity.WARNING, level=Level.SYSTEM, needs=(TIME_BACKWARD,), preview=True)
def slow_rank(
    facts: Facts,
    *,
    min_steps: Annotated[int, "steps read on all ranks that are needed"] = 20,
    min_wait: Annotated[float, "share of a step that the others wait"] = 0.2,
    min_last: Annotated[float, "share of the steps in which the rank arrives last"] = 0.75,
    min_share: Annotated[float, "share of the wait that one phase has to explain"] = 0.8,
) -> Iterator[Verdict]:
    """One rank is slower than the others, which wait for it at every step.

    ## What it does
    Compares the time of all ranks in the backward pass, where gradients are reduced: the rank with
    the shortest backward arrives last, and the others wait for it. It reports that rank if another
    of its phases explains most of the wait.

    ## Why it matters
    Every step takes as long as on the slowest rank, while the other devices are idle.

    ## Example
    ```python
    DataLoader(data, sampler=sampler, num_workers=0)     # bad
    DataLoader(data, sampler=sampler, num_workers=8)     # good
    ```

    ## What to do
    Fix the named phase on the named rank: a slow disk, longer samples, validation or logging on one
    rank only, a throttled or shared device.

    ## When it is wrong
    On GPUs, host timers do not see waits on the device.

    ## How to confirm
    - Swap the data of two ranks: if the other rank is slow then, the data is the cause.
    """
    ranks = facts.ranks
    if isinstance(ranks, str):
        yield slow_rank.not_examined(ranks)
        return
    if not ranks.is_wrapped or ranks.is_sharded:
        yield slow_rank.not_examined("ranks are not known to wait for each other in backward alone")
        return
    found = _delay(ranks, min_steps)
    if isinstance(found, str):
        yield slow_rank.not_examined(found)
        return
    if not found.wait:
        yield slow_rank.clear("no rank waits for another in backward")
        return
    measured = f"others wait {percent(found.wait / found.step)} of a step for rank {found.rank}"
    if found.wait < min_wait * found.step or found.last < min_last:
        yield slow_rank.clear(measured)
        return
    if found.excess < min_share * found.wait:
        yield slow_rank.normal(f"{measured}; no phase of its step explains {percent(min_share)}")
        return
    doing, fix = _PHASES[found.phase]
    run = next(rank.run for rank in ranks.members if rank.number == found.rank)
    yield slow_rank.finding(
        f"{measured} ({1e3 * found.wait:.3g} ms of {1e3 * found.step:.3g} ms): it spends"
        f" {1e3 * found.excess:.3g} ms more {doing} than they do",
        confidence=Confidence.LIKELY,
        onset=0,
        evidence=(
            Evidence(
                TIME_BACKWARD,
                (0, max(run.steps - 1, 0)),
                f"shortest on rank {found.rank} in {percent(found.last)} of the steps",
            ),
        ),
        fix=fix,
    )


def _delay(ranks: Ranks, min_steps: int) -> _Delay | str:
    """Return who is waited for, or why that is unknown."""
    runs = [rank.run for rank in ranks.members]
    steps = None
    for run in runs:
        if TIME_BACKWARD not in run or TIME_STEP not in run:
            return "a rank recorded no times"
        read = np.intersect1d(run[TIME_BACKWARD][""].steps, run[TIME_STEP][""].steps)
        steps = read if steps is None else np.intersect1d(steps, read)
    assert steps is not None
    steps = steps[int(_WARM_UP * len(steps)) :]
    if len(steps) < min_steps or len(runs) < 2:
        return f"{len(steps)} of the {min_steps} steps needed were read on all ranks"
    inside = np.stack([_seconds(run, TIME_BACKWARD, steps) for run in runs])
    slow = int(np.median(inside, axis=1).argmin())
    others = [place for place in range(len(runs)) if place != slow]
    wait = -_beyond(inside, slow, others)
    excess: dict[Signal, float] = {}
    for phase in _PHASES:
        spent = np.stack([_seconds(run, phase, steps) for run in runs])
        excess[phase] = _beyond(spent, slow, others)
    most = max(excess, key=lambda phase: excess[phase])
    length = float(np.median(_seconds(runs[slow], TIME_STEP, steps)))
    last = float((inside.argmin(axis=0) == slow).mean())
    return _Delay(ranks.members[slow].number, max(wait, 0.0), length, last, most, excess[most])


def _beyond(seconds: npt.NDArray[np.float64], one: int, others: list[int]) -> float:
    """Return how much longer one rank takes than the others, at the median step."""
    return float(np.median(seconds[one] - np.median(seconds[others], axis=0)))


def _seconds(run: Run, signal: Signal, steps: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return the time of a phase at some steps, over all loaders; 0 where it did not occur."""
    total = np.zeros(len(steps))
    for series in run[signal].values() if signal in run else ():
        _, here, there = np.intersect1d(steps, series.steps, return_indices=True)
        total[here] += np.nan_to_num(series.values[there].astype(np.float64))
    return total
