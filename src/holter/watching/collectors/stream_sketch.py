"""How many different samples stream by: hashes of rows, and a count of distinct ones."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from holter.watching.collectors.batches import grid

Hashes = npt.NDArray[np.uint64]

_WIDTH = 1024  # elements of a row that are hashed, at most
_ELEMENTS = 1 << 16  # of a batch, unless its rows would keep fewer than `_LEAST`
_LEAST = 64
_BUFFERED = 4096  # hashes that wait to be counted


class RowHashes:
    """Hashes the samples of batches; equal samples have equal hashes, in all batches of a run.

    The arithmetic is of integers: a hash depends neither on the place in the batch nor on its size.
    """

    def __init__(self, salt: int) -> None:
        self._weights = np.random.default_rng(salt).integers(
            -(1 << 63), (1 << 63) - 1, (8, _WIDTH), dtype=np.int64
        )
        self._widths: dict[tuple[int, ...], int] = {}  # by the shape of a sample

    def of(self, tensors: Mapping[int, Tensor]) -> Tensor:
        """Return a hash for each row of tensors that have as many, by their places in the batch."""
        total: Tensor | None = None
        for place, tensor in tensors.items():
            row = tuple(tensor.shape[1:])
            # Fixed for a kind of sample: the last batch of a pass is smaller than the others.
            width = self._widths.setdefault(row, max(_ELEMENTS // len(tensor), _LEAST))
            part = _bits(tensor[(slice(None), *grid(row, min(width, _WIDTH)))])
            weights = torch.from_numpy(self._weights[place % 8, : part.shape[1]])
            one = torch.mv(part, weights)
            total = one if total is None else total + one
        assert total is not None
        return total


class DistinctCount:
    """Counts distinct hashes in bounded memory: exactly while there are at most `size`.

    Beyond that an estimate from the `size` smallest hashes, with a relative error of
    1 / sqrt(size).
    """

    def __init__(self, size: int = 4096) -> None:
        self._size = size
        self._kept: Hashes = np.empty(0, np.uint64)
        self._buffer: list[Hashes] = []
        self._buffered = 0

    def add(self, hashes: Hashes) -> None:
        """Count some hashes."""
        self._buffer.append(hashes)
        self._buffered += len(hashes)
        if self._buffered >= _BUFFERED:
            self._flush()

    @property
    def count(self) -> float:
        """The number of distinct hashes."""
        self._flush()
        if len(self._kept) < self._size:
            return float(len(self._kept))
        return (self._size - 1) * 2.0**64 / max(float(self._kept[-1]), 1.0)

    def _flush(self) -> None:
        if not self._buffer:
            return
        fresh = np.concatenate(self._buffer)
        self._buffer, self._buffered = [], 0
        if len(self._kept) == self._size:
            fresh = fresh[fresh < self._kept[-1]]
        self._kept = np.union1d(self._kept, fresh)[: self._size]


def mixed(hashes: Tensor) -> Hashes:
    """Return hashes that are spread evenly over all 64-bit numbers."""
    bits = hashes.numpy().view(np.uint64)
    bits = (bits ^ (bits >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    bits = (bits ^ (bits >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return np.asarray(bits ^ (bits >> np.uint64(32)))


def _bits(part: Tensor) -> Tensor:
    """Return the elements of each row as 64-bit integers that tell them apart."""
    rows = part.reshape(len(part), -1)
    if rows.is_floating_point():
        rows = rows.to(torch.float32).view(torch.int32)
    return rows.to(torch.int64)
