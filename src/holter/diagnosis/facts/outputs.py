"""Readings of what loss functions are given, at the steps at which it was finite."""

import numpy as np

from holter.record import Run, Series
from holter.record.signals import OUTPUT_LOG_NORMALISER, Signal


def of_finite_outputs(run: Run, signal: Signal, owner: str) -> Series:
    """The readings of a share of the samples, where the predictions over classes were finite.

    The normaliser tells: a single -inf among them is the logarithm of a probability of 0.
    """
    share = run[signal].get(owner, _NONE)
    normaliser = (
        run[OUTPUT_LOG_NORMALISER].get(owner, _NONE) if OUTPUT_LOG_NORMALISER in run else _NONE
    )
    lost = normaliser.steps[~np.isfinite(normaliser.values)]
    kept = np.isfinite(share.values) & ~np.isin(share.steps, lost)
    return Series(share.steps[kept], share.values[kept])


_NONE = Series(np.empty(0, np.int64), np.empty(0, np.float32))
