"""What a step consists of: operators, floating-point operations, reads on the host."""

import contextlib
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

from holter.watching.frames import Frames, place
from holter.watching.taps.transfers import READS

_HOLTER = str(Path(__file__).parents[3])
# Dense half-precision FLOP a second, from data sheets; the first name that occurs counts.
_PEAKS = {
    "H200": 989e12,
    "H100 PCIe": 756e12,
    "H100": 989e12,
    "A100": 312e12,
    "A10": 125e12,
    "L40S": 362e12,
    "L4": 121e12,
    "V100": 125e12,
    "T4": 65e12,
    "RTX 4090": 165e12,
    "RTX 3090": 71e12,
}

Step = Callable[[], object]


def operators(step: Step, steps: int, device: torch.device) -> dict[str, float]:
    """Return the seconds in a step of each operator, without those that it calls."""
    on_gpu = device.type == "cuda"
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_gpu else [])]
    for count in (1, steps):  # the first one starts the profiler, which takes time
        with _quiet(), profile(activities=activities) as profiler:
            for _ in range(count):
                step()
            if on_gpu:
                torch.cuda.synchronize(device)
    times: dict[str, float] = {}
    for event in profiler.key_averages():
        micros = event.self_device_time_total if on_gpu else event.self_cpu_time_total
        if micros > 0 and not event.key.startswith(("ProfilerStep", "cuda")):
            times[event.key] = micros / 1e6 / steps
    return times


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Drop what is written to standard error: the profiler reports there that it starts."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def flops(step: Step) -> int:
    """Return the floating-point operations of a step, as far as torch can count them."""
    with FlopCounterMode(display=False) as counter:
        step()
    return int(counter.get_total_flops())


def peak(device: torch.device) -> float | None:
    """Return the FLOP that a GPU can do in a second, or None if it is not known."""
    if device.type != "cuda":
        return None
    name = torch.cuda.get_device_name(device)
    return next((most for known, most in _PEAKS.items() if known in name), None)


def reads(step: Step) -> dict[str, int]:
    """Return how often each line of the script reads a tensor on the host."""
    with _Reads() as mode:
        step()
    return dict(mode.lines)


class _Reads(TorchFunctionMode):
    """Counts calls such as `item()` by the line that makes them."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: Counter[str] = Counter()
        self._frames = Frames()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name in READS and args and isinstance(args[0], Tensor):
            where = self._line(sys._getframe(1))  # noqa: SLF001
            if where is not None:
                self.lines[f"{name} in {where}"] += 1
        return func(*args, **(kwargs or {}))

    def _line(self, frame: FrameType | None) -> str | None:
        """Return the line of the script that calls torch; None if holter itself does."""
        while frame is not None:
            if frame.f_code.co_filename.startswith(_HOLTER):
                return None
            if self._frames.is_script(frame):
                return place(frame)
            frame = frame.f_back
        return None
