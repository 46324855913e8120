"""Columns of a table, or channels of images, in training beside those in validation."""

from dataclasses import dataclass

import numpy as np

from holter.lab.experiments._samples.datasets import Split
from holter.lab.experiments._samples.parts import Floats

_FEWEST = 40  # samples of either split
FAR, _NEAR = 8.0, 4.0  # standard errors between columns that differ, and those that are the same


@dataclass(frozen=True, slots=True)
class Skew:
    """Of each column: how validation differs, and which column of training it is most like."""

    shift: Floats  # of the mean, in standard deviations of training
    ratio: Floats  # of the standard deviations
    score: Floats  # the shift in standard errors
    origin: Floats  # a permutation if columns are in another order, else its own number


def skew(train: Split, valid: Split) -> Skew | None:
    """Compare the columns of both splits; None where samples have none."""
    known, asked = _columns(train), _columns(valid)
    if known is None or asked is None or known.shape[1] != asked.shape[1]:
        return None
    if min(len(known), len(asked)) < _FEWEST:
        return None
    mean, own = known.mean(axis=0), asked.mean(axis=0)
    spread = np.maximum(known.std(axis=0), 1e-12)
    wide = np.maximum(asked.std(axis=0), 1e-12)
    error = np.sqrt(spread**2 / len(known) + wide**2 / len(asked))
    return Skew(
        (own - mean) / spread,
        wide / spread,
        np.abs(own - mean) / error,
        _origins(known, asked),
    )


def _origins(known: Floats, asked: Floats) -> Floats:
    """Return the column of training that each column of validation is, if that is another order.

    The columns that are out of place have to be far from where they should be, and as near as by
    chance to where they come from.
    """
    count = known.shape[1]
    same = np.arange(count, dtype=np.float64)
    scores = np.stack([_distance(known[:, [n]], asked) for n in range(count)], axis=1)
    nearest = scores.argmin(axis=1)
    moved = np.flatnonzero(nearest != np.arange(count))
    moved = moved[scores[moved, moved] > FAR]
    origin = np.arange(count)
    origin[moved] = nearest[moved]
    if len(moved) < 2 or len(np.unique(origin)) < count:
        return same
    return origin.astype(np.float64) if (scores[moved, origin[moved]] < _NEAR).all() else same


def _distance(column: Floats, asked: Floats) -> Floats:
    """Return how far columns of validation are from one of training, in standard errors."""
    squares = [each.var(axis=0) for each in (column, asked)]
    error = np.sqrt(squares[0] / len(column) + squares[1] / len(asked)) + 1e-12
    means: Floats = np.abs(column.mean(axis=0) - asked.mean(axis=0)) / error
    ratio = np.abs(np.log((np.sqrt(squares[1]) + 1e-12) / (np.sqrt(squares[0]) + 1e-12)))
    widths: Floats = ratio / np.sqrt(1 / len(column) + 1 / len(asked))
    return np.maximum(means, widths)


def _columns(split: Split) -> Floats | None:
    """Return the rows of a table, or the mean of each channel of images."""
    for held in (
        [sample.row for sample in split.samples],
        [sample.channels for sample in split.samples],
    ):
        rows = [each for each in held if each is not None]
        if len(rows) == len(held) and len({len(row) for row in rows}) == 1 and len(rows[0]) > 1:
            made = np.stack(rows)
            return made if np.isfinite(made).all() else None
    return None
