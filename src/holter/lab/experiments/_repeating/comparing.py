"""Two tensors compared bit for bit: how many elements differ, and by how much."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from holter.lab.batches import as_real

_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}  # by size
_CHUNK = 1 << 22  # elements that are hashed at a time, so that memory stays bounded
_ODD = 0x9E3779B97F4A7C15 - (1 << 64)  # spreads the weights of a hash over 64 bits


@dataclass(frozen=True, slots=True)
class Difference:
    """Elements that differ, of how many, and the largest distance in units in the last place."""

    elements: int = 0
    of: int = 0
    ulps: float = 0.0

    def __bool__(self) -> bool:
        return self.elements > 0


def difference(one: Tensor, other: Tensor) -> Difference:
    """Compare two tensors of one data type; NaN equals NaN."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return Difference(max(one.numel(), other.numel(), 1), one.numel(), float("inf"))
    one, other = as_real(one), as_real(other)
    if torch.equal(one, other):
        return Difference(0, one.numel())
    differs = (one != other) & ~(one.isnan() & other.isnan())
    count = int(differs.sum())
    if not count:
        return Difference(0, one.numel())
    apart = (_ordered(one[differs]) - _ordered(other[differs])).abs()
    return Difference(count, one.numel(), float(apart.max()))


def total(differences: Iterable[Difference]) -> Difference:
    """Add up the differences of several tensors."""
    found = list(differences)
    return Difference(
        sum(each.elements for each in found),
        sum(each.of for each in found),
        max((each.ulps for each in found), default=0.0),
    )


def between(one: Mapping[str, Tensor], other: Mapping[str, Tensor]) -> dict[str, Difference]:
    """Compare the tensors of the same name; one that is missing differs as a whole."""
    return {
        name: difference(one[name], other[name])
        if name in one and name in other
        else Difference(1, 1, float("inf"))
        for name in {**one, **other}
    }


def digest(tensor: Tensor) -> int:
    """Return a 64-bit hash of the bits of a tensor, computed on its device.

    It adds integers, so the order in which a device adds does not matter.
    """
    bits = _bits(as_real(tensor)).reshape(-1)
    found = torch.zeros((), dtype=torch.int64, device=bits.device)
    for start in range(0, bits.numel(), _CHUNK):
        part = bits[start : start + _CHUNK].long()
        places = torch.arange(start, start + part.numel(), device=bits.device)
        found += (part * ((places * 2 + 1) * _ODD)).sum()
    return int(found)


def _bits(tensor: Tensor) -> Tensor:
    return tensor.contiguous().view(_INTEGERS[tensor.element_size()])


def _ordered(values: Tensor) -> Tensor:
    """Return integers in the order of floating-point numbers, neighbours one apart."""
    if not values.is_floating_point():
        return values.long()
    bits = _bits(values)
    lowest = 0 if bits.dtype is torch.uint8 else torch.iinfo(bits.dtype).min
    wide = bits.long()
    return torch.where(wide >= 0, wide, -(wide - lowest))
