"""Whether gradients were too large at the first step, or became so later."""

from dataclasses import dataclass
from math import inf, prod, sqrt
from typing import TYPE_CHECKING

import numpy as np

from holter.record import Series
from holter.record.signals import GRAD_TOTAL_NORM, LOSS, UPDATE_RATIO, WEIGHT_TOTAL_NORM

if TYPE_CHECKING:
    from holter.diagnosis.facts import Facts

GROWTH = 100.0  # times its initial level from which a gradient norm has exploded
LARGE_SCALE = 30.0  # above it, gradients explode from the first step
_EARLY = 20  # steps that count as the beginning


@dataclass(frozen=True, slots=True)
class GradientScale:
    """The size of the first gradient, free of units and of the number of parameters.

    Gradient norm times RMS weight, over a loss. If every weight changes by a random amount of the
    size of the RMS weight, the loss changes by gradient norm times RMS weight (one standard
    deviation, to first order): 1 means a change of 100 %. RMS, because the norm of all weights
    grows with their number: a model of 70 billion parameters whose gradient norm is 4.7 would
    exceed any limit.

    Models that learn have 0.001 to 5 in the zoo, those whose gradients explode from the first step
    50 and more.
    """

    over_baseline: float  # over the best constant prediction; over the first loss if unknown
    over_loss: float  # over the first loss


def gradient_scale(facts: "Facts") -> GradientScale | None:
    """Return the scale of the first gradient; None if optimizers compete, or if it is unknown.

    Of models that are trained one after the other it is that of the last. A loss that changes its
    sign passes through zero and is no unit to measure in.
    """
    first = []
    for signal in (GRAD_TOTAL_NORM, WEIGHT_TOTAL_NORM, LOSS):
        series = list(facts.run[signal].values()) if signal in facts.run else []
        if start := facts.fresh_start:
            series = [each for each in series if len(each) and each.first >= start]
        if len(series) != 1 or not len(series[0]):
            return None
        first.append(abs(float(series[0].values[0])))
    gradient, weight, loss = first
    count = _trained_elements(facts)
    if not np.isfinite(first).all() or loss == 0 or not count:
        return None
    baseline = facts.baseline
    if isinstance(baseline, str) and isinstance(facts.curve, str):
        return None
    level = loss if isinstance(baseline, str) else baseline.level * baseline.scale
    change = gradient * weight / sqrt(count)
    return GradientScale(change / level, change / loss)


def large_at_start(facts: "Facts") -> bool:
    """Whether gradients were too large at the first step."""
    scale = facts.gradient_scale
    return scale is not None and scale.over_baseline > LARGE_SCALE


def rise(norm: Series, growth: float = GROWTH) -> int | None:
    """Return the index from which a gradient norm stays far above its initial level, or None.

    It has to stay there to the end, or to end non-finite.
    """
    finite = np.isfinite(norm.values)
    if not finite.any() or not finite[0]:
        return None
    values = norm.values.astype(np.float64)
    early = values[: max(_EARLY // 2, len(values) // 20)]
    level = float(np.min(early[np.isfinite(early) & (early > 0)], initial=inf))
    high = ~(values < growth * level)  # a non-finite norm is high
    tail = high[-max(len(high) // 10, 1) :]
    if not np.isfinite(level) or not high[-1] or tail.mean() < 0.8:
        return None
    low = np.flatnonzero(~high[: len(high) - len(tail)])
    return int(low[-1]) + 1 if len(low) else int(high.argmax())


def exploded_later(facts: "Facts", *, max_update: float) -> bool:
    """Whether gradients exploded after a start with median relative updates below `max_update`."""
    if GRAD_TOTAL_NORM not in facts.run or UPDATE_RATIO not in facts.run:
        return False
    for norm in facts.run[GRAD_TOTAL_NORM].values():
        index = rise(norm) if len(norm) else None
        if index is None or norm.steps[index] < _EARLY:
            continue
        ratios = facts.sample(UPDATE_RATIO, [layer.name for layer in facts.layers] or None)
        earlier = ratios.typical()[ratios.steps < norm.steps[index]]
        earlier = earlier[np.isfinite(earlier)][len(earlier) // 4 :]
        return bool(len(earlier) and earlier.max() < max_update)
    return False


def _trained_elements(facts: "Facts") -> int:
    """Count the elements of the parameters that an optimizer holds: those behind the norms."""
    held = {parameter.name for parameter in facts.parameters if parameter.optimizer >= 0}
    shapes = facts.run.meta.parameters
    return sum(prod(each.shape) for name, each in shapes.items() if not held or name in held)
