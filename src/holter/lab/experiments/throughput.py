"""How fast the training could be: with data at hand, other workers, other batch sizes."""

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import torch
from torch.utils.data import DataLoader

from holter.lab.batches import cloned, size, take, tensors
from holter.lab.experiments import experiment
from holter.lab.experiments._throughput import profiling
from holter.lab.experiments._throughput.loading import time_of_batch, with_workers
from holter.lab.inapplicable import InapplicableError
from holter.lab.setup import Batch, Setup
from holter.lab.writing import Lab
from holter.record.portable import usable_cores
from holter.record.signals import (
    THROUGHPUT_BATCH_TIME,
    THROUGHPUT_COPY,
    THROUGHPUT_FLOPS,
    THROUGHPUT_LOADING,
    THROUGHPUT_OPERATOR_TIME,
    THROUGHPUT_READS,
    THROUGHPUT_STEP_TIME,
    THROUGHPUT_WAIT,
)

_WARM_UP = 3  # steps
_PROFILED = 3  # steps
_OPERATORS = 8  # that are written
_WORKERS = (0, 1, 2, 4, 8, 16)
_QUICK = 1e-3  # seconds for a batch that workers would take longer to hand over
_FACTORS = (0.5, 1.0, 2.0, 4.0)  # of the batch size


@experiment(
    emits=(
        THROUGHPUT_STEP_TIME,
        THROUGHPUT_WAIT,
        THROUGHPUT_COPY,
        THROUGHPUT_LOADING,
        THROUGHPUT_BATCH_TIME,
        THROUGHPUT_OPERATOR_TIME,
        THROUGHPUT_READS,
        THROUGHPUT_FLOPS,
    )
)
def throughput(
    setup: Setup, lab: Lab, *, steps: int = 30, seconds: float = 30.0, profile: bool = True
) -> None:
    """How fast could this training be, and what bounds it?

    Times steps with batches from the loader, then with one cached batch: the difference is what
    loading costs. Then it tries other numbers of workers, if loading takes a noticeable time, and
    other batch sizes on the cached batch. Last, it profiles a few steps: the operators that take
    most time, floating-point operations, and lines that read tensors on the host.

    - `steps`: steps that are timed of each kind, at most.
    - `seconds`: the most that it may take, approximately.
    - `profile`: whether to profile.
    """
    clock = _Deadline(seconds)
    loader = setup.loaders.get("train")
    cached = [cloned(batch) for batch in islice(setup.endless(), setup.accumulation)]

    def step(batches: Sequence[Batch]) -> float:
        began = time.perf_counter()
        setup.step(*batches)
        _finish(setup.device)
        return time.perf_counter() - began

    for _ in range(_WARM_UP):
        step(cached)
    with_cached = _timed(lab, lambda: step(cached), steps, clock.share(0.2))
    lab.write(THROUGHPUT_STEP_TIME, with_cached, trial="cached")
    batches = _delivered(setup, loader)
    if batches is not None:
        _with_loader(setup, lab, batches, step, steps=steps, seconds=clock.share(0.3))
    if setup.device.type == "cuda":
        _copy(setup, lab, cached[0])
    if loader is not None:
        _loading(lab, loader, steps, clock)
    _batch_sizes(lab, cached, step, clock.share(0.5))
    if profile:
        _profile(setup, lab, lambda: step(cached))


class _Deadline:
    """How long the experiment may still take."""

    def __init__(self, seconds: float) -> None:
        self._end = time.perf_counter() + seconds

    def share(self, share: float) -> float:
        """Return some of the seconds that are left."""
        return max(self._end - time.perf_counter(), 0.0) * share


def _timed(lab: Lab, step: Callable[[], float], steps: int, seconds: float) -> list[float]:
    times: list[float] = []
    for _ in lab.progress(range(steps), "steps"):
        times.append(step())
        if sum(times) > seconds:
            break
    return times


def _delivered(setup: Setup, loader: DataLoader[Any] | None) -> Iterator[Batch] | None:
    """Yield batches as the training gets them; None if they come from no loader."""
    if loader is None:
        return None
    if setup.train is loader:
        return setup.endless()
    prepare = setup.prepare  # of a script, whose batches were captured
    if prepare is None:
        return None
    return (prepare(delivered) for _ in iter(int, 1) for delivered in loader)


def _with_loader(
    setup: Setup,
    lab: Lab,
    batches: Iterator[Batch],
    step: Callable[[Sequence[Batch]], float],
    *,
    steps: int,
    seconds: float,
) -> None:
    """Time steps with batches from the loader; the first one starts workers, and does not count."""
    waits: list[float] = []
    times: list[float] = []
    for number in lab.progress(range(steps + 1), "steps with the loader"):
        began = time.perf_counter()
        given = list(islice(batches, setup.accumulation))
        waited = time.perf_counter() - began
        spent = waited + step(given)
        if number:
            waits.append(waited)
            times.append(spent)
        if sum(times) > seconds:
            break
    lab.write(THROUGHPUT_STEP_TIME, times, trial="loader")
    lab.write(THROUGHPUT_WAIT, waits, trial="loader")


def _copy(setup: Setup, lab: Lab, batch: Batch) -> None:
    """Time the copy of a batch to the GPU, if it is delivered on the host."""
    on_host = [tensor for tensor in tensors(batch) if tensor.device.type == "cpu"]
    if not on_host:
        return
    times = []
    for _ in range(_WARM_UP):
        _finish(setup.device)
        began = time.perf_counter()
        for tensor in on_host:
            tensor.to(setup.device)
        _finish(setup.device)
        times.append(time.perf_counter() - began)
    lab.write(THROUGHPUT_COPY, [min(times)], trial="batch")


def _loading(lab: Lab, loader: DataLoader[Any], batches: int, clock: _Deadline) -> None:
    """Time the loader alone, with several numbers of workers."""
    cores = usable_cores()
    counts = sorted({*(count for count in _WORKERS if count <= cores), loader.num_workers})
    for number, workers in enumerate(lab.progress(counts, "numbers of workers")):
        chosen = with_workers(loader, workers)
        taken = time_of_batch(chosen, batches, clock.share(0.6 / (len(counts) - number)))
        if taken is None:
            return
        lab.write(THROUGHPUT_LOADING, [taken], trial=str(workers))
        if workers == 0 and taken < _QUICK:
            return


def _batch_sizes(
    lab: Lab,
    cached: Sequence[Batch],
    step: Callable[[Sequence[Batch]], float],
    seconds: float,
) -> None:
    try:
        samples = size(cached[0])
    except InapplicableError:
        return
    began = time.perf_counter()
    for factor in _FACTORS:
        count = int(samples * factor)
        if not count or time.perf_counter() - began > seconds:
            continue
        places = torch.arange(count) % samples
        try:
            made = [take(batch, places) for batch in cached]
            times = [step(made) for _ in range(_WARM_UP)]
        except (RuntimeError, ValueError, IndexError):  # no memory, or a model of fixed size
            continue
        lab.write(THROUGHPUT_BATCH_TIME, [min(times)], trial=str(count * len(cached)))


def _profile(setup: Setup, lab: Lab, step: Callable[[], float]) -> None:
    times = profiling.operators(step, _PROFILED, setup.device)
    most = sorted(times, key=lambda name: -times[name])[:_OPERATORS]
    lab.write_each(THROUGHPUT_OPERATOR_TIME, {name: times[name] for name in most})
    lab.write_each(THROUGHPUT_READS, {k: float(v) for k, v in profiling.reads(step).items()})
    counted = {"step": float(profiling.flops(step))}
    if (peak := profiling.peak(setup.device)) is not None:
        counted["peak"] = peak
    lab.write_each(THROUGHPUT_FLOPS, counted)


def _finish(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
