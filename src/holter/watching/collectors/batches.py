"""What is measured of a batch: a fingerprint, mean and spread, what is not finite."""

import functools
import math

import numpy as np
import torch
from torch import Tensor

from holter.watching.stats import Stat, Statistics

_SAMPLED = 4096  # elements that a fingerprint is made of, at most
_SHAPES = 64  # of batches, whose weights are kept
_MEASURED = 1 << 18  # elements that mean and spread are taken from, at most
_INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool)
_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
ANY = frozenset(_INTEGERS + _FLOATS)

# Weights about zero, so that a batch far from zero does not use up the digits of a float32.
_PATTERN = np.random.default_rng(0).uniform(-1, 1, _SAMPLED).astype(np.float32)

Value = Tensor | float  # on the CPU numbers are at hand


class Batches:
    """Measures batches without waiting for a device."""

    def __init__(self) -> None:
        self._stats = Statistics()
        self._patterns: dict[tuple[torch.device, torch.Size], Tensor] = {}

    def fingerprint(self, batch: Tensor) -> Value:
        """A number made of up to 4096 elements, spread over the batch, and of their places.

        Equal batches of equal shape have equal ones; not finite where any of the elements is not.
        """
        part = _part(batch, _SAMPLED)
        # No dot product, which may depend on where in memory the batch lies.
        total = (part * self._pattern(part)).sum()
        return total.item() if total.is_cpu else total

    def nonfinite(self, batch: Tensor) -> Value:
        """How many elements are not finite."""
        if batch.is_cpu:
            low, high = torch.aminmax(batch)
            if math.isfinite(low.item()) and math.isfinite(high.item()):
                return 0.0
            return float(batch.numel() - int(torch.isfinite(batch).sum()))
        return self._stats.summarise([batch])[0, Stat.NONFINITE]

    def absmax(self, batch: Tensor) -> Tensor:
        """The largest magnitude."""
        low, high = torch.aminmax(batch)
        return torch.maximum(-low, high)

    def is_whole(self, batch: Tensor) -> bool:
        """Whether the fingerprint is made of all elements: then it tells whether all are finite."""
        return batch.numel() <= _SAMPLED

    def _pattern(self, part: Tensor) -> Tensor:
        """The weights of each element; kept, for batches mostly have one shape."""
        key = part.device, part.shape
        pattern = self._patterns.get(key)
        if pattern is None:
            here = torch.from_numpy(_PATTERN[: part.numel()])
            if part.is_cuda:  # from memory that is not pinned it would wait for the device
                here = here.pin_memory()
            if len(self._patterns) >= _SHAPES:
                self._patterns.clear()
            pattern = here.to(part.device, non_blocking=True).view(part.shape)
            self._patterns[key] = pattern
        return pattern


def spread(batch: Tensor) -> tuple[Tensor, Tensor]:
    """Standard deviation (divided by n) and mean, of a part of a large batch."""
    part = _part(batch, _MEASURED)
    part = part if part.dtype == torch.float64 else part.to(torch.float32)
    return torch.std_mean(part, correction=0)


def _part(batch: Tensor, most: int) -> Tensor:
    return batch if batch.numel() <= most else batch[grid(tuple(batch.shape), most)]


@functools.lru_cache(maxsize=64)
def grid(shape: tuple[int, ...], most: int) -> tuple[slice, ...]:
    """Slices with a stride along each axis, so that a bounded number of values is left."""
    every, left = [1] * len(shape), list(shape)
    while math.prod(left) > most:
        axis = left.index(max(left))
        every[axis] += 1
        left[axis] = -(-shape[axis] // every[axis])
    return tuple(slice(None, None, stride) for stride in every)
