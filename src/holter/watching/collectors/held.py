"""Outputs of modules that are held for a moment, so that one launch reads many of them."""

import torch
from torch import Tensor

from holter.watching.collectors.outputs import Slot, Sums
from holter.watching.collectors.room import room
from holter.watching.stats import Statistics

_SHARE = 100  # of the device's memory: the part that is held at most
_OF_ROOM = 4  # the same of what is left of it


class Held:
    """Reads outputs on a GPU together, a hundredth of its memory at a time, or less if it is full.

    An output that was changed in place before it was read is left out, and its module is read as
    it returns from then on. The same holds where a script works on several streams.
    """

    def __init__(self) -> None:
        self._stats = Statistics()
        self._waiting: list[tuple[Slot, Tensor, int]] = []  # with the version of each output
        self._stream: object = None  # that they were computed on
        self._bytes = 0
        self._limits: dict[torch.device, int] = {}
        self._read: list[Sums] = []

    def takes(self, slot: Slot, output: Tensor) -> bool:
        """Hold the output of a call, if it can wait."""
        if not output.is_cuda or slot.is_read_at_once or not self._stats.has_kernels(output):
            return False
        stream = _stream(output.device)
        if self._waiting and stream != self._stream:
            self._drop()
        self._stream = stream
        self._waiting.append((slot, output, output._version))  # noqa: SLF001
        self._bytes += output.nbytes
        if self._bytes > self._limit(output.device):
            self._flush()
        return True

    def take(self) -> list[Sums]:
        """Read what is still held; return all that was read since this was last called."""
        if self._waiting:
            if _stream(self._waiting[0][1].device) == self._stream:
                self._flush()
            else:
                self._drop()
        read, self._read = self._read, []
        self._limits.clear()  # the training may take more by the next time
        return read

    def forget(self) -> None:
        """Let everything go."""
        self._waiting, self._bytes, self._read = [], 0, []

    def _flush(self) -> None:
        waiting, self._waiting, self._bytes = self._waiting, [], 0
        slots, outputs = [], []
        for slot, output, version in waiting:
            if output._version == version:  # noqa: SLF001
                slots.append(slot)
                outputs.append(output)
                slot.elements += output.numel()
            else:
                slot.is_read_at_once = True
        if outputs:
            self._read.append(Sums(self._stats.sums(outputs), slots))

    def _drop(self) -> None:
        for slot, _, _ in self._waiting:
            slot.is_read_at_once = True
        self._waiting, self._bytes = [], 0

    def _limit(self, device: torch.device) -> int:
        limit = self._limits.get(device)
        if limit is None:
            total = torch.cuda.get_device_properties(device).total_memory
            limit = self._limits[device] = min(total // _SHARE, room(device) // _OF_ROOM)
        return limit


def _stream(device: torch.device) -> object:
    """The device and the stream that work goes to; ten times as fast as `current_stream`."""
    return device, torch._C._cuda_getCurrentRawStream(device.index)  # noqa: SLF001
