"""Steps at which the number of batches that make a step changes."""

import numpy as np

from holter.record import Run, Series
from holter.record.signals import BACKWARD_CALLS

CONSTANT = 5  # steps with one number before it counts as changed


def accumulation_changes(calls: Series) -> dict[int, tuple[float, float]]:
    """Return the steps at which the number changes after it was constant: before and after."""
    found = {}
    for place in range(CONSTANT, len(calls)):
        before, now = calls.values[place - CONSTANT : place], float(calls.values[place])
        if (before == before[0]).all() and now != before[0]:
            found[int(calls.steps[place])] = (float(before[0]), now)
    return found


def accumulation_grew(run: Run, onset: int) -> int | None:
    """Return the last step up to an onset from which on steps are made of more batches, or None."""
    calls = run[BACKWARD_CALLS].get("") if BACKWARD_CALLS in run else None
    if calls is None or not np.isfinite(calls.values).all():
        return None
    found = accumulation_changes(calls)
    grown = [step for step, (before, now) in found.items() if step <= onset and now > before]
    return max(grown, default=None)
