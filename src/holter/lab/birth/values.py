"""The numbers in a tensor: whether all are finite, their range, and where they are not."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from holter.record.births import Operand

_NARROW = (torch.float16, torch.bfloat16)


@dataclass(frozen=True, slots=True)
class Extent:
    """The lowest and the highest of numbers that are not all finite."""

    low: float
    high: float

    @property
    def nan(self) -> bool:
        """Whether there is a NaN among them."""
        return math.isnan(self.low)

    @property
    def only_below(self) -> bool:
        """Whether nothing is wrong but -inf, as masks have it."""
        return self.low == -math.inf and self.high < math.inf

    @property
    def says(self) -> str:
        """The worst of them, in a word."""
        if self.nan:
            return "NaN"
        return "-inf" if self.only_below else "inf"


def numbers(tensor: Tensor) -> Tensor | None:
    """The elements of a tensor as dense real floats; None if it has none that can be read."""
    if tensor.is_meta or tensor.is_nested or torch._is_zerotensor(tensor):  # noqa: SLF001
        return None
    if tensor.layout is torch.sparse_coo:
        tensor = tensor._values()  # noqa: SLF001  (`values()` asks for coalesced ones)
    elif tensor.layout is not torch.strided:
        return None
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    if not tensor.is_floating_point() or not tensor.numel():
        return None
    return tensor.float() if tensor.dtype.itemsize == 1 else tensor


def extent(tensor: Tensor) -> Extent | None:
    """The range of a tensor with elements that are not finite; None if all are."""
    values = numbers(tensor)
    if values is None:
        return None
    # A sum takes a tenth of the time, and is finite only if all its terms are.
    dtype = torch.float32 if values.dtype in _NARROW else None
    if math.isfinite(values.sum(dtype=dtype).item()):
        return None
    low, high = torch.aminmax(values)
    found = Extent(low.item(), high.item())
    return None if math.isfinite(found.low) and math.isfinite(found.high) else found


def bad(tensor: Tensor, *, nan_only: bool = False) -> Tensor:
    """Where a tensor is not finite; or, if masks are in it, where it is NaN."""
    values = tensor.to_dense() if tensor.layout is not torch.strided else tensor
    if not (values.is_floating_point() or values.is_complex()):
        return torch.zeros_like(values, dtype=torch.bool)
    if values.dtype.itemsize == 1:
        values = values.float()
    return torch.isnan(values) if nan_only else ~torch.isfinite(values)


def fits(shape: Sequence[int], whole: Sequence[int]) -> bool:
    """Whether a tensor can be expanded to a shape."""
    sizes = whole[len(whole) - len(shape) :]
    return len(shape) <= len(whole) and all(a in (1, b) for a, b in zip(shape, sizes, strict=True))


def operand(name: str, tensor: Tensor) -> Operand:
    """What can be said of an operand in a few numbers."""
    shape, dtype = tuple(tensor.shape), str(tensor.dtype).removeprefix("torch.")
    values = tensor if not tensor.is_floating_point() else numbers(tensor)
    if values is None or not values.numel() or values.is_complex():
        return Operand(name, shape, dtype, math.nan, math.nan, 0, 0)
    if values.dtype is torch.bool:
        values = values.to(torch.uint8)
    wrong = bad(values)
    fine = values[~wrong] if wrong.any() else values
    low, high = (each.item() for each in torch.aminmax(fine)) if fine.numel() else (math.nan,) * 2
    zeros = int((values == 0).sum())
    return Operand(name, shape, dtype, float(low), float(high), zeros, int(wrong.sum()))
