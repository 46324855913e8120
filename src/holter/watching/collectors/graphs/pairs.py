"""Differences that pair every prediction with every target, because their shapes differ."""

import math
from collections.abc import Iterable

import torch
from torch import Tensor

from holter.watching.collectors.graphs.nodes import Place
from holter.watching.collectors.graphs.outputs import kept_at

_FEWEST = 3  # samples: fewer may be as many as something else is wide
_ELEMENTWISE = frozenset(("Sigmoid", "Tanh", "Relu", "Exp", "Softplus", "Neg"))
_COLUMNS = frozenset(("Alias", "Slice", "Select", "Narrow", "Split", "SplitWithSizes", "Unbind"))
_STEPS = 4  # such operations behind an output


def paired_spread(places: Iterable[Place]) -> Tensor | None:
    """Return the spread of predictions over that of targets where each pair of them is compared.

    None where no difference pairs them. Axes that a script inserts are meant for pairs: only what
    a model returned, (N, 1) or (N,), counts, and only beside targets that are no part of the graph.
    The difference is read where an operation has saved it: square, absolute value, cosh, clamp.
    """
    for place in places:
        minus = place.operand(0)
        minus = None if minus is None else minus.unarranged()
        prediction = None if minus is None or minus.kind != "Sub" else minus.dynamic
        if minus is None or prediction is None or not _is_output(prediction):
            continue
        if place.kind == "Mul" and place.operand(0) != place.operand(1):
            continue
        pairs, given, difference = minus.shape, prediction.shape, place.saved("self")
        if pairs is None or given is None or difference is None or len(pairs) != 2:
            continue
        samples = pairs[0]
        if samples < _FEWEST or pairs[1] != samples or math.prod(given) != samples:
            continue
        table = difference.reshape(pairs).to(torch.float32)
        along = 0 if given[0] == samples and len(given) == 2 else 1
        return table.std(along).mean() / table.std(1 - along).mean()
    return None


def _is_output(place: Place) -> bool:
    """Whether a model returned this, or as a column, but for operations on single elements."""
    for _ in range(_STEPS):
        if kept_at(place) is not None:
            return True
        below = place.dynamic if place.kind in _ELEMENTWISE | _COLUMNS else None
        if below is None:
            return False
        place = below
    return False
