"""Steps wait for the data loader for a large share of their time."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.time import Breakdown, loaders
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import duration, percent
from holter.record import Run
from holter.record.events import LoaderSeen
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import THROUGHPUT_STEP_TIME, TIME_DATA_WAIT, TIME_STEP

_MOST_WORKERS = 8  # that are advised
_WORTH_A_NOTE = 0.1  # share of the time


@rule(
    severity=Severity.WARNING, level=Level.SYSTEM, needs=(TIME_STEP, TIME_DATA_WAIT), preview=True
)
def input_bound(
    facts: Facts,
    *,
    min_share: Annotated[float, "share of the step spent waiting"] = 0.4,
    min_wait: Annotated[float, "seconds of waiting in a step"] = 0.005,
    min_lost: Annotated[float, "seconds of waiting in the run"] = 1.0,
) -> Iterator[Verdict]:
    """Steps wait for the data loader for a large share of their time.

    ## What it does
    Compares the time the loop waits for batches with the total step time, excluding holter's own.
    After two passes over the data only the second half of the run counts, so that a cache that
    fills in the first epoch is not reported. The wait for the first batch of a pass, when workers
    start, is reported separately.

    ## Why it matters
    While the loop waits, nothing is computed. Worker processes can overlap loading with
    computation; the run is then faster with the same result.

    ## Example
    ```python
    loader = DataLoader(images, batch_size=64)  # bad
    loader = DataLoader(images, batch_size=64, num_workers=4, pin_memory=True)  # good
    ```

    ## What to do
    Set `num_workers`, and `pin_memory=True` for a GPU. If there are workers already, use more, up
    to the number of cores, then reduce the cost per sample: decode and resize once and cache the
    result, store fewer and larger files, move augmentation to the GPU.

    ## When it is wrong
    Workers and training compete for the same cores: with as many workers as cores and no GPU, the
    finding is a hint of severity info. Shared storage may be slow only temporarily.

    ## How to confirm
    - `holter try throughput train.py` trains on one cached batch, and tries several numbers of
      workers.
    """
    times = facts.time
    if isinstance(times, str):
        yield input_bound.not_examined(times)
        return
    share, lost = times.share(times.wait), times.wait * times.count
    measured = f"{duration(times.wait)} of a step of {duration(times.step)} ({percent(share)})"
    if share < min_share or times.wait < min_wait or lost < min_lost:
        yield from _pass_starts(facts.run, times)
        yield input_bound.clear(f"waits for batches take {measured}")
        return
    tried = _cached_batch(facts.run)
    if tried is not None and tried < 1 + min_share / 4:
        yield input_bound.clear(f"training on one cached batch is only {tried:.2f} times as fast")
        return
    slowest, series = max(
        facts.run[TIME_DATA_WAIT].items(), key=lambda item: float(item[1].values.sum())
    )
    loader = loaders(facts.run).get(slowest, LoaderSeen(slowest))
    cores = facts.run.meta.environment.machine.cores
    # Without a GPU, loading and computing take turns on the cores: no fault of the script.
    is_crowded = times.idle is None and cores is not None and loader.workers >= cores
    workers = f"{loader.workers} workers" if loader.workers else "no workers"
    if is_crowded:
        workers += f", which share {cores} cores with the training"
    unproven = Confidence.HINT if is_crowded else Confidence.LIKELY
    yield input_bound.finding(
        f"each step waits {measured} for batches ({workers}): "
        + (
            f"without the wait, training would be up to {times.gain:.2g} times as fast"
            if tried is None
            else f"on one cached batch, training is {tried:.2g} times as fast"
        ),
        confidence=unproven if tried is None else Confidence.CERTAIN,
        severity=Severity.INFO if is_crowded else None,
        onset=max(times.first, series.first),
        evidence=(
            Evidence(
                *(TIME_DATA_WAIT, (times.first, times.last), f"{duration(times.wait)} a step"),
                slowest,
            ),
            Evidence(
                TIME_STEP,
                (times.first, times.last),
                f"{duration(times.step)} a step; forward, backward and optimizer take"
                f" {duration(times.forward + times.backward + times.optimizer)} of it",
            ),
        ),
        fix=_fix(cores, loader, is_crowded=is_crowded),
    )


def _cached_batch(run: Run) -> float | None:
    """Return how many times faster steps on one cached batch are, or None if nobody tried."""
    if THROUGHPUT_STEP_TIME not in run:
        return None
    times = {name: np.median(series.values) for name, series in run[THROUGHPUT_STEP_TIME].items()}
    if not {"loader", "cached"} <= set(times):
        return None
    return float(times["loader"] / times["cached"])


def _pass_starts(run: Run, times: Breakdown) -> Iterator[Verdict]:
    """Note a long wait at the beginning of each pass, when workers start."""
    workers = [loader for loader in loaders(run).values() if loader.workers]
    share = times.share(times.start)
    if workers and share >= _WORTH_A_NOTE and not workers[0].persistent:
        yield input_bound.normal(
            f"starting the workers of each pass takes {percent(share)} of the time;"
            " `DataLoader(..., persistent_workers=True)` starts them once"
        )


def _fix(cores: int | None, loader: LoaderSeen, *, is_crowded: bool) -> str:
    if loader.workers == 0:
        workers = min(cores or _MOST_WORKERS, _MOST_WORKERS)
        return (
            f"load in parallel: `DataLoader(..., num_workers={max(workers, 2)}, pin_memory=True,"
            " persistent_workers=True)`; if samples are decoded from files, cache the result"
        )
    if is_crowded:
        return (
            "the result is not affected, the run only takes longer: cache decoded samples, or use"
            " a machine with more cores"
        )
    more = cores is None or cores > loader.workers
    return (
        f"{'raise `num_workers`, and ' if more else ''}make samples cheaper: cache what is decoded,"
        " use fewer and larger files, move augmentation to the GPU"
    )
