"""The stretch of a graph between the outputs of models and the loss, and what is computed there."""

from collections.abc import Iterable
from enum import Enum
from typing import Any, NamedTuple

import torch
from torch import Tensor

from holter.watching.collectors.graphs.nodes import Place, place_of
from holter.watching.collectors.graphs.outputs import kept_at
from holter.watching.collectors.graphs.patterns import recognised

_NODES = 256  # of a stretch that are visited
_SUMS = frozenset(("Add", "Sub", "Stack", "Cat"))
_SHIFTS = frozenset(("Add", "Sub", "Mul", "Clamp", "ClampMin"))
_REDUCES = frozenset(("Sum", "Mean"))
_BY_CLASS = (2, 4)  # axes of outputs whose second one is that of the classes: rows, and images
_SOFTMAX = frozenset(("Softmax", "LogSoftmax"))
_VISITED = 4096  # nodes of a whole graph


class Stretch(NamedTuple):
    """What is computed from the outputs of models up to the loss, and those outputs."""

    places: list[Place]
    outputs: list[Place]


def stretch(roots: Iterable[Tensor]) -> Stretch:
    """Return the stretch that ends in some losses, as far as it is not too long."""
    waiting = [place for root in roots if (place := place_of(root)) is not None]
    seen: set[Any] = set()
    places: list[Place] = []
    outputs: list[Place] = []
    while waiting and len(places) < _NODES:
        place = waiting.pop()
        if place.node in seen:
            continue
        seen.add(place.node)
        if kept_at(place) is None:
            places.append(place)
            waiting += [operand for operand in place.operands if operand is not None]
        else:
            outputs.append(place)
    return Stretch(places, outputs)


def softmax_over_samples(roots: Iterable[Tensor]) -> bool | None:
    """Return whether a softmax that the loss compares with targets runs over the samples.

    Only what reaches the loss without meeting another part of the graph counts: attention weights
    are multiplied by what is attended to. The two sums of a quotient, as of a Dice or Jaccard loss,
    are one part. None if there is no softmax over a matrix or over images.
    """
    found: bool | None = None
    waiting = [(place, place) for root in roots if (place := place_of(root)) is not None]
    visited = 0
    while waiting and visited < _NODES:
        place, user = waiting.pop()
        visited += 1
        shape = place.shape
        if place.kind in _SOFTMAX and shape is not None and len(shape) in _BY_CLASS:
            samples = _samples(place)
            if samples is not None:
                rows, columns = shape[:2]
                is_over = place.axis() == 0 and rows == samples and columns not in (1, rows)
                found = bool(found) or (is_over and not _picks_rows(user))
        if kept_at(place) is not None:
            continue
        operands = [operand for operand in place.operands if operand is not None]
        if len(operands) == 1 or place.kind in _SUMS or _is_quotient_of_sums(place):
            waiting += [(operand, place) for operand in operands]
    return found


def _is_quotient_of_sums(place: Place) -> bool:
    """Whether one sum is divided by another: what overlaps by what there is, for example."""
    if place.kind != "Div":
        return False
    for operand in place.operands:
        below = operand
        while below is not None and below.kind in _SHIFTS and below.dynamic is not None:
            below = below.dynamic
        if below is None or below.kind not in _REDUCES:
            return False
    return True


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


class Singular(Enum):
    """Operations that have no value or no finite gradient at zero."""

    LOGARITHM = "logarithm"
    ROOT = "root"
    QUOTIENT = "quotient"


def smallest_arguments(places: Iterable[Place]) -> dict[Singular, Tensor]:
    """Return the smallest numbers that logarithms, roots and quotients are taken of."""
    smallest: dict[Singular, Tensor] = {}
    for place in places:
        operation, argument = _singular(place)
        if operation is None or argument is None or argument.dtype is torch.bool:
            continue
        least = argument.amin().to(torch.float32)
        known = smallest.get(operation)
        if known is None:
            smallest[operation] = least
        elif known.device == least.device:
            smallest[operation] = torch.minimum(known, least)
    return smallest


def _singular(place: Place) -> tuple[Singular | None, Tensor | None]:
    """The operation at a place, and what it is applied to, as far as the node has saved it."""
    kind = place.kind
    if kind in ("Log", "Log2", "Log10"):
        return Singular.LOGARITHM, place.saved("self")
    if kind == "Sqrt":
        root = place.saved("result")
        return Singular.ROOT, None if root is None else root.square()
    if kind == "Pow":
        exponent = place.argument("exponent")
        is_root = isinstance(exponent, float) and 0 < exponent < 1
        return (Singular.ROOT, place.saved("self")) if is_root else (None, None)
    if kind == "Div":
        divisor = place.saved("other")
        return Singular.QUOTIENT, None if divisor is None else divisor.abs()
    if kind == "Reciprocal":
        quotient = place.saved("result")
        return Singular.QUOTIENT, None if quotient is None else 1 / quotient.abs()
    return None, None


class Extent(NamedTuple):
    """How large a graph is, and where it ends."""

    leaves: list[Tensor]
    operations: int
    depth: int  # operations on the longest way from the loss to a leaf


def extent(roots: Iterable[Tensor]) -> Extent | None:
    """Return how large the graph is, or None where it is too large to be walked."""
    roots = list(roots)
    waiting: list[Any] = [root.grad_fn for root in roots if root.grad_fn is not None]
    found = [root for root in roots if root.grad_fn is None and root.requires_grad]
    users: dict[Any, int] = dict.fromkeys(waiting, 0)  # nodes, and how many others use each
    while waiting:
        node = waiting.pop()
        if _is_leaf(node):
            found.append(node.variable)
        for below, _ in node.next_functions:
            if below is not None:
                if below not in users:
                    users[below] = 0
                    waiting.append(below)
                users[below] += 1
        if len(users) > _VISITED:
            return None
    operations = sum(not _is_leaf(node) for node in users)
    return Extent(found, operations, _depth(users))


def _depth(users: dict[Any, int]) -> int:
    """Return how many levels the graph has if each node lies below all that use it."""
    level = [node for node, count in users.items() if not count]
    depth = 0
    while level:
        depth += any(not _is_leaf(node) for node in level)
        below = []
        for node in level:
            for operand, _ in node.next_functions:
                if operand is not None:
                    users[operand] -= 1
                    if not users[operand]:
                        below.append(operand)
        level = below
    return depth


def _is_leaf(node: Any) -> bool:
    return type(node).__name__ == "AccumulateGrad"
