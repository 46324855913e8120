"""Inputs of a model as a matrix: numbers as they are, categories one-hot, tokens counted."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

_FEW = 8  # integers of a row that are categories, one by one; more are a sequence of tokens
_CLIP = 8.0  # standard deviations: one row must not decide the others


@dataclass(frozen=True, slots=True)
class Features:
    """Rows of both splits as standardised columns, and how often each token occurs in a row."""

    train: Floats
    valid: Floats
    counts: tuple[Floats, Floats] | None  # where there are sequences of tokens


def features_of(
    train: Mapping[str, Array], valid: Mapping[str, Array], *, columns: int
) -> Features | None:
    """Return features of both splits with at most about `columns` columns; None without any.

    Everything that is estimated is estimated from training rows.
    """
    made: list[tuple[Floats, Floats]] = []
    counted: list[tuple[Floats, Floats]] = []
    paths = sorted(set(train) & set(valid))
    columns = max(columns // max(len(paths), 1), _FEW)
    for path in paths:
        pair = _alike(train[path], valid[path])
        if pair is None:
            continue
        if pair[0].dtype.kind == "f":
            made.append((_numbers(pair[0], columns), _numbers(pair[1], columns)))
        elif pair[0].dtype.kind == "b":
            made.append((_numbers(pair[0] * 1.0, columns), _numbers(pair[1] * 1.0, columns)))
        elif pair[0].dtype.kind in "iu":
            own, other = (each.reshape(len(each), -1) for each in pair)
            is_sequence = own.shape[1] > _FEW
            known = (_bags if is_sequence else _one_hot)(own, other, columns)
            (counted if is_sequence else made).append(known)
    if not made and not counted:
        return None
    made += [(np.log1p(own), np.log1p(other)) for own, other in counted]
    own, other = (np.concatenate([pair[side] for pair in made], axis=1) for side in (0, 1))
    bags = None
    if counted:
        bags = tuple(np.concatenate([pair[side] for pair in counted], axis=1) for side in (0, 1))
    return _standardised(own, other, bags)  # type: ignore[arg-type]


def _alike(own: Array, other: Array) -> tuple[Array, Array] | None:
    """Return both with the same shape of a row: sequences filled up with zeros."""
    if own.ndim != other.ndim:
        return None
    longest = np.maximum(own.shape[1:], other.shape[1:]).astype(int)

    def filled(array: Array) -> Array:
        gaps = [(0, 0), *((0, n - m) for n, m in zip(longest, array.shape[1:], strict=True))]
        return np.pad(array, gaps)

    return filled(own), filled(other)


def _numbers(leaf: Array, columns: int) -> Floats:
    """Return the numbers of each row; means of neighbours, where there are too many."""
    values = leaf.astype(np.float64)
    while values[0].size > columns and values.ndim > 1:
        axis = 1 + int(np.argmax(values.shape[1:]))
        length = values.shape[axis]
        if length < 2:
            break
        ends = np.arange(0, length, 2)
        sizes = np.diff(np.append(ends, length))
        shape = [1] * values.ndim
        shape[axis] = len(sizes)
        values = np.add.reduceat(values, ends, axis=axis) / sizes.reshape(shape)
    return values.reshape(len(values), -1)


def _one_hot(own: Array, other: Array, columns: int) -> tuple[Floats, Floats]:
    """Return a column for each value of each integer; the most frequent ones if there are many."""
    share = max(columns // own.shape[1], 2)
    pieces: list[tuple[Floats, Floats]] = []
    for place in range(own.shape[1]):
        values, times = np.unique(own[:, place], return_counts=True)
        kept = values[np.argsort(-times, kind="stable")[:share]]
        pieces.append(
            tuple((side[:, place, None] == kept).astype(np.float64) for side in (own, other))
        )
    first, second = (np.concatenate([piece[side] for piece in pieces], axis=1) for side in (0, 1))
    return first, second


def _bags(own: Array, other: Array, columns: int) -> tuple[Floats, Floats]:
    """Return how often the most frequent tokens occur in each row."""
    values, times = np.unique(own, return_counts=True)
    kept = np.sort(values[np.argsort(-times, kind="stable")[:columns]])
    return _counts(own, kept), _counts(other, kept)


def _counts(rows: Array, kept: Array) -> Floats:
    places = np.minimum(np.searchsorted(kept, rows), len(kept) - 1)
    row, column = np.nonzero(kept[places] == rows)
    table = np.zeros((len(rows), len(kept)))
    np.add.at(table, (row, places[row, column]), 1.0)
    return table


def _standardised(own: Floats, other: Floats, bags: tuple[Floats, Floats] | None) -> Features:
    own, other = (np.where(np.isfinite(side), side, np.nan) for side in (own, other))
    held = np.isfinite(own)
    count = np.maximum(held.sum(axis=0), 1)
    mean = np.where(held, own, 0.0).sum(axis=0) / count
    own, other = (np.where(np.isnan(side), mean, side) for side in (own, other))
    spread = own.std(axis=0)
    varies = spread > 1e-9 * np.maximum(np.abs(mean), 1e-300)
    scaled = [(side[:, varies] - mean[varies]) / spread[varies] for side in (own, other)]
    first, second = (np.clip(side, -_CLIP, _CLIP) for side in scaled)
    return Features(first, second, bags)
