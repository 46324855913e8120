"""Sparklines: a curve as one line of blocks, in which NaN is a letter of its own."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.signal_words import source
from holter.record import Run, Series
from holter.record.signals import GRAD_TOTAL_NORM, LOSS, LR, VAL_LOSS

_BLOCKS = "▁▂▃▄▅▆▇█"
_BROKEN = "x"  # something in it is not finite
_SHOWN = (LOSS, VAL_LOSS, GRAD_TOTAL_NORM, LR)


def sparkline(series: Series, width: int) -> str:
    """Draw a series in at most `width` characters: the mean of each part, from least to largest."""
    parts = np.array_split(series.values.astype(np.float64), max(min(width, len(series)), 1))
    means = [float(part.mean()) if np.isfinite(part).all() else np.nan for part in parts]
    finite = [mean for mean in means if np.isfinite(mean)]
    if not finite:
        return _BROKEN * len(means)
    low, span = min(finite), max(finite) - min(finite)

    def block(mean: float) -> str:
        if not np.isfinite(mean):
            return _BROKEN
        return _BLOCKS[round((len(_BLOCKS) - 1) * (mean - low) / span)] if span else _BLOCKS[0]

    return "".join(map(block, means))


def sparklines(run: Run, width: int) -> Iterator[tuple[str, str]]:
    """The main curves of a run: the name of each, and its line with the first and last value."""
    for signal in _SHOWN:
        if signal not in run:
            continue
        for owner, series in run[signal].items():
            if len(series) > 1:
                name = source(signal, owner)
                first, last = (_number(float(series.values[place])) for place in (0, -1))
                room = max(width - 18, 8)  # eight characters for each number
                yield name, f"{first:>8} {sparkline(series, room)} {last}".rstrip()


def _number(value: float) -> str:
    return f"{value:.3g}" if np.isfinite(value) else ""  # the line shows that it is none
