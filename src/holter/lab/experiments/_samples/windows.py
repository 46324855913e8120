"""Overlapping windows: validation samples that hold a part of a training sample, shifted."""

import numpy as np

from holter.lab.experiments._samples.datasets import Split
from holter.lab.experiments._samples.pieces import Hashes, Pieces

_PART = 0.25  # share of the pieces of a validation sample
_FEWEST = 4  # pieces of it
_COMMON = 0.1  # share of training samples that hold a piece which belongs to no single recording


def overlapping_windows(train: Split, valid: Split) -> tuple[tuple[int, int], ...] | None:
    """Return validation samples and training samples that share a part; None if that is unknown."""
    known = [sample.pieces for sample in train.samples]
    asked = [sample.pieces for sample in valid.samples]
    owned = [each for each in known if each is not None]
    if len(owned) < len(known) or any(each is None for each in asked):
        return None
    if not sum(len(each.hashes) for each in owned):
        return None
    index = _Index(owned)
    found = []
    for sample, pieces in zip(valid.samples, asked, strict=True):
        owner = index.shared(pieces) if pieces is not None else None
        if owner is not None:
            found.append((sample.index, train.samples[owner].index))
    return tuple(found)


class _Index:
    """All pieces of training, in the order of their hashes."""

    def __init__(self, owned: list[Pieces]) -> None:
        hashes = np.concatenate([each.hashes for each in owned])
        order = np.argsort(hashes, kind="stable")
        self._hashes: Hashes = hashes[order]
        self._places = np.concatenate([each.places for each in owned])[order]
        sizes = [len(each.hashes) for each in owned]
        self._owners = np.repeat(np.arange(len(owned)), sizes)[order]
        self._common = max(_COMMON * len(owned), 4)

    def shared(self, pieces: Pieces) -> int | None:
        """Return a training sample that shares a large part with these pieces, shifted; or None."""
        count = len(pieces.hashes)
        if count < _FEWEST:
            return None
        first = np.searchsorted(self._hashes, pieces.hashes, side="left")
        last = np.searchsorted(self._hashes, pieces.hashes, side="right")
        hits = np.flatnonzero((last > first) & (last - first <= self._common))
        moved = [n for n in hits if (self._places[first[n] : last[n]] != pieces.places[n]).all()]
        if len(moved) < max(_PART * count, _FEWEST):
            return None
        return int(self._owners[first[moved[0]]])
