"""Fewer points of a long series: of each stretch the lowest and the highest, NaN included."""

import numpy as np

from holter.record import Series


def thinned(series: Series, points: int) -> Series:
    """Return at most `points` readings; spikes and non-finite values are among them."""
    if len(series) <= points:
        return series
    kept: set[int] = {0, len(series) - 1}
    for part in np.array_split(np.arange(len(series)), max(points // 3, 1)):
        values = series.values[part]
        order = np.argsort(values, kind="stable")  # NaN comes last
        finite = order[np.isfinite(values[order])]
        for places in (order[-1:], finite[:1], finite[-1:]):
            kept.update(part[places].tolist())
    at = sorted(kept)
    return Series(series.steps[at], series.values[at])
