"""What models return, attached to the node of the graph that computed it.

A difference saves neither of its operands. What a model returned is kept in the metadata of its
node, so that it lives as long as the graph does and no longer.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from holter.watching.collectors.graphs.nodes import Place, place_of, signed
from holter.watching.collectors.outputs import readable
from holter.watching.structures import parts

_KEY = "holter"
_LARGEST = 1 << 20  # elements of an output that is kept until backward
_MOST = 4  # tensors of one output
_DEPTH = 3  # of tuples and mappings
_STEPS = 8  # between an output and its use
_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
# Operations that save their own result.
_RESULTS = frozenset(("Sigmoid", "Tanh", "Relu", "Exp", "Softmax", "LogSoftmax"))


class Kept(NamedTuple):
    """An output of a model; large ones are not kept, but mark where the model ends."""

    value: Tensor | None
    version: int
    samples: int | None  # that the model was given


def keep(arguments: Any, output: Any) -> int:
    """Attach the first tensors of what a model returned to the nodes that computed them.

    Return the number of their elements. A single number is left out: it is a loss that a module
    computes, and the model ends below it.
    """
    given = next((tensor for tensor in _tensors(arguments, _DEPTH) if tensor.dim() > 1), None)
    samples = None if given is None else len(given)
    elements = 0
    for tensor in _tensors(output, _DEPTH)[:_MOST]:
        place = place_of(tensor) if tensor.dim() else None
        if place is not None:
            is_kept = tensor.numel() <= _LARGEST and tensor.dtype in _FLOATS
            value = tensor.detach() if is_kept else None
            kept = place.node.metadata.setdefault(_KEY, {})
            kept[place.output] = Kept(value, tensor._version, samples)  # noqa: SLF001
            elements += tensor.numel()
    return elements


def kept_at(place: Place) -> Kept | None:
    """The output of a model that was computed at a place, or None."""
    kept: Kept | None = place.node.metadata.get(_KEY, {}).get(place.output)
    return kept


def value_of(place: Place) -> Tensor | None:
    """The value that was computed at a place, as far as it was kept or saved; else None."""
    views: list[Place] = []
    for _ in range(_STEPS):
        value = _unchanged(kept_at(place))
        if value is None and place.kind in _RESULTS:
            value = place.saved("result")
        if value is not None:
            return _viewed(value, views)
        if not (place.is_arranged or place.kind in ("Select", "Slice")):
            return None
        views.append(place)
        below = place.dynamic
        if below is None:
            return None
        place = below
    return None


def _unchanged(kept: Kept | None) -> Tensor | None:
    """An output that was not changed in place since."""
    if kept is None or kept.value is None or kept.value._version != kept.version:  # noqa: SLF001
        return None
    return readable(kept.value)


def _viewed(value: Tensor, views: list[Place]) -> Tensor | None:
    """Apply views to a value, the last one first."""
    for place in reversed(views):
        if place.kind == "Select":
            axis, index = place.argument("dim"), place.argument("index")
            value = value.select(signed(axis), signed(index))
        elif place.kind == "Slice":
            axis, start, end = (signed(place.argument(name)) for name in ("dim", "start", "end"))
            index = [slice(None)] * value.dim()
            index[axis] = slice(start, end, place.argument("step"))
            value = value[tuple(index)]
        elif place.shape is None or value.numel() != torch.Size(place.shape).numel():
            return None
        else:
            value = value.reshape(place.shape)
    return value


def _tensors(value: Any, depth: int) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    found = (parts(value) if depth else None) or ()
    return [tensor for _, _, part in found for tensor in _tensors(part, depth - 1)]
