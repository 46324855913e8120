"""Loss functions written by hand, recognised by the operations of their graph.

The graph holds what backward needs, and that is nearly always the prediction and the target: an
index is saved by `gather`, labels by a product, a difference by its square.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import torch

from holter.watching.collectors.graphs.binary import log_loss
from holter.watching.collectors.graphs.classes import (
    gathered,
    indexed,
    labelled_product,
    logged,
)
from holter.watching.collectors.graphs.nodes import Place
from holter.watching.collectors.graphs.numbers import absolutes, own_product, squares
from holter.watching.collectors.graphs.pattern import Pattern

_PATTERNS: Mapping[str, tuple[Callable[[Place], Pattern | None], ...]] = MappingProxyType(
    {
        "Pow": (squares,),
        "Abs": (absolutes,),
        "Mul": (own_product, labelled_product),
        "Gather": (gathered,),
        "Index": (indexed,),
        "Log": (logged,),
        "Add": (log_loss,),
        "Sub": (log_loss,),
    }
)


@torch.no_grad()
def recognised(place: Place) -> Pattern | None:
    """The loss function that is computed at a place, or None."""
    for read in _PATTERNS.get(place.kind, ()):
        pattern = read(place)
        if pattern is not None:
            return pattern
    return None
