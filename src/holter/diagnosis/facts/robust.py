"""Levels, noise and standard errors that a few wild readings cannot spoil."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]

_SIGMA_PER_MAD = 1.4826  # of a normal distribution
_WILD = 6.0  # standard deviations from the median at which a reading is cut off
_MIDMEAN_ERROR = 1.09  # standard error of a midmean over that of a mean; 1.25 for a median


def midmean(values: Values) -> float:
    """The mean of the middle half: as calm as a mean, and deaf to outliers like a median."""
    quarter = len(values) // 4
    return float(np.sort(values)[quarter : len(values) - quarter].mean())


def noise(pieces: Sequence[Values]) -> float:
    """Standard deviation of readings about the median of their piece, from absolute deviations.

    Where more than half of them are exactly 0 their median says nothing: the plain one is taken.
    """
    residuals = np.concatenate([piece - np.median(piece) for piece in pieces])
    deviation = _SIGMA_PER_MAD * float(np.median(np.abs(residuals)))
    return deviation or float(np.std(residuals))


def midmean_error(sigma: float, *counts: int) -> float:
    """Standard error of a midmean of so many readings, or of the difference of several."""
    return _MIDMEAN_ERROR * sigma * float(np.sqrt(sum(1 / count for count in counts)))


def clipped_mean(values: Values) -> tuple[float, float]:
    """Return the mean and its standard error, with outliers cut off.

    Not a midmean: the best constant prediction gives a mean, and losses of rare classes are skewed.
    """
    if not len(values):
        return np.nan, np.inf
    middle = float(np.median(values))
    spread = _SIGMA_PER_MAD * float(np.median(np.abs(values - middle))) or float(values.std())
    cut = np.clip(values, middle - _WILD * spread, middle + _WILD * spread)
    return float(cut.mean()), float(cut.std() / np.sqrt(len(cut)))
