"""The stretch of a graph between the outputs of models and the loss, and what is computed there."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from holter.watching.collectors.graphs.nodes import Place, place_of
from holter.watching.collectors.graphs.outputs import kept_at
from holter.watching.collectors.graphs.patterns import recognised

_NODES = 256  # of a stretch that are visited
_SUMS = frozenset(("Add", "Sub", "Stack", "Cat"))
_SOFTMAX = frozenset(("Softmax", "LogSoftmax"))
_VISITED = 4096  # nodes of a whole graph


def stretch(roots: Iterable[Tensor]) -> list[Place]:
    """Return what is computed from the outputs of models up to the loss."""
    waiting = [place for root in roots if (place := place_of(root)) is not None]
    seen: set[Any] = set()
    places: list[Place] = []
    while waiting and len(places) < _NODES:
        place = waiting.pop()
        if place.node in seen:
            continue
        seen.add(place.node)
        if kept_at(place) is None:
            places.append(place)
            waiting += [operand for operand in place.operands if operand is not None]
    return places


def softmax_over_samples(roots: Iterable[Tensor]) -> bool | None:
    """Return whether a softmax that the loss compares with targets runs over the samples.

    Only what reaches the loss without meeting another part of the graph counts: attention weights
    are multiplied by what is attended to. None if there is no softmax over a matrix.
    """
    found: bool | None = None
    waiting = [(place, place) for root in roots if (place := place_of(root)) is not None]
    visited = 0
    while waiting and visited < _NODES:
        place, user = waiting.pop()
        visited += 1
        shape = place.shape
        if place.kind in _SOFTMAX and shape is not None and len(shape) == 2:
            samples = _samples(place)
            if samples is not None:
                rows, columns = shape
                is_over = place.axis() == 0 and rows == samples and columns not in (1, rows)
                found = bool(found) or (is_over and not _picks_rows(user))
        if kept_at(place) is not None:
            continue
        operands = [operand for operand in place.operands if operand is not None]
        if len(operands) == 1 or place.kind in _SUMS:
            waiting += [(operand, place) for operand in operands]
    return found


def _picks_rows(user: Place) -> bool:
    """Whether targets choose among the rows of a matrix, as in ranking the items of one list."""
    if user.kind == "Gather":
        return user.axis() == 0
    return user.kind == "Mul" and recognised(user) is not None


def _samples(place: Place) -> int | None:
    """The number of samples of the model whose output a softmax is applied to."""
    below: Place | None = place
    for _ in range(_NODES):
        if below is None:
            return None
        kept = kept_at(below)
        if kept is not None:
            return kept.samples
        below = below.dynamic
    return None


def smallest_arguments(places: Iterable[Place]) -> dict[str, Tensor]:
    """Return the smallest numbers that logarithms, roots and quotients are taken of, by kind."""
    smallest: dict[str, Tensor] = {}
    for place in places:
        argument = _singular_argument(place)
        if argument is not None and argument.dtype is not torch.bool:
            least = argument.amin().to(torch.float32)
            known = smallest.get(place.kind)
            if known is None:
                smallest[place.kind] = least
            elif known.device == least.device:
                smallest[place.kind] = torch.minimum(known, least)
    return smallest


def _singular_argument(place: Place) -> Tensor | None:
    """What an operation is applied to that has no finite gradient, or no value, at zero."""
    if place.kind == "Log":
        return place.saved("self")
    if place.kind == "Sqrt":
        root = place.saved("result")
        return None if root is None else root.square()
    if place.kind == "Div":
        divisor = place.saved("other")
        return None if divisor is None else divisor.abs()
    return None


def leaves(roots: Iterable[Tensor]) -> list[Tensor] | None:
    """Return the tensors at which the graph ends, or None where it is too large to be walked."""
    waiting: list[Any] = [root.grad_fn for root in roots if root.grad_fn is not None]
    found = [root for root in roots if root.grad_fn is None and root.requires_grad]
    seen: set[Any] = set(waiting)
    while waiting:
        node = waiting.pop()
        if type(node).__name__ == "AccumulateGrad":
            found.append(node.variable)
        for below, _ in node.next_functions:
            if below is not None and below not in seen:
                seen.add(below)
                waiting.append(below)
        if len(seen) > _VISITED:
            return None
    return found
