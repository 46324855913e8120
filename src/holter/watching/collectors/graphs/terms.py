"""The terms of a loss: what its graph adds up, each with the loss function that it amounts to."""

from collections.abc import Iterable
from typing import NamedTuple

from torch import Tensor

from holter.watching.collectors.graphs.nodes import Place, place_of
from holter.watching.collectors.graphs.pattern import Pattern
from holter.watching.collectors.graphs.patterns import recognised
from holter.watching.collectors.moments import LossComputed

_NODES = 256  # that are visited: a sum in a Python loop has two for each term
_BRANCHES = 64  # of one node
_SUMS = frozenset(("Add", "Sub", "Stack", "Cat"))
# A root over a mean is followed: it has the minimum where the mean has its own.
_SINGLE = frozenset(("Neg", "Sqrt", "Sum", "Mean"))


class Term(NamedTuple):
    """A term of a loss: the place where sums end, and how it is reduced on the way to the loss."""

    place: Place
    pattern: Pattern | None = None
    is_mean: bool = False  # a mean is taken, or a sum is divided
    mask: Tensor | None = None  # a constant that elements are multiplied by
    is_weighted: bool = False  # by more than one such constant, or by one that cannot be read


def terms(root: Tensor) -> list[Term]:
    """Return what a loss adds up, in the order in which it is found."""
    place = place_of(root)
    found: list[Term] = []
    waiting = [] if place is None else [Term(place)]
    visited = 0
    while waiting and visited < _NODES:
        term = waiting.pop()
        visited += 1
        pattern = recognised(term.place)
        below = [] if pattern is not None else list(_below(term))
        if below:
            waiting += below
        else:
            found.append(term._replace(pattern=pattern))
    return found


def handwritten(roots: Iterable[Tensor]) -> list[LossComputed]:
    """Return the calls of loss functions that the terms of hand-written losses amount to."""
    calls: list[LossComputed] = []
    for root in roots:
        found = terms(root)
        for term in found:
            call = None
            if term.pattern is not None and not term.is_weighted:
                is_whole = len(found) == 1
                call = term.pattern.call(is_mean=term.is_mean, mask=term.mask, is_whole=is_whole)
            if call is not None:
                calls.append(call)
    return calls


def _below(term: Term) -> Iterable[Term]:
    """What a term adds up or reduces; nothing where it is no sum."""
    place = term.place
    kind, operands = place.kind, [operand for operand in place.operands if operand is not None]
    if kind in _SUMS:
        for operand in operands[:_BRANCHES]:
            yield term._replace(place=operand)
    elif kind in _SINGLE or place.is_arranged:
        for operand in operands:
            yield term._replace(place=operand, is_mean=term.is_mean or kind == "Mean")
    elif kind in ("Mul", "Div") and len(operands) == 1:
        constant = place.constant()
        if constant is None or constant.numel() == 1:
            yield term._replace(place=operands[0], is_mean=term.is_mean or kind == "Div")
        else:
            weighted = term.is_weighted or term.mask is not None or kind == "Div"
            yield term._replace(place=operands[0], mask=constant, is_weighted=weighted)
