"""All readings of a step in one buffer and one transfer."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Packed:
    """Values of one step on their way to the host."""

    buffers: tuple[Tensor, ...]
    places: tuple[tuple[int, int, int], ...]  # for each value: its buffer, and from where to where

    def unpack(self) -> list[npt.NDArray[np.float32]]:
        """The values on the host, in the order in which they were packed."""
        host = [buffer.cpu().numpy() for buffer in self.buffers]
        return [host[buffer][start:stop] for buffer, start, stop in self.places]


@torch.no_grad()
def pack(values: Sequence[Tensor]) -> Packed:
    """Gather 0-d and 1-d tensors into one float32 buffer for each device they live on."""
    parts: dict[torch.device, list[Tensor]] = {}
    index: dict[torch.device, int] = {}
    filled: dict[torch.device, int] = {}
    places = []
    for value in values:
        flat = value.detach().reshape(-1).to(torch.float32)
        device = flat.device
        if device not in parts:
            parts[device], index[device], filled[device] = [], len(parts), 0
        start = filled[device]
        filled[device] = start + flat.numel()
        parts[device].append(flat)
        places.append((index[device], start, filled[device]))
    return Packed(tuple(torch.cat(part) for part in parts.values()), tuple(places))
