"""What each term of a loss contributes to the gradient, measured while the script's backward runs.

Terms that share a model meet where the graph of one joins that of the others. The gradients that
arrive there from each term add up to the gradient of the loss: hooks on the last nodes of each term
read them, without a backward of their own.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils.hooks import RemovableHandle

from holter.watching.collectors.graphs.nodes import Place
from holter.watching.collectors.graphs.terms import Term

_MOST_TERMS = 8
_VISITED = 4096  # nodes of one term
_HOOKS = 64  # of all terms
# Loss functions of torch that are one node of a graph.
_FUNCTIONS = {
    "NllLoss": "cross_entropy",
    "NllLoss2D": "cross_entropy",
    "MseLoss": "mse_loss",
    "SmoothL1Loss": "smooth_l1_loss",
    "HuberLoss": "huber_loss",
    "BinaryCrossEntropy": "binary_cross_entropy",
    "BinaryCrossEntropyWithLogits": "binary_cross_entropy_with_logits",
    "KlDiv": "kl_div",
    "CtcLoss": "ctc_loss",
}


class Contributions:
    """The gradients that the terms of a loss send to where they meet.

    Penalties on weights are left out: they meet the others at the weights only.
    """

    def __init__(self, terms: Sequence[Term], outputs: Sequence[Place]) -> None:
        ends = {place.node for place in outputs}
        reached = [(term, _reached(term.place)) for term in terms[:_MOST_TERMS]]
        of_models = [(term, nodes) for term, nodes in reached if nodes and nodes & ends]
        self.names = _names([term for term, _ in of_models])
        self._sums: list[Tensor | None] = [None] * len(of_models)
        self._handles: list[RemovableHandle] = []
        for number, edges in enumerate(_meeting(of_models)):
            for node, places in edges.items():
                self._handles.append(node.register_hook(self._hook(number, places)))

    def _hook(self, number: int, places: Sequence[int]) -> Any:
        def arrived(gradients: tuple[Tensor | None, ...], _: object) -> None:
            for place in places:
                gradient = gradients[place] if place < len(gradients) else None
                if type(gradient) is not Tensor or gradient.layout is not torch.strided:
                    continue
                square = gradient.detach().float().square().sum()
                known = self._sums[number]
                if known is None:
                    self._sums[number] = square
                elif known.device == square.device:
                    self._sums[number] = known + square

        return arrived

    def take(self) -> Tensor | None:
        """Remove the hooks; return the share of each term, or None if some sent no gradient."""
        for handle in self._handles:
            handle.remove()
        sums = [total for total in self._sums if total is not None]
        if len(sums) < 2 or len(sums) < len(self._sums) or len({s.device for s in sums}) > 1:
            return None
        norms = torch.stack(sums).sqrt()
        return norms / norms.sum()


def _names(terms: Sequence[Term]) -> tuple[str, ...]:
    """A name for each term: the function that it is, or the operation that it ends in."""
    names: list[str] = []
    for term in terms:
        kind = term.place.kind
        name = term.pattern.function if term.pattern else _FUNCTIONS.get(kind, kind.lower())
        names.append(f"{name} {1 + sum(n.rpartition(' ')[0] == name for n in names)}")
    return tuple(name.removesuffix(" 1") for name in names)


def _meeting(terms: Sequence[tuple[Term, set[Any]]]) -> list[dict[Any, list[int]]]:
    """For each term the edges by which it reaches what all terms reach; none if that is unclear."""
    if len(terms) < 2:
        return []
    shared = set.intersection(*(nodes for _, nodes in terms))
    meeting: list[dict[Any, list[int]]] = []
    for term, nodes in terms:
        if term.place.node in shared:
            return []
        edges: dict[Any, list[int]] = {}
        for node in nodes - shared:
            places = [n for n, (below, _) in enumerate(node.next_functions) if below in shared]
            if places:
                edges[node] = places
        meeting.append(edges)
    return meeting if all(meeting) and sum(map(len, meeting)) <= _HOOKS else []


def _reached(place: Place) -> set[Any] | None:
    """All nodes that a place was computed from, or None where there are too many."""
    seen: set[Any] = {place.node}
    waiting = [place.node]
    while waiting:
        for below, _ in waiting.pop().next_functions:
            if below is not None and below not in seen:
                seen.add(below)
                waiting.append(below)
        if len(seen) > _VISITED:
            return None
    return seen
