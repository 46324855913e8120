"""All readings of a step in one buffer and one asynchronous transfer."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Floats = npt.NDArray[np.float32]


class Packed:
    """Values on their way to the host. Those of a CPU are there; for others one copy is under way.

    The values of each device are gathered in one buffer there, and copied asynchronously to pinned
    memory; an event says when they have arrived.
    """

    def __init__(self, values: Sequence[Tensor]) -> None:
        self._host: list[Floats | None] = []
        self._places: dict[torch.device, list[tuple[int, int]]] = {}  # which value, and how long
        parts: dict[torch.device, list[Tensor]] = {}
        for index, value in enumerate(values):
            flat = value.detach()
            if flat.dim() != 1 or flat.dtype != torch.float32:
                flat = flat.reshape(-1).to(torch.float32)
            if flat.is_cpu:
                self._host.append(flat.numpy())
                continue
            self._host.append(None)
            parts.setdefault(flat.device, []).append(flat)
            self._places.setdefault(flat.device, []).append((index, flat.numel()))
        self._copies = {device: _send(tensor) for device, tensor in parts.items()}
        if self._copies:  # these are read later: keep a copy of what is on the host already
            self._host = [None if buffer is None else buffer.copy() for buffer in self._host]

    @property
    def arrived(self) -> bool:
        """Whether `unpack` would not have to wait."""
        return all(event is None or event.query() for _, event in self._copies.values())

    def unpack(self) -> list[Floats]:
        """The values on the host, in the order in which they were packed."""
        for device, (buffer, event) in self._copies.items():
            if event is not None and not event.query():
                event.synchronize()
            start = 0
            for index, length in self._places[device]:
                self._host[index] = buffer[start : start + length].numpy()
                start += length
        self._copies.clear()
        return [buffer for buffer in self._host if buffer is not None]


def _send(parts: Sequence[Tensor]) -> tuple[Tensor, Any]:
    """One buffer on the device, and its copy on the host with the event of its arrival."""
    gathered = torch.cat(list(parts))
    if gathered.device.type != "cuda":
        return gathered.cpu(), None  # other accelerators: a plain copy, which waits
    # Pinned memory comes from torch's cache, which hands a block out again only when its copy is
    # done: that is the ring.
    host = torch.empty(gathered.shape, dtype=gathered.dtype, pin_memory=True)
    host.copy_(gathered, non_blocking=True)
    return host, torch.cuda.current_stream(gathered.device).record_event()
