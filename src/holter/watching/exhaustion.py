"""What held memory when an allocation failed, and ended the training."""

import re
from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any

import torch
from torch import Tensor

from holter.record.events import MemoryExhausted
from holter.watching.collectors.roster import Roster
from holter.watching.frames import Frames, place

_HOLDERS = 8  # that are recorded
_ELEMENTS = 100_000  # of a container that are counted
_UNITS = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_REQUESTED = re.compile(r"ried to allocate ([\d.]+) (bytes|[KMGT]iB)")
_ON_CPU = ("can't allocate memory", "not enough memory", "Unable to allocate")


def exhausted(error: BaseException, roster: Roster) -> MemoryExhausted | None:
    """Return what is known of an allocation that failed; None for any other exception."""
    message = str(error)
    on_gpu = isinstance(error, torch.OutOfMemoryError)
    on_cpu = isinstance(error, RuntimeError) and any(text in message for text in _ON_CPU)
    if not (on_gpu or on_cpu or isinstance(error, MemoryError)):
        return None
    device = "cuda" if on_gpu else "cpu"
    match = _REQUESTED.search(message)
    held = sorted(_holders(error.__traceback__, roster, device), key=lambda held: -held[1])
    held = [(name, size) for name, size in held if size][:_HOLDERS]
    return MemoryExhausted(
        device,
        requested=None if match is None else int(float(match[1]) * _UNITS[match[2]]),
        holders=tuple(name for name, _ in held),
        sizes=tuple(size for _, size in held),
        where=_where(error.__traceback__),
        **_of_gpu() if on_gpu else {},
    )


def _of_gpu() -> dict[str, int]:
    stats = torch.cuda.memory_stats()
    return {
        "capacity": torch.cuda.get_device_properties(torch.cuda.current_device()).total_memory,
        "allocated": stats["allocated_bytes.all.current"],
        "reserved": stats["reserved_bytes.all.current"],
    }


def _holders(trace: TracebackType | None, roster: Roster, device: str) -> Iterator[tuple[str, int]]:
    """Yield what is trained, and the variables of the frames that the exception went through."""
    parameters = list(roster.parameters)
    gradients = [p.grad for p in parameters if p.grad is not None]
    optimizers = [subject.optimizer() for subject in roster.subjects]
    states = [state for optimizer in optimizers if optimizer for state in optimizer.state.values()]
    counted: set[int] = set()
    yield "parameters", _size(parameters, device, counted)
    yield "gradients", _size(gradients, device, counted)
    yield "optimizer state", _size([list(state.values()) for state in states], device, counted)
    frames = Frames()

    def sizes(variables: Mapping[str, Any]) -> list[tuple[str, int]]:
        return [(name, _size(value, device, counted)) for name, value in variables.items()]

    while trace is not None:
        if frames.is_script(trace.tb_frame):
            where = place(trace.tb_frame).partition(":")[0]
            for name, size in frames.read(trace.tb_frame, sizes):
                yield f"{name} ({where})", size
        trace = trace.tb_next


def _where(trace: TracebackType | None) -> str:
    """Return the innermost line of the script."""
    frames, where = Frames(), ""
    while trace is not None:
        if frames.is_script(trace.tb_frame):
            where = place(trace.tb_frame, trace.tb_lineno)
        trace = trace.tb_next
    return where


def _size(value: Any, device: str, counted: set[int]) -> int:
    """Return the bytes of tensors that a value holds, each storage counted once."""
    if isinstance(value, Tensor):
        if value.device.type != device or value.layout is not torch.strided:
            return 0
        storage = value.untyped_storage()
        if storage.data_ptr() in counted:
            return 0
        counted.add(storage.data_ptr())
        return storage.nbytes()
    if type(value) is dict:
        return _sum(value.values(), device, counted)
    if type(value) in (list, tuple):
        return _sum(value, device, counted)
    return 0


def _sum(values: Iterable[Any], device: str, counted: set[int]) -> int:
    total = 0
    for count, value in enumerate(values):
        if count == _ELEMENTS:
            break
        total += _size(value, device, counted)
    return total
