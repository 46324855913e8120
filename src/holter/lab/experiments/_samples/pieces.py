"""Pieces of samples: windows of one recording hold the same numbers at different places.

A piece is a few numbers in a row. Of all pieces of a sample those are kept whose hash is divisible
by a number, so that equal pieces are kept wherever they are.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint64]

_LENGTH = 8  # numbers of a piece
_KEPT = 256  # pieces of a sample, about
_SHORTEST, _LONGEST = 16, 2**16  # numbers of a sample
_FACTORS = np.random.default_rng(0).integers(0, 2**63, _LENGTH, dtype=np.uint64) * 2 + 1


class Pieces(NamedTuple):
    """Hashes of the pieces of a sample, and where they begin."""

    hashes: Hashes
    places: npt.NDArray[np.int64]


def pieces_of(made: npt.NDArray[Any] | None) -> Pieces | None:
    """Return the pieces of a sample of floating-point numbers in which no two neighbours are equal.

    Padding, silence and borders are equal in samples that have nothing to do with one another.
    """
    if made is None or made.dtype.kind != "f" or not _SHORTEST <= made.size <= _LONGEST:
        return None
    flat = np.ascontiguousarray(made, np.float64).reshape(-1)
    words = flat.view(np.uint64)
    count = len(flat) - _LENGTH + 1
    hashes = np.zeros(count, np.uint64)
    for place, factor in enumerate(_FACTORS):
        part = words[place : place + count]
        hashes += (part ^ (part >> np.uint64(29))) * factor
    hashes ^= hashes >> np.uint64(31)
    changes = np.concatenate([[0], np.cumsum(flat[1:] != flat[:-1])])
    varied = changes[_LENGTH - 1 :] - changes[:count] == _LENGTH - 1
    kept = varied & (hashes % np.uint64(max(made.size // _KEPT, 1)) == 0)
    places = np.flatnonzero(kept)
    return Pieces(hashes[places], places)
