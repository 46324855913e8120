"""Whether numbers that a data set holds were standardised by their own mean and deviation."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from torch.utils.data import Subset

from holter.lab.experiments._samples.parts import Array, array

_FEWEST = 50  # rows
_MEAN, _STD = 1e-4, 2e-3  # distance from 0 and 1; samples of any size are farther by chance
_DEPTH = 2
_COLUMNS = 4096


def is_own(dataset: Any) -> bool | None:
    """Whether an array of the data set has exactly mean 0 and deviation 1, in each column.

    None if it holds no array of numbers that could tell. Rows that are standardised one by one
    would have the same without any statistics of others.
    """
    held = [made for made in _arrays(dataset, _DEPTH) if _is_table(made)]
    if not held:
        return None
    return any(_is_standardised(made) for made in held)


def _arrays(thing: Any, depth: int) -> Iterator[Array]:
    made = array(thing) if not isinstance(thing, int | float) else None
    if made is not None:
        yield made
    elif depth and not isinstance(thing, Subset):
        inside = (
            thing
            if isinstance(thing, tuple | list)
            else vars(thing).values()
            if hasattr(thing, "__dict__")
            else ()
        )
        if len(inside) <= 64:
            for each in inside:
                yield from _arrays(each, depth - 1)


def _is_table(made: Array) -> bool:
    return made.dtype.kind == "f" and made.ndim >= 1 and len(made) >= _FEWEST


def _is_standardised(made: Array) -> bool:
    rows = made.reshape(len(made), -1).astype(np.float64)
    if rows.shape[1] > _COLUMNS or not np.isfinite(rows).all():
        return False
    if rows.shape[1] > 2 and _is_exact(rows.T):  # each row by itself
        return False
    return _is_exact(rows) or _is_exact(rows.reshape(-1, 1))


def _is_exact(rows: Array) -> bool:
    """Whether each column that varies has mean 0 and deviation 1; either definition of it."""
    spread = rows.std(axis=0)
    varying = rows[:, spread > 0]
    if not varying.size:
        return False
    own = np.minimum(np.abs(varying.std(axis=0) - 1), np.abs(varying.std(axis=0, ddof=1) - 1))
    return bool((np.abs(varying.mean(axis=0)) < _MEAN).all() and (own < _STD).all())
