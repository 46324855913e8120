"""Which sample an element belongs to: the batch dimension, followed through operations."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from holter.lab.birth.owners import identity

_PRODUCTS = {  # of these operands these dimensions live on as these; others are summed over
    "mm": ({0: 0}, {1: 1}),
    "addmm": ({0: 0, 1: 1}, {0: 0}, {1: 1}),
    "bmm": ({0: 0, 1: 1}, {0: 0, 2: 2}),
    "baddbmm": ({0: 0, 1: 1, 2: 2}, {0: 0, 1: 1}, {0: 0, 2: 2}),
    "mv": ({0: 0}, {}),
    "dot": ({}, {}),
}


@dataclass(frozen=True, slots=True)
class _Layout:
    """How samples lie in a storage: each takes `step` elements, the first begins at `base`."""

    step: int
    base: int


class SampleTracker:
    """Follows the batch dimension from the tensors that a step is given."""

    def __init__(self, size: int | None, own: frozenset[int]) -> None:
        self.size = size
        self._own = own  # storages of parameters and buffers, which have no samples
        self._layouts: dict[int, _Layout | None] = {}  # None: there are none in it

    def seen(self, inputs: Iterable[Tensor]) -> None:
        """Tensors are about to be turned: those from outside still lie as they came."""
        for each in inputs:
            self._layout(each)

    def made(
        self,
        operation: str,
        inputs: Sequence[Tensor],
        outputs: Iterable[Tensor],
        settings: Mapping[str, Any],
    ) -> None:
        """An operation made `outputs`, in memory of their own, or changed them in place."""
        if self.size is None:
            return
        layouts = [(n, each, self._layout(each)) for n, each in enumerate(inputs)]
        batched = [(n, each, layout) for n, each, layout in layouts if layout is not None]
        backward = operation.endswith("_backward") and "attention" not in operation
        for number, output in enumerate(outputs):
            key = identity(output)
            old = self._layouts.get(key) is not None and any(identity(e) == key for e in inputs)
            if not inputs:  # noise, say: as if it came from outside
                self._layouts.pop(key, None)
            elif not old:
                weights = backward and number  # of which gradients have no samples
                several = () if weights else batched
                self._layouts[key] = self._passed_on(operation, several, output, settings)

    def guilty(self, tensor: Tensor, wrong: Tensor) -> tuple[int, ...]:
        """The samples to which the elements marked in `wrong` belong."""
        if self.size == 1:
            return () if identity(tensor) in self._own else (0,)
        layout = self._layout(tensor)
        if layout is None or wrong.shape != tensor.shape or self.size is None:
            return ()
        along = self._along(tensor, layout)
        if along is None:
            places, strides = wrong.nonzero()[:1], tensor.stride()
        else:
            others = [each for each in range(tensor.dim()) if each != along]
            places = (wrong.any(others) if others else wrong).nonzero()
            strides = (tensor.stride(along),)
        offsets = (places * torch.tensor(strides, dtype=torch.int64, device=places.device)).sum(1)
        offsets += int(tensor.storage_offset()) - layout.base
        samples = torch.unique(offsets.div(layout.step, rounding_mode="floor") % self.size)
        return tuple(samples.tolist())

    def loudest(self, tensor: Tensor) -> tuple[int, ...]:
        """The samples with the largest elements, where they stand out from the others."""
        if self.size is None or not tensor.numel():
            return ()
        sizes = tensor.abs()
        samples = self.guilty(tensor, sizes >= sizes.max() / 2)
        return samples if 2 * len(samples) <= self.size else ()

    def _passed_on(
        self,
        operation: str,
        batched: Iterable[tuple[int, Tensor, _Layout]],
        output: Tensor,
        settings: Mapping[str, Any],
    ) -> _Layout | None:
        """How samples lie in the output of an operation."""
        if output.layout is not torch.strided:
            return None
        summed, several, single = False, False, set()
        for place, each, layout in batched:
            along = self._along(each, layout)
            before = int(each.storage_offset()) - layout.base
            if along is None:
                single.add(before // layout.step % (self.size or 1))
                continue
            several = True
            to = _target(operation, each, output, place=place, dimension=along, settings=settings)
            if to is None:
                summed = True
            elif output.stride(to) and self._continues(operation, each.shape[along], output, to):
                stride, now = each.stride(along), output.stride(to)
                if (layout.step * now) % stride == 0:
                    return _Layout(layout.step * now // stride, -(before // stride) * now)
        if summed:
            return None
        if len(single) == 1 and not several:  # it is all of one sample
            step = output.untyped_storage().nbytes() + 1
            return _Layout(step, -single.pop() * step)
        return self._by_size(output) if batched else None  # lost on the way

    def _continues(self, operation: str, before: int, output: Tensor, to: int) -> bool:
        """Whether samples lie in an output as they did, or whole batches one after the other."""
        after = int(output.shape[to])
        whole = operation == "cat" and before == self.size and after % before == 0
        return after == before or whole

    def _layout(self, tensor: Tensor) -> _Layout | None:
        if self.size is None or tensor.layout is not torch.strided:
            return None
        key = identity(tensor)
        if key in self._own:
            return None
        if key not in self._layouts:  # it comes from outside
            self._layouts[key] = self._by_size(tensor)
        return self._layouts[key]

    def _by_size(self, tensor: Tensor) -> _Layout | None:
        if self.size is None or self.size not in tensor.shape:
            return None
        stride = tensor.stride(list(tensor.shape).index(self.size))
        return _Layout(stride, int(tensor.storage_offset())) if stride else None

    def _along(self, tensor: Tensor, layout: _Layout) -> int | None:
        """The dimension in which samples change; None if all of a tensor is of one sample."""
        whole = layout.step * (self.size or 1)
        for dimension, (size, stride) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)):
            if 0 < stride < whole and size > 1 and size * stride > layout.step:
                return dimension
        return None


def _target(
    operation: str,
    operand: Tensor,
    output: Tensor,
    *,
    place: int,
    dimension: int,
    settings: Mapping[str, Any],
) -> int | None:
    """The dimension of the output in which a dimension of an operand lives on."""
    if operation in _PRODUCTS:
        ways = _PRODUCTS[operation]
        return ways[place].get(dimension) if place < len(ways) else None
    missing = operand.dim() - output.dim()
    if missing > 0:
        given = settings.get("dim")
        removed = [given] if isinstance(given, int) else list(given or ())
        removed = [each % operand.dim() for each in removed]
        if len(removed) == missing:
            return None if dimension in removed else dimension - sum(e < dimension for e in removed)
        return dimension if dimension < output.dim() else None
    aligned = dimension - missing  # as operands of different rank are aligned
    if missing < 0 and output.shape[dimension] == operand.shape[dimension]:
        at_end = output.shape[aligned] == operand.shape[aligned + missing]
        return dimension if operation == "embedding" or not at_end else aligned
    return aligned
