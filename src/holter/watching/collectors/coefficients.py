"""The factors that a loss multiplies its terms by, such as returns, importance weights and masks.

They are no part of what is trained: where they change, the loss changes without the model.
"""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from holter.record.signals import LOSS_COEFFICIENT_BALANCE, LOSS_COEFFICIENT_SIZE, Signal
from holter.watching.collectors import STEP, Reading
from holter.watching.collectors.graphs.nodes import Place
from holter.watching.collectors.moments import BackwardBegins, Depth, StepEnds

# Operations that only sum, scale and arrange terms, by the names of their nodes in the graph.
_LINEAR = frozenset(
    (
        *("Add", "Sub", "Neg", "Sum", "Mean", "Div", "Mul", "Stack", "Cat", "Maximum", "Minimum"),
        *("Squeeze", "Unsqueeze", "View", "UnsafeView", "Reshape", "Expand", "Permute"),
        *("Transpose", "T", "Select", "Slice", "Unbind", "Index", "Clone", "ToCopy", "Alias"),
    )
)
_NODES = 256  # that are visited: a sum in a Python loop has two for each term
_BRANCHES = 64  # of one node, evenly spaced
_ELEMENTS = 1 << 16  # of a constant
_FEWEST = 2  # constants that are read: one is the weight of a whole term
_FEW = 4  # products below which further products are looked for: `0.5 * (advantage * term).mean()`


class _Place(NamedTuple):
    """A node of the sum that a loss is, and what the sum multiplies it by so far."""

    node: Any
    is_mean: bool = False  # whether the mean of its elements is taken
    alike: float = 1.0  # nodes that it stands for
    divisors: tuple[Tensor, ...] = ()


class Coefficients:
    """Follows the sum that a loss is, from its root to the first products with constants.

    A single constant, or one that is the same as before, is the weight of a whole term, as in
    `loss + beta * penalty`: it is left out.
    """

    emits: ClassVar[tuple[Signal, ...]] = (LOSS_COEFFICIENT_SIZE, LOSS_COEFFICIENT_BALANCE)
    at: ClassVar[tuple[type, ...]] = (BackwardBegins, StepEnds)
    depth: ClassVar[Depth] = Depth.REGULAR
    wakes_at: ClassVar[tuple[type, ...]] = ()

    def __init__(self) -> None:
        self._before: list[float | None] = []  # the constants of one element in the step before
        self._weighted: list[Tensor] = []  # the constants of this step
        self._has_begun = False

    def read(self, moment: BackwardBegins | StepEnds) -> Iterable[Reading]:
        """The sum of the absolute values of all constants, and their own sum relative to it."""
        if isinstance(moment, BackwardBegins):
            if not self._has_begun and moment.whole:
                self._has_begun = True
                self._take(moment.roots)
            return ()
        weighted, self._weighted, self._has_begun = self._weighted, [], False
        if sum(constant.numel() for constant in weighted) < _FEWEST:
            return ()
        total = torch.stack([constant.sum() for constant in weighted]).sum()
        size = torch.stack([constant.abs().sum() for constant in weighted]).sum()
        return (
            Reading(LOSS_COEFFICIENT_SIZE, STEP, size.reshape(1)),
            Reading(LOSS_COEFFICIENT_BALANCE, STEP, (total / size).reshape(1)),
        )

    @torch.no_grad()
    def _take(self, roots: Sequence[Tensor]) -> None:
        found = [place for root in roots if root.grad_fn is not None for place in _products(root)]
        constants = [
            (constant, place) for place in found if (constant := _constant(place.node)) is not None
        ]
        chosen = [pair for pair in constants if pair[0].numel() > 1] or self._changed(constants)
        self._weighted = [
            _weighted(constant, place)
            for constant, place in chosen
            if constant.device == chosen[0][0].device
        ]

    def _changed(self, constants: list[tuple[Tensor, _Place]]) -> list[tuple[Tensor, _Place]]:
        """Constants of one element that are not what they were in the step before."""
        before = self._before
        self._before = [constant.item() if constant.is_cpu else None for constant, _ in constants]
        if len(before) != len(constants):
            return constants if before else []
        return [
            pair
            for pair, then, value in zip(constants, before, self._before, strict=True)
            if value is None or value != then
        ]


def _weighted(constant: Tensor, place: _Place) -> Tensor:
    """A constant times what the loss multiplies its product by."""
    part = constant.flatten()[:: -(-constant.numel() // _ELEMENTS)].float()
    weighted = part * (place.alike * (1 if place.is_mean else constant.numel()) / part.numel())
    for divisor in place.divisors:
        weighted = weighted / divisor.to(weighted.device, non_blocking=True)
    return weighted


def _products(root: Tensor) -> list[_Place]:
    """Where a term of a loss is multiplied by a constant."""
    found: list[_Place] = []
    waiting = [_Place(root.grad_fn)]
    seen: set[Any] = set()
    while waiting and len(seen) < _NODES:
        place = waiting.pop()
        if place.node in seen:
            continue
        seen.add(place.node)
        name = Place(place.node).kind
        if name not in _LINEAR:
            continue
        edges = [edge for edge, _ in place.node.next_functions]
        if name == "Mul" and None in edges:
            found.append(place)
            if len(found) > _FEW:
                continue
        elif None in edges and name in ("Maximum", "Minimum"):
            continue  # a bound, as of a hinge: the loss is no sum of what is below
        elif name in ("Mul", "Div") and None not in edges:
            continue  # a product of two terms of the model
        waiting += _below(place, name, edges)
    return found


def _below(place: _Place, name: str, edges: list[Any]) -> Iterable[_Place]:
    """The terms of a node, some of them where there are many."""
    some = edges[:: -(-len(edges) // _BRANCHES)]
    alike, divisors = place.alike * len(edges) / len(some), place.divisors
    if name == "Div":
        divisor = _constant(place.node)
        if divisor is None or divisor.numel() > 1:
            return
        divisors = (*divisors, divisor)
    for edge in some:
        if edge is not None:
            yield _Place(edge, place.is_mean or name == "Mean", alike, divisors)


def _constant(node: Any) -> Tensor | None:
    """The numbers that a product or a division has as its constant, or None."""
    constant = Place(node).constant()
    return None if constant is None or constant.dtype is torch.bool else constant
