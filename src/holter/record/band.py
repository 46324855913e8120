"""The band that recent losses stay in, and what counts as a spike out of it.

One definition for the black box, which sees losses as they arrive, for the replay, and for rules.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

WINDOW = 64  # recent losses that make the band
SPIKE = 8.0  # spreads above the median from which a loss is a spike
SHARE = 0.02  # of the median: a smaller rise is no spike however calm the curve
SPREAD_PER_MAD = 1.4826  # standard deviation over median absolute deviation, of a normal one

_CHUNK = 8192  # windows sorted at a time, so that memory stays bounded


@dataclass(frozen=True, slots=True)
class Band:
    """The median of some losses and their robust standard deviation."""

    median: float
    spread: float

    @classmethod
    def of(cls, losses: npt.ArrayLike) -> "Band":
        """The band of these losses; they must be finite, and at least one."""
        values = np.asarray(losses, np.float64)
        median = float(np.median(values))
        return cls(median, SPREAD_PER_MAD * float(np.median(np.abs(values - median))))

    @classmethod
    def of_few(cls, losses: Iterable[float]) -> "Band":
        """The same of a few losses, in a fraction of the time."""
        values = sorted(losses)
        median = _median(values)
        return cls(median, SPREAD_PER_MAD * _median(sorted([abs(v - median) for v in values])))

    def ceiling(self, spreads: float = SPIKE) -> float:
        """The loss above which there is a spike."""
        return self.median + max(spreads * self.spread, SHARE * abs(self.median), 1e-12)


def _median(ordered: list[float]) -> float:
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


def ceilings(
    losses: npt.NDArray[np.float64], *, window: int = WINDOW, spreads: float = SPIKE
) -> npt.NDArray[np.float64]:
    """Return the ceiling of the `window` losses before each loss from the `window`-th on."""
    if len(losses) <= window:
        return np.empty(0)
    windows = np.lib.stride_tricks.sliding_window_view(losses, window)[:-1]
    parts = []
    for start in range(0, len(windows), _CHUNK):
        chunk = windows[start : start + _CHUNK]
        medians = np.median(chunk, axis=1)
        deviations = np.median(np.abs(chunk - medians[:, None]), axis=1)
        rise = np.maximum(spreads * SPREAD_PER_MAD * deviations, SHARE * np.abs(medians))
        parts.append(medians + np.maximum(rise, 1e-12))
    return np.concatenate(parts)
