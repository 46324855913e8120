"""Time and memory of a run, for reports."""

from typing import Any

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.time import Bound, Breakdown
from holter.diagnosis.wording import duration, percent, size
from holter.record import Run
from holter.record.signals import (
    MEMORY_AFTER_BACKWARD,
    MEMORY_AFTER_FORWARD,
    MEMORY_AFTER_OPTIMIZER,
    MEMORY_ALLOCATED,
    MEMORY_PEAK,
    MEMORY_PROCESS,
    MEMORY_RESERVED,
    MEMORY_WORKERS,
    Signal,
)

_MEMORY = {
    "process": MEMORY_PROCESS,
    "workers": MEMORY_WORKERS,
    "gpu_tensors": MEMORY_ALLOCATED,
    "gpu_reserved": MEMORY_RESERVED,
    "gpu_peak": MEMORY_PEAK,
}
_PHASES = {
    "forward": MEMORY_AFTER_FORWARD,
    "backward": MEMORY_AFTER_BACKWARD,
    "optimizer": MEMORY_AFTER_OPTIMIZER,
}
_WORTH = 0.005  # share of a step from which on a part is listed
_HELPS = {
    Bound.INPUT: "more workers, `pin_memory=True`, cached samples; `holter try throughput` tries"
    " numbers of workers",
    Bound.TRANSFER: "`pin_memory=True` with `to(device, non_blocking=True)`, smaller types",
    Bound.SYNCHRONISATION: "reading values such as `loss.item()` every hundred steps",
    Bound.LAUNCHES: "`torch.compile`, larger batches, fused optimizers",
}


def performance(run: Run) -> dict[str, Any]:
    """Return times in seconds and memory in bytes; None where they were not measured."""
    times = Facts(run).time
    return {
        "time": None if isinstance(times, str) else _time(times),
        "memory": {name: _most(run, signal) for name, signal in _MEMORY.items()},
        "memory_after": {name: _most(run, signal) for name, signal in _PHASES.items()},
        "gpu_unused": _unused(run),
    }


def _time(times: Breakdown) -> dict[str, Any]:
    return {
        "step": times.step,
        "median": times.median,
        "parts": times.parts,
        "holter": times.holter,
        "copy": times.copy,
        "sync": times.sync,
        "sync_calls": times.sync_calls,
        "gpu_idle": times.idle,
        "bound": str(times.bound),
        "gain": times.gain,
        "steps_per_second": 1 / times.step,
        "samples_per_second": times.samples,
        "tokens_per_second": times.tokens,
    }


def sentences(run: Run) -> list[str]:
    """Return where the time goes and how much memory is used, a sentence each."""
    said = []
    times = Facts(run).time
    if not isinstance(times, str):
        parts = [
            f"{name} {duration(seconds)} ({percent(times.share(seconds))})"
            for name, seconds in times.parts.items()
            if times.share(seconds) >= _WORTH
        ]
        said.append(f"a step takes {duration(times.step)}: {', '.join(parts)}")
        rates = {"samples": times.samples, "tokens": times.tokens}
        samples = "".join(
            f", {rate:,.0f} {name} per second" for name, rate in rates.items() if rate is not None
        )
        gain = f"; without it, {times.gain:.2g} times as fast" if times.gain > 1.1 else ""
        said.append(f"{1 / times.step:.3g} steps per second{samples}; bound by {times.bound}{gain}")
        if times.bound in _HELPS:
            said.append(f"what helps: {_HELPS[times.bound]}")
        if times.idle:
            said.append(f"the GPU waits for the host in {percent(times.idle)} of the steps")
        said += _on_gpu(times)
    used = [
        f"{name.replace('_', ' ').replace('gpu', 'GPU')} {size(most)}"
        for name, signal in _MEMORY.items()
        if (most := _most(run, signal))
    ]
    if used:
        said.append(f"memory at most: {', '.join(used)}")
    phases = [
        f"{name} {size(most)}" for name, signal in _PHASES.items() if (most := _most(run, signal))
    ]
    if phases:
        said.append(f"memory at most at the end of a phase: {', '.join(phases)}")
    unused = _unused(run)
    if unused:
        said.append(f"GPU memory reserved beyond the peak use (fragmentation): {size(unused)}")
    return said


def _on_gpu(times: Breakdown) -> list[str]:
    """Return what was measured on a GPU: its own times, copies to it and waits for it."""
    said = []
    if times.device is not None:
        parts = zip(_PHASES, times.device, strict=True)
        told = ", ".join(f"{name} {duration(seconds)}" for name, seconds in parts)
        said.append(f"time on the GPU: {told}")
    if times.copy:
        share = percent(times.share(times.copy))
        said.append(f"copies to the GPU take {duration(times.copy)} of a step ({share})")
    if times.sync and times.sync_calls:
        said.append(
            f"the host waits {duration(times.sync)} of a step for the GPU, in"
            f" {times.sync_calls:.3g} calls such as `item()`"
        )
    return said


def _most(run: Run, signal: Signal) -> float | None:
    values = _values(run, signal)
    return None if values is None else float(values.max())


def _unused(run: Run) -> float | None:
    """Return the GPU memory that the allocator holds beyond the largest use of tensors."""
    reserved, peak = _most(run, MEMORY_RESERVED), _most(run, MEMORY_PEAK)
    return None if reserved is None or peak is None else max(reserved - peak, 0.0)


def _values(run: Run, signal: Signal) -> "np.ndarray[Any, Any] | None":
    if signal not in run or not len(run[signal][""]):
        return None
    return run[signal][""].values.astype(np.float64)
