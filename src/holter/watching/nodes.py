"""Nodes of autograd: the numbers that say in which order they were made."""

from typing import Any

from torch import Tensor

_NODES = 32  # of a graph that are looked at, from its end


def number_of(node: Any) -> int:
    """Return the number of a node: they rise in the order in which nodes are made."""
    number: int = node._sequence_nr()  # noqa: SLF001
    return number


def reaches_back(result: Tensor, number: int) -> bool:
    """Return whether the end of the graph of a tensor has nodes made before one of this number."""
    frontier = [result.grad_fn] if result.grad_fn is not None else []
    for _ in range(_NODES):
        if not frontier:
            return False
        node = frontier.pop(0)
        if number_of(node) <= number:
            return True
        frontier += [below for below, _ in node.next_functions if below is not None]
    return False
