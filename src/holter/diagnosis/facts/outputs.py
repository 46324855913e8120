"""Readings of what loss functions are given, at the steps at which it was finite."""

from typing import TYPE_CHECKING

import numpy as np

from holter.record import Series
from holter.record.signals import OUTPUT_LOG_NORMALISER, Signal

if TYPE_CHECKING:
    from holter.diagnosis.facts import Facts


def of_finite_outputs(facts: "Facts", signal: Signal, owner: str) -> Series:
    """The readings of a share of the samples, where the predictions over classes were finite.

    The normaliser tells: a single -inf among them is the logarithm of a probability of 0.
    """
    share = facts.run[signal].get(owner, _NONE)
    normaliser = (
        facts.run[OUTPUT_LOG_NORMALISER].get(owner, _NONE)
        if OUTPUT_LOG_NORMALISER in facts.run
        else _NONE
    )
    lost = normaliser.steps[~np.isfinite(normaliser.values)]
    kept = np.isfinite(share.values) & ~np.isin(share.steps, lost)
    return Series(share.steps[kept], share.values[kept])


_NONE = Series(np.empty(0, np.int64), np.empty(0, np.float32))
