"""How the targets of a training change while it runs."""

from typing import TYPE_CHECKING

import numpy as np

from holter.record.signals import TARGET_MAX, TARGET_MIN

if TYPE_CHECKING:
    from holter.diagnosis.facts import Facts

_FEWEST = 8  # readings
GROWN = 1.5  # smallest growth of the targets, and tolerance where a loss is compared with it


def growth_of_targets(facts: "Facts") -> float | None:
    """Return how many times the variance or the squared range of the targets grew, or None."""
    baseline, function = facts.baseline, facts.loss_function
    growths = []
    if not isinstance(baseline, str) and baseline.drift > GROWN:
        growths.append(baseline.drift)  # of all targets so far: it lags
    if function is not None:
        growth = _growth_of_range(facts, function)
        growths += [growth] if growth is not None else []
    return max(growths, default=None)


def _growth_of_range(facts: "Facts", function: str) -> float | None:
    """Return how many times the squared range grew from the first tenth of the steps to the last.

    Of the steps, not of the readings: the beginning is read more densely.
    """
    low, high = (
        facts.run[signal].get(function) if signal in facts.run else None
        for signal in (TARGET_MIN, TARGET_MAX)
    )
    if low is None or high is None or len(low) != len(high):
        return None
    finite = np.isfinite(low.values) & np.isfinite(high.values)
    if finite.sum() < _FEWEST:
        return None
    wide, steps = high.values[finite] - low.values[finite], low.steps[finite]
    tenth = (steps[-1] - steps[0]) / 10
    early = float(np.median(wide[steps <= steps[0] + tenth]))
    late = float(np.median(wide[steps >= steps[-1] - tenth]))
    return (late / early) ** 2 if late > GROWN * early > 0 else None
