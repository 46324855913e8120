"""Sums and means: how the loss that backward() is called on depends on the size of a batch."""

from typing import TYPE_CHECKING

import numpy as np

from holter.record import Series
from holter.record.signals import BACKWARD_CALLS, LOSS_ELEMENTS, LOSS_ROOT_SHARE

if TYPE_CHECKING:
    from holter.diagnosis.facts import Facts

_SUMMED = 0.5  # of the sum that a loss function returns, in what backward() is called on


def summed_elements(facts: "Facts") -> Series | None:
    """Return how many elements backward() sums in each step, or None if it is called on a mean.

    A sum that the script divides by hand is a mean.
    """
    recorded = facts.run[LOSS_ELEMENTS].values() if LOSS_ELEMENTS in facts.run else ()
    sums = [series for series in recorded if len(series)]
    shares = facts.run[LOSS_ROOT_SHARE].get("") if LOSS_ROOT_SHARE in facts.run else None
    if len(sums) != 1 or shares is None:
        return None
    (elements,) = sums
    _, of_elements, of_shares = np.intersect1d(elements.steps, shares.steps, return_indices=True)
    ratios = shares.values[of_shares] / elements.values[of_elements] * _calls(facts)
    ratios = ratios[np.isfinite(ratios)]
    return elements if len(ratios) and np.median(ratios) > _SUMMED else None


def per_batch(facts: "Facts", loss: Series) -> Series:
    """Return a training loss as if all batches were as large as the median one."""
    elements = summed_elements(facts)
    if elements is None:
        return loss
    _, of_loss, of_elements = np.intersect1d(loss.steps, elements.steps, return_indices=True)
    counts = elements.values[of_elements].astype(np.float64)
    known = counts > 0
    values = loss.values.astype(np.float64)
    values[of_loss[known]] *= np.median(counts[known]) / counts[known] if known.any() else 1.0
    return Series(loss.steps, values.astype(loss.values.dtype))


def _calls(facts: "Facts") -> float:
    calls = facts.run[BACKWARD_CALLS].get("") if BACKWARD_CALLS in facts.run else None
    return float(np.median(calls.values)) if calls is not None and len(calls) else 1.0
