"""Whether gradients were too large before the optimizer had done anything, or became so."""

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from holter.record import Series
from holter.record.signals import GRAD_TOTAL_NORM, LOSS, UPDATE_RATIO, WEIGHT_TOTAL_NORM

if TYPE_CHECKING:
    from holter.diagnosis.facts import Facts

RISEN = 100.0  # times its own past that a gradient norm has to reach
BORN = 2e3  # loudness of gradients that explode from birth
_EARLY = 20  # steps that count as the beginning


@dataclass(frozen=True, slots=True)
class GradientScale:
    """How much the loss would change if the weights changed by their own size, at the first step.

    Gradient norm times weight norm, over a loss: free of all units. It is between 0.1 and some
    hundreds for networks that can be trained.
    """

    by_constant: float  # over the loss of a constant answer; the first loss where that is unknown
    by_loss: float  # over the first loss


def gradient_scale(facts: "Facts") -> GradientScale | None:
    """The loudness of the first step; None where there are several optimizers, or it is lost."""
    first = []
    for signal in (GRAD_TOTAL_NORM, WEIGHT_TOTAL_NORM, LOSS):
        series = list(facts.run[signal].values()) if signal in facts.run else []
        if len(series) != 1 or not len(series[0]):
            return None
        first.append(abs(float(series[0].values[0])))
    gradient, weight, loss = first
    if not np.isfinite(first).all() or loss == 0:
        return None
    known = facts.baseline
    constant = loss if isinstance(known, str) else known.level * known.scale
    return GradientScale(gradient * weight / constant, gradient * weight / loss)


def loud_from_birth(facts: "Facts") -> bool:
    """Whether the gradients were too large at the very first step."""
    loud = facts.gradient_scale
    return loud is not None and loud.by_constant > BORN


def onset(norm: Series) -> int | None:
    """Index from which on a gradient norm is far over what it was at first; None if it is not.

    It has to stay there to the end, or to end not finite.
    """
    finite = np.isfinite(norm.values)
    if not finite.any() or not finite[0]:
        return None
    values = norm.values.astype(np.float64)
    early = values[: max(_EARLY // 2, len(values) // 20)]
    base = float(np.min(early[np.isfinite(early) & (early > 0)], initial=inf))
    high = ~(values < RISEN * base)  # what is not finite is high
    tail = high[-max(len(high) // 10, 1) :]
    if not np.isfinite(base) or not high[-1] or tail.mean() < 0.8:
        return None
    low = np.flatnonzero(~high[: len(high) - len(tail)])
    return int(low[-1]) + 1 if len(low) else int(high.argmax())


def sudden_onset(facts: "Facts", *, before: float) -> bool:
    """Whether gradients exploded after a beginning in which the usual update was under `before`."""
    if GRAD_TOTAL_NORM not in facts.run or UPDATE_RATIO not in facts.run:
        return False
    for norm in facts.run[GRAD_TOTAL_NORM].values():
        at = onset(norm) if len(norm) else None
        if at is None or norm.steps[at] < _EARLY:
            continue
        ratios = facts.sample(UPDATE_RATIO, [each.name for each in facts.layers] or None)
        earlier = ratios.typical()[ratios.steps < norm.steps[at]]
        earlier = earlier[np.isfinite(earlier)][len(earlier) // 4 :]
        return bool(len(earlier) and earlier.max() < before)
    return False
