"""Which output of a sample a regression compares with its target."""

from collections.abc import Iterable

from holter.watching.collectors.graphs.nodes import Place
from holter.watching.collectors.graphs.outputs import kept_at

_REGRESSIONS = frozenset(("MseLoss", "SmoothL1Loss", "HuberLoss", "L1Loss", "Pow"))
_LARGEST = frozenset(("Max", "Amax"))
_CHOSEN = frozenset(("Gather", "Index", "Select"))
_STEPS = 4  # between an output and the choice


def compares_largest(places: Iterable[Place]) -> bool | None:
    """Return whether a regression is on the largest output of each sample, not on a chosen one.

    None if there is no regression, or if it chooses none of the outputs.
    """
    places = list(places)
    if not any(place.kind in _REGRESSIONS for place in places):
        return None
    largest = any(place.kind in _LARGEST and _is_by_sample(place) for place in places)
    chosen = any(place.kind in _CHOSEN and _output_below(place) is not None for place in places)
    return None if not (largest or chosen) else largest and not chosen


def _is_by_sample(place: Place) -> bool:
    """Whether the largest of several outputs is taken for each sample."""
    output = _output_below(place)
    shape = None if output is None else output.shape
    made = place.shape
    if shape is None or made is None or len(shape) != 2 or shape[1] < 2:
        return False
    return made in ((shape[0],), (shape[0], 1))


def _output_below(place: Place) -> Place | None:
    """The output of a model that a place is computed from without further operations."""
    below = place.operand(0)
    for _ in range(_STEPS):
        if below is None or kept_at(below) is not None:
            return below
        below = below.operand(0) if below.is_arranged else None
    return None
