"""Ratios of probabilities, as exp(log p - log q), whose two sides are the same."""

from collections.abc import Iterable

import torch
from torch import Tensor

from holter.watching.collectors.graphs.nodes import Place

_FEWEST = 2  # elements
_ROUNDING = 1e-5


def cancelled_ratio(places: Iterable[Place]) -> Tensor | None:
    """Return whether such a ratio is 1 with a gradient on both sides; None where there is none.

    An importance ratio has a constant below the fraction: log-probabilities of the policy that
    acted. Where both sides have a gradient and are equal, their gradients cancel out.
    """
    for place in places:
        difference = place.operand(0) if place.kind == "Exp" else None
        if difference is None or difference.unarranged().kind != "Sub":
            continue
        ratio = place.saved("result")
        if ratio is None or ratio.numel() < _FEWEST:
            continue
        sides = [each for each in difference.unarranged().operands if each is not None]
        if len(sides) == 1:
            return torch.zeros((), device=ratio.device)
        return ((ratio - 1).abs().max() < _ROUNDING).float()
    return None
