"""Learning rates that a schedule raises until the training fails."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from holter.record import Run
from holter.record.signals import LR
from holter.watching.blackbox.capture import Step

_RAISED = 1.2  # times what it was, from which on a learning rate counts as raised
_LONG = 1.5  # times, if it has been rising for half of the training


@dataclass(frozen=True, slots=True)
class EarlierRate:
    """The learning rate of an earlier step, as a share of that of the failing one."""

    step: int
    share: float


def raises_rate(steps: Sequence[Step], failing: int) -> bool:
    """Whether a learning rate rises, or is no number, from the first step to the failing one."""
    return any(
        now > _RAISED * before or (math.isfinite(before) and not math.isfinite(now))
        for step in steps
        if step.step <= failing
        for rates, firsts in zip(step.rates, steps[0].rates, strict=False)
        for now, before in zip(rates, firsts, strict=False)
    )


def earlier_rate(run: Run | None, failing: int) -> EarlierRate | None:
    """Return the highest rate of the first half of a training that failed at a higher one.

    None where the rate rose by too little, or no longer rose before the failure. A rate may fall in
    between: one that is raised in each epoch, and never set back, does.
    """
    if run is None or LR not in run:
        return None
    found: list[EarlierRate] = []
    for series in run[LR].values():
        until = series.steps <= failing
        steps, rates = series.steps[until], np.asarray(series.values[until], dtype=float)
        early, late = rates[steps <= failing // 2], rates[steps <= failing * 3 // 4]
        if len(rates) < 3 or not len(early) or not np.isfinite(rates).all() or early.max() <= 0:
            continue
        if rates[-1] > late.max() and rates[-1] > _LONG * early.max():
            begins = int(steps[int(early.argmax())])
            found.append(EarlierRate(begins, float(early.max() / rates[-1])))
    return min(found, key=lambda each: each.share, default=None)
