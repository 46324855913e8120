"""The part of a loss that has no gradient: what its sums add that is no part of the graph.

A sum saves neither of its operands. Its constant operand is the value of the sum less that of the
other one, which is computed from what the nodes below have saved.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import torch
from torch import Tensor
from torch.nn import functional

from holter.watching.collectors.graphs.nodes import Place, place_of
from holter.watching.collectors.graphs.outputs import value_of

_DEPTH = 16  # operations one below the other
_LARGEST = 1 << 20  # elements of a tensor that is computed again

_KEY = "holter loss"


def keep_loss(loss: Tensor) -> None:
    """Attach the value that a loss function of torch returned to the node that computed it."""
    place = place_of(loss)
    if place is not None and loss.numel() == 1:
        place.node.metadata[_KEY] = loss.detach().reshape(())


@torch.no_grad()
def constant_part(root: Tensor) -> Tensor | None:
    """Return what a scalar loss adds without a gradient, or None if that is unknown."""
    place = place_of(root)
    if place is None or root.numel() != 1:
        return None
    value = root.detach().reshape(())
    return (
        _within(place, value, _DEPTH) if _has_constant(place, _DEPTH) else torch.zeros_like(value)
    )


def _has_constant(place: Place, depth: int) -> bool:
    """Whether one of the sums that a loss is made of has an operand without a gradient."""
    operands = [operand for operand in place.operands if operand is not None]
    if not depth or _KEY in place.node.metadata:
        return False
    if place.kind in ("Add", "Sub"):
        return len(operands) == 1 or any(_has_constant(each, depth - 1) for each in operands)
    follows = place.is_arranged or place.kind in ("Neg", "Mul", "Div")
    return follows and len(operands) == 1 and _has_constant(operands[0], depth - 1)


def _within(place: Place, value: Tensor, depth: int) -> Tensor | None:
    """Return the constant part of a sum whose value is known."""
    operands = [operand for operand in place.operands if operand is not None]
    if not depth or not operands or _KEY in place.node.metadata:
        return None
    if place.kind in ("Add", "Sub") and place.argument("alpha") in (None, 1):
        sign = -1 if place.kind == "Sub" else 1
        if len(operands) == 1:
            other = _value(operands[0], depth)
            if other is None or other.numel() != 1:
                return None
            is_first = place.operand(0) is not None
            return value - (other if is_first else sign * other)
        first, second = operands
        values = [_value(operand, depth) for operand in operands]
        if values[1] is not None and values[1].numel() == 1:
            return _within(first, value - sign * values[1], depth - 1)
        if values[0] is not None and values[0].numel() == 1:
            inner = _within(second, sign * (value - values[0]), depth - 1)
            return None if inner is None else sign * inner
        return None
    if place.is_arranged:
        return _within(operands[0], value, depth - 1)
    if place.kind == "Neg":
        inner = _within(operands[0], -value, depth - 1)
        return None if inner is None else -inner
    factor = _factor(place) if len(operands) == 1 else None
    if factor is None:
        return None
    inner = _within(operands[0], value / factor, depth - 1)
    return None if inner is None else inner * factor


def _factor(place: Place) -> Tensor | None:
    """The number that something is multiplied by or, as its inverse, divided by."""
    constant = place.constant() if place.kind in ("Mul", "Div") else None
    if constant is None or constant.numel() != 1:
        return None
    constant = constant.reshape(())
    if place.kind == "Mul":
        return constant
    return None if place.operand(0) is None else 1 / constant


def _value(place: Place, depth: int) -> Tensor | None:
    """Compute what was computed at a place, from what the graph has saved; None if it cannot be."""
    loss: Tensor | None = place.node.metadata.get(_KEY)
    if loss is not None:
        return loss
    kept = value_of(place)
    if kept is not None or not depth:
        return kept
    given = place.saved("self")
    if given is not None and given.numel() > _LARGEST:
        return None
    kind = place.kind
    if kind == "Pow" and given is not None:
        exponent = place.argument("exponent")
        return given**exponent if isinstance(exponent, int | float) else None
    if given is not None and kind in _OF_SAVED:
        return _OF_SAVED[kind](given)
    if kind in ("Sqrt", "LinalgVectorNorm"):
        return place.saved("result")
    if len(place.operands) == 2 and None not in place.operands:
        return _of_two(place, given, depth)
    below = place.dynamic
    value = None if below is None else _value(below, depth - 1)
    if value is None:
        return None
    if kind == "Neg":
        return -value
    if kind in ("Mul", "Div"):
        return _scaled(place, value)
    if kind in ("Mean", "Sum"):
        return _reduced(place, value)
    return value.reshape(place.shape) if place.is_arranged and place.shape is not None else None


def _of_two(place: Place, given: Tensor | None, depth: int) -> Tensor | None:
    """A product that has saved both of its factors, or a sum of two values."""
    if place.kind == "Mul":
        other = place.saved("other")
        return None if given is None or other is None else given * other
    if place.kind not in ("Add", "Sub") or place.argument("alpha") not in (None, 1):
        return None
    values = [None if each is None else _value(each, depth - 1) for each in place.operands]
    first, second = values
    if first is None or second is None:
        return None
    return first + second if place.kind == "Add" else first - second


_OF_SAVED: Mapping[str, Callable[[Tensor], Tensor]] = MappingProxyType(
    {"Abs": torch.abs, "Log": torch.log, "Softplus": functional.softplus}
)


def _scaled(place: Place, value: Tensor) -> Tensor | None:
    constant = place.constant()
    if constant is None or (place.kind == "Div" and place.operand(0) is None):
        return None
    return value * constant if place.kind == "Mul" else value / constant


def _reduced(place: Place, value: Tensor) -> Tensor | None:
    """A sum or mean over all elements, or over some axes of them."""
    dims, reduce = place.argument("dim"), torch.mean if place.kind == "Mean" else torch.sum
    if dims is None:
        return reduce(value)
    shape = place.shape
    if shape is None or not isinstance(dims, tuple):
        return None
    axes = [each - (1 << 64) if each >= 1 << 63 else each for each in dims]
    return reduce(value, dim=axes).reshape(shape)
