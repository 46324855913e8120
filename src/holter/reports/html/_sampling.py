"""Fewer readings than were recorded, chosen so that no spike and no NaN is lost."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from holter.record.format import ABSENT, Floats
from holter.record.table import Series, Steps, Table

MOST_POINTS = 4_000  # of one curve
_MOST_COLUMNS, _FEWEST_COLUMNS = 400, 40  # of a heat map
_MOST_CELLS = 120_000


@dataclass(frozen=True, slots=True)
class Thinned:
    """Readings of a curve, and of how many they are a selection.

    Of a selection, `middle` is the mean of the finite readings of each part; NaN where there is
    none.
    """

    steps: Steps
    values: Floats
    recorded: int
    middle: Series | None = None


def thinned(series: Series, *, most: int = MOST_POINTS) -> Thinned:
    """Return the smallest and the largest reading of equal parts, and one NaN or Inf of each kind.

    A series that is short enough is returned whole.
    """
    count = len(series)
    if count <= most:
        return Thinned(series.steps, series.values, count)
    starts = np.linspace(0, count, most // 2, endpoint=False).astype(np.int64)
    values = series.values
    finite = np.isfinite(values)
    kept = [np.array([0, count - 1])]
    for sign in (1, -1):
        level = np.where(finite, sign * values, np.inf)
        kept.append(_first_at_minimum(level, starts)[np.minimum.reduceat(level, starts) < np.inf])
    for odd in (np.isnan(values), values == np.inf, values == -np.inf):
        if odd.any():
            rank = np.where(odd, 0.0, 1.0)
            kept.append(_first_at_minimum(rank, starts)[np.logical_or.reduceat(odd, starts)])
    chosen = np.unique(np.concatenate(kept))
    return Thinned(series.steps[chosen], values[chosen], count, _means(series, finite, starts))


def _means(series: Series, finite: npt.NDArray[np.bool_], starts: Steps) -> Series:
    """Return the mean of the finite readings of each part, at its middle."""
    ends = np.append(starts[1:], len(series))
    sums = np.add.reduceat(np.where(finite, series.values, 0.0).astype(np.float64), starts)
    counts = np.add.reduceat(finite.astype(np.int64), starts)
    with np.errstate(invalid="ignore"):
        means = sums / counts
    return Series(series.steps[(starts + ends) // 2], means.astype(np.float32))


def _first_at_minimum(level: npt.NDArray[np.floating], starts: Steps) -> Steps:
    """Return the place of the first smallest entry of each part."""
    lowest = np.repeat(np.minimum.reduceat(level, starts), np.diff(starts, append=len(level)))
    places = np.where(level == lowest, np.arange(len(level)), len(level))
    return np.minimum.reduceat(places, starts)


@dataclass(frozen=True, slots=True)
class Grid:
    """Readings of all owners over steps: the smallest and largest of each cell.

    A cell that holds a NaN is NaN, and one that holds none but an infinity is infinite.
    """

    owners: tuple[str, ...]
    steps: Steps  # the first of each column
    end: int  # the step after the last
    low: Floats  # owners x columns
    high: Floats
    recorded: int  # steps with readings

    @property
    def is_exact(self) -> bool:
        """Whether every column is one step."""
        return self.recorded == len(self.steps)


def grid_of(table: Table) -> Grid:
    """Return all readings of a table in as many columns as a page can hold."""
    rows = table.rows()
    read = rows.present.any(axis=1)  # a record may hold other signals only
    steps, values, present = rows.steps[read], rows.values[read], rows.present[read]
    if not len(steps):
        nothing = np.empty((len(rows.owners), 0), np.float32)
        return Grid(rows.owners, steps, 0, nothing, nothing, 0)
    most = int(np.clip(_MOST_CELLS // max(len(rows.owners), 1), _FEWEST_COLUMNS, _MOST_COLUMNS))
    end = int(steps[-1]) + 1
    starts = np.arange(len(steps))
    if len(steps) > most:
        edges = np.linspace(steps[0], end, most, endpoint=False)
        starts = np.unique(np.searchsorted(steps, edges))
    finite = present & np.isfinite(values)
    high = np.maximum.reduceat(np.where(finite, values, -np.inf), starts)
    low = np.minimum.reduceat(np.where(finite, values, np.inf), starts)
    holds_any = np.logical_or.reduceat(present, starts)
    for odd in (-np.inf, np.inf, np.nan):
        is_odd = np.isnan(values) if np.isnan(odd) else values == odd
        holds = np.logical_or.reduceat(present & is_odd, starts)
        high, low = np.where(holds, odd, high), np.where(holds, odd, low)
    high, low = high.astype(np.float32), low.astype(np.float32)
    high[~holds_any], low[~holds_any] = ABSENT, ABSENT
    return Grid(
        rows.owners,
        steps[starts],
        end,
        np.ascontiguousarray(low.T),
        np.ascontiguousarray(high.T),
        len(steps),
    )
