"""Whether targets depend on inputs in any way that is easily seen.

Two statistics are compared with what they are for permuted targets: how well the nearest samples
predict a target, and the strongest relation of a single column. What neither of them finds may be
there nevertheless, as in parity.
"""

from dataclasses import dataclass

import numpy as np

from holter.lab.experiments._samples.datasets import Split
from holter.lab.experiments._samples.keys import targets_of
from holter.lab.experiments._samples.parts import Floats

_FEWEST, _MOST = 200, 1000  # samples
_CLASSES = 100
_NEIGHBOURS = 5
_PERMUTATIONS = 19


@dataclass(frozen=True, slots=True)
class Dependence:
    """Two statistics, each with the highest of permuted targets."""

    neighbours: float
    neighbours_permuted: float
    column: float
    column_permuted: float


def dependence(split: Split) -> Dependence | None:
    """Measure how targets depend on inputs; None where these are no numbers, or too few."""
    inputs, targets = _inputs(split), targets_of(split)
    if inputs is None or targets is None or len(targets) < _FEWEST or not split.arrives:
        return None
    inputs, targets = inputs[:_MOST], targets[:_MOST]
    spread = inputs.std(axis=0)
    inputs = (inputs - inputs.mean(axis=0))[:, spread > 0] / spread[spread > 0]
    kinds, codes = np.unique(targets, return_inverse=True)
    is_class = all(sample.is_class for sample in split.samples) and len(kinds) <= _CLASSES
    if not inputs.shape[1] or len(kinds) < 2 or not np.isfinite(inputs).all():
        return None
    aims = np.eye(len(kinds))[codes] if is_class else targets[:, None]
    aims = aims - aims.mean(axis=0)
    near = _nearest(inputs)
    generator = np.random.default_rng(0)
    orders = [np.arange(len(aims))]
    orders += [generator.permutation(len(aims)) for _ in range(_PERMUTATIONS)]
    neighbours = [_agreement(near, aims[order]) for order in orders]
    columns = [_strongest(inputs, aims[order]) for order in orders]
    return Dependence(neighbours[0], max(neighbours[1:]), columns[0], max(columns[1:]))


def _inputs(split: Split) -> Floats | None:
    """Return the inputs as rows of numbers: of a table, of a few elements, or counts of tokens."""
    for held in (
        [sample.row for sample in split.samples],
        [sample.probe for sample in split.samples],
        [sample.bag for sample in split.samples],
    ):
        rows = [each for each in held if each is not None]
        if len(rows) == len(held) and len({len(row) for row in rows}) == 1:
            return np.stack(rows).astype(np.float64)
    return None


def _nearest(inputs: Floats) -> "np.ndarray[tuple[int, int], np.dtype[np.intp]]":
    squares = (inputs**2).sum(axis=1)
    distances = squares[:, None] + squares - 2 * inputs @ inputs.T
    np.fill_diagonal(distances, np.inf)
    return np.argpartition(distances, _NEIGHBOURS, axis=1)[:, :_NEIGHBOURS]


def _agreement(near: "np.ndarray[tuple[int, int], np.dtype[np.intp]]", aims: Floats) -> float:
    """Return the covariance of a target and the mean of its neighbours', as a share."""
    return float((aims[near].mean(axis=1) * aims).sum() / (aims**2).sum())


def _strongest(inputs: Floats, aims: Floats) -> float:
    """Return the largest share of the targets' variance that a line through a column explains."""
    explained = (inputs.T @ aims) ** 2 / len(inputs)
    return float(explained.sum(axis=1).max() / (aims**2).sum())
