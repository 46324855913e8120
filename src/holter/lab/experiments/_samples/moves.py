"""Flips and rotations of dense samples: which one turns a version of an array into another.

Arrays are reduced to maps of at most 32 x 32 whose cells are means. These means commute with all
symmetries of the square, and suppress noise.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np

from holter.lab.experiments._samples.parts import Array, Floats

IDENTITY = "identity"
_STRAIGHT: Mapping[str, Callable[[Any], Any]] = MappingProxyType(
    {
        IDENTITY: lambda made: made,
        "left-right flip": lambda made: made[..., ::-1],
        "up-down flip": lambda made: made[..., ::-1, :],
        "rotation by 180 degrees": lambda made: made[..., ::-1, ::-1],
    }
)
_TURNED: Mapping[str, Callable[[Any], Any]] = MappingProxyType(
    {
        "transposition": lambda made: made.swapaxes(-1, -2),
        "rotation by 90 degrees": lambda made: made.swapaxes(-1, -2)[..., ::-1, :],
        "rotation by 270 degrees": lambda made: made.swapaxes(-1, -2)[..., ::-1],
        "anti-transposition": lambda made: made.swapaxes(-1, -2)[..., ::-1, ::-1],
    }
)
_LEAST = 4  # size of a spatial axis
_CELLS = 32  # of a map along an axis
_CHANNELS = 4  # of an input that are compared
_CLEARLY = 0.5  # distance of the best symmetry over that of the second best
_CHANGED = 0.05  # standard deviations by which a symmetry has to change an array


@dataclass(frozen=True, slots=True)
class Pair:
    """The maps of an input and of its dense target, each of channels, rows and columns."""

    input: Floats
    target: Floats
    alike: bool  # of the same shape, so that both may be views or inputs


def pair_of(given: Array | None, target: Array | None) -> Pair | None:
    """Return the maps of an input and a target, or None where their spatial sizes do not match."""
    if given is None or target is None or "c" in (given.dtype.kind, target.dtype.kind):
        return None
    for one in _layouts(given):
        for other in _layouts(target):
            if _fits(one.shape[-2:], other.shape[-2:]):
                return Pair(
                    _reduced(one[:_CHANNELS]),
                    _reduced(_one_channel(other)),
                    given.shape == target.shape,
                )
    return None


def move(one: Floats, other: Floats) -> str | None:
    """Return the symmetry that turns `one` into `other`, or None where that is not clear.

    Brightness and contrast of each channel are ignored. It is not clear for arrays that are
    symmetric, and for those that changed in another way.
    """
    if one.shape != other.shape or not (np.isfinite(one).all() and np.isfinite(other).all()):
        return None
    varied = (np.ptp(one, axis=(1, 2)) > 0) & (np.ptp(other, axis=(1, 2)) > 0)
    if not varied.any():
        return None
    one, other = _standardised(one[varied]), _standardised(other[varied])
    symmetries = {**_STRAIGHT, **(_TURNED if one.shape[-1] == one.shape[-2] else {})}
    distances = {name: _distance(turn(one), other) for name, turn in symmetries.items()}
    best, second = sorted(distances, key=lambda name: distances[name])[:2]
    if distances[best] >= _CLEARLY * distances[second]:
        return None
    changed = min(_distance(turn(one), one) for turn in list(symmetries.values())[1:])
    return best if changed >= _CHANGED and distances[best] < _CLEARLY * changed else None


def moves(one: Pair, other: Pair) -> list[tuple[str, str]]:
    """Return the moves of input and target from one version of a sample to another.

    It is empty where one of the two is not clear, or both are the identity.
    """
    given = move(one.input, other.input)
    target = None if given is None else move(one.target, other.target)
    if given is None or target is None or given == target == IDENTITY:
        return []
    return [(given, target)]


def _layouts(made: Array) -> list[Array]:
    """Return an array as channels, rows and columns, in each way in which it may be an image."""
    if made.ndim == 2:
        found = [made[None]]
    elif made.ndim == 3:
        found = [made, np.moveaxis(made, -1, 0)]
    elif made.ndim == 4:
        found = [made.reshape(-1, *made.shape[-2:])]
    else:
        found = []
    return [each for each in found if min(each.shape[-2:]) >= _LEAST]


def _fits(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether sizes are the same, or the same multiple in both directions."""
    small, large = sorted((one, other))
    factor = large[0] // small[0]
    return large == tuple(factor * size for size in small)


def _one_channel(made: Array) -> Array:
    """Return a target as one channel whose values do not depend on what a flip does to channels.

    A flip may exchange the channels of left and right key points, and the signs of a flow.
    """
    if len(made) == 1:
        return made
    total: Array = np.abs(made.astype(np.float64)).sum(axis=0, keepdims=True)
    if np.ptp(total) > 1e-3 * np.abs(total).max():
        return total
    numbers: Array = np.tensordot(np.arange(len(made)), made, 1)[None]  # of one-hot classes
    return numbers


def _reduced(made: Array) -> Floats:
    rows, columns = (_means(size) for size in made.shape[-2:])
    reduced: Floats = rows @ made.astype(np.float64) @ columns.T
    return reduced


@lru_cache(maxsize=16)
def _means(size: int) -> Floats:
    """Return the matrix that takes means of equal parts of an axis."""
    cells = min(size, _CELLS)
    edges, places = np.arange(cells + 1) * size / cells, np.arange(size)
    over = np.minimum(edges[1:, None], places + 1) - np.maximum(edges[:-1, None], places)
    weights: Floats = np.clip(over, 0, None) * cells / size
    return weights


def _standardised(made: Floats) -> Floats:
    centred: Floats = made - made.mean(axis=(1, 2), keepdims=True)
    standardised: Floats = centred / centred.std(axis=(1, 2), keepdims=True)
    return standardised


def _distance(one: Floats, other: Floats) -> float:
    return float(np.abs(one - other).mean())
