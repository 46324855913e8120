"""Readings of what loss functions are given, at the steps at which it was finite."""

from typing import TYPE_CHECKING

import numpy as np

from holter.record import Series
from holter.record.signals import OUTPUT_LOG_NORMALISER, Signal

if TYPE_CHECKING:
    from holter.diagnosis.facts import Facts


def of_finite_outputs(facts: "Facts", signal: Signal, function: str) -> Series:
    """Return the finite readings of a loss function, without steps of non-finite predictions.

    The normaliser tells which: a single -inf among the predictions is the logarithm of a
    probability of 0 and leaves it finite.
    """
    readings = _series(facts, signal, function)
    normaliser = _series(facts, OUTPUT_LOG_NORMALISER, function)
    nonfinite = normaliser.steps[~np.isfinite(normaliser.values)]
    kept = np.isfinite(readings.values) & ~np.isin(readings.steps, nonfinite)
    return Series(readings.steps[kept], readings.values[kept])


def _series(facts: "Facts", signal: Signal, function: str) -> Series:
    """Return the readings of a loss function; empty if there are none."""
    if signal not in facts.run:
        return _EMPTY
    return facts.run[signal].get(function, _EMPTY)


_EMPTY = Series(np.empty(0, np.int64), np.empty(0, np.float32))
