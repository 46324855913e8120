"""Which learning rates to try next, from what sweeps and short trainings have shown so far."""

import numpy as np

from holter.diagnosis.facts.rate_range import GAP, RangeTest
from holter.diagnosis.facts.robust import Values
from holter.diagnosis.facts.sweep import BEGUN, Sweep

_STEP = 2.0  # from one candidate to the next
_WIDE = 5.0  # the same where the sweeps say nothing


def worth_sweeping(ladder: Values, first: Sweep) -> Values:
    """The rates at which a further sweep may see something: a decade under the fall and up."""
    if not len(first.rates) or not first.fall > first.error:
        return ladder
    return ladder[ladder > first.fallen(BEGUN) / 10]


def candidates(test: RangeTest, count: int) -> list[float]:
    """Rates to try: about what the sweeps suggest, or far apart where they suggest nothing."""
    fall, error = test.fall
    if fall > error:
        return [test.centre * _STEP ** (at - (count - 1) / 2) for at in range(count)]
    highest = min(test.diverges, max(float(sweep.rates[-1]) for sweep in test.sweeps))
    return [highest / _WIDE ** (at + 1) for at in reversed(range(count))]


def another(test: RangeTest) -> float | None:
    """A rate to try next: past the outermost if that did best, or in a gap beside the best."""
    rates = [trial.rate for trial in test.trials]
    best = rates.index(test.best.rate)
    if best == 0:
        return rates[0] / _STEP
    if best == len(rates) - 1:
        return rates[-1] * _STEP
    beside = min((best - 1, best + 1), key=lambda at: test.trials[at].level)
    low, high = sorted((rates[best], rates[beside]))
    return float(np.sqrt(low * high)) if high > GAP * low else None
