"""How the targets of a training change while it runs."""

from typing import TYPE_CHECKING

import numpy as np

from holter.diagnosis.facts.baseline import readings
from holter.record.signals import TARGET_MAX, TARGET_MIN

if TYPE_CHECKING:
    from holter.diagnosis.facts import Facts

GROWN = 1.5  # smallest growth of the targets, and tolerance where a loss is compared with it


def growth_of_targets(facts: "Facts") -> float | None:
    """Return how many times the variance or the squared range of the targets grew, or None."""
    baseline, function = facts.baseline, facts.loss_function
    growths = []
    if not isinstance(baseline, str) and baseline.drift > GROWN:
        growths.append(baseline.drift)  # of all targets so far: it lags
    if function is not None:
        low, high = (readings(facts, signal, function) for signal in (TARGET_MIN, TARGET_MAX))
        if len(low) >= 8 and len(low) == len(high):
            tenth = max(len(low) // 10, 1)
            early, late = np.median((high - low)[:tenth]), np.median((high - low)[-tenth:])
            if late > GROWN * early > 0:
                growths.append(float((late / early) ** 2))
    return max(growths, default=None)
