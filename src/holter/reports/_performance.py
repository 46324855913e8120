"""Time and memory of a run, for reports."""

from typing import Any

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.time import Breakdown
from holter.diagnosis.wording import duration, percent, size
from holter.record import Run
from holter.record.signals import (
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
_WORTH = 0.005  # share of a step from which on a part is listed


def performance(run: Run) -> dict[str, Any]:
    """Return times in seconds and memory in bytes; None where they were not measured."""
    times = Facts(run).time
    return {
        "time": None if isinstance(times, str) else _time(times),
        "memory": {
            name: None if (values := _values(run, signal)) is None else float(values.max())
            for name, signal in _MEMORY.items()
        },
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
        samples = "" if times.samples is None else f", {times.samples:,.0f} samples per second"
        gain = f"; without it, {times.gain:.2g} times as fast" if times.gain > 1.1 else ""
        said.append(f"{1 / times.step:.3g} steps per second{samples}; bound by {times.bound}{gain}")
        if times.idle:
            said.append(f"the GPU waits for the host in {percent(times.idle)} of the steps")
    used = [
        f"{name.replace('_', ' ').replace('gpu', 'GPU')} {size(values.max())}"
        for name, signal in _MEMORY.items()
        if (values := _values(run, signal)) is not None and values.max() > 0
    ]
    if used:
        said.append(f"memory at most: {', '.join(used)}")
    return said


def _values(run: Run, signal: Signal) -> "np.ndarray[Any, Any] | None":
    if signal not in run or not len(run[signal][""]):
        return None
    return run[signal][""].values.astype(np.float64)
