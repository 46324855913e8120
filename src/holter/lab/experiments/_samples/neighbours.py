"""Validation samples that are almost training samples: noise, crops and copies of the same."""

import numpy as np

from holter.lab.experiments._samples.datasets import Split
from holter.lab.experiments._samples.parts import Floats

_NEAR = 0.05  # of the distance to the tenth nearest
_FAR, _FARTHER = 10, 20  # neighbours whose distances tell the dimension of the data
_DIMENSION = 2.5  # in fewer, the nearest of many samples is near by chance
_FEWEST = 100  # training samples
_LEAST = 8  # elements of a sample
_BLOCK = 256  # validation samples that are compared at once


def near_pairs(train: Split, valid: Split) -> tuple[tuple[int, int], ...] | None:
    """Return validation and training samples that are almost equal; None if that is unknown."""
    known, asked = _probes(train), _probes(valid)
    if known is None or asked is None or known.shape[1] != asked.shape[1]:
        return None
    if len(known) < _FEWEST or known.shape[1] < _LEAST:
        return None
    spread = known.std(axis=0)
    kept = spread > 0
    if kept.sum() < _LEAST:
        return None
    known, asked = known[:, kept] / spread[kept], asked[:, kept] / spread[kept]
    nearest, distances = _nearest(known, asked)
    far, farther = distances[:, _FAR - 1], distances[:, _FARTHER - 1]
    growth = float(np.median(np.log(np.maximum(farther, 1e-300) / np.maximum(far, 1e-300))))
    if growth <= 0 or np.log(_FARTHER / _FAR) / growth < _DIMENSION:
        return None
    first = distances[:, 0]
    is_near = (first < _NEAR * far) & (first > 1e-6 * far)
    return tuple(
        (valid.samples[at].index, train.samples[nearest[at]].index)
        for at in np.flatnonzero(is_near)
    )


def _probes(split: Split) -> Floats | None:
    """The probed elements of all samples, if all have as many and they are finite."""
    probes = [sample.probe for sample in split.samples if sample.probe is not None]
    if len(probes) < len(split.samples) or len({len(probe) for probe in probes}) != 1:
        return None
    made = np.stack(probes)
    return made if np.isfinite(made).all() else None


def _nearest(
    known: Floats, asked: Floats
) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], Floats]:
    """The nearest known sample of each that is asked for, and its distances to the nearest ones."""
    squares = (known**2).sum(axis=1)
    places, found = [], []
    for start in range(0, len(asked), _BLOCK):
        block = asked[start : start + _BLOCK]
        apart = np.maximum((block**2).sum(axis=1)[:, None] + squares - 2 * block @ known.T, 0.0)
        order = np.argpartition(apart, _FARTHER, axis=1)[:, : _FARTHER + 1]
        order = np.take_along_axis(order, np.take_along_axis(apart, order, 1).argsort(1), 1)
        places.append(order[:, 0])
        # The difference itself: squares that almost cancel leave nothing of a small distance.
        exact = np.linalg.norm(block - known[order[:, 0]], axis=1)
        distances = np.sqrt(np.take_along_axis(apart, order, 1))
        distances[:, 0] = exact
        found.append(distances)
    return np.concatenate(places), np.concatenate(found)
