"""How weight norms changed from the first step to the last, and the weight decay in effect."""

from dataclasses import dataclass
from math import isfinite, prod, sqrt
from typing import TYPE_CHECKING

import numpy as np

from holter.diagnosis.facts.layers import Layer, Sample, median
from holter.record.signals import (
    GRAD_NORM,
    LR,
    PARAMETER_FAN_IN,
    UPDATE_RATIO,
    WEIGHT_DECAY,
    WEIGHT_NORM,
)

if TYPE_CHECKING:
    from holter.diagnosis.facts import Facts

_NORMS = 10  # sampled norms needed
_ORDINARY = 0.1  # the largest weight decay of common recipes
ALL_BUT_ZERO = 1e-3  # initial size, over one that preserves the input, that is as good as zero
_ADDED_TO_GRADIENT = ("SGD", "Adam", "NAdam", "RAdam", "Adamax", "Adagrad", "RMSprop", "Rprop")


@dataclass(frozen=True, slots=True)
class Growth:
    """The norm of each weight matrix over its first one, by step."""

    relative: Sample
    median: float  # over matrices, at the end

    @property
    def steps(self) -> tuple[int, int]:
        """The first step and the last."""
        return int(self.relative.steps[0]), int(self.relative.steps[-1])

    @property
    def smallest(self) -> str:
        """The matrix that shrank the most."""
        return self.relative.owners[int(np.nanargmin(self.relative.values[-1]))]

    @property
    def largest(self) -> str:
        """The matrix that grew the most."""
        return self.relative.owners[int(np.nanargmax(self.relative.values[-1]))]

    def crossing(self, level: float) -> int:
        """Return the first step at which the median norm had passed a level, starting from 1."""
        medians = self.relative.typical()
        passed = medians < level if level < 1 else medians > level
        return int(self.relative.steps[passed.argmax()])

    def says(self, owner: str) -> str:
        """How the norm of one matrix changed, in words."""
        values = self.relative.values[:, self.relative.owners.index(owner)]
        finite = values[np.isfinite(values)]
        half, end = finite[len(finite) // 2], finite[-1]
        return f"{half:.2g} times its initial norm halfway, {end:.2g} times at the end"


def initial_size(facts: "Facts", layer: Layer) -> float | None:
    """Return the initial RMS of a weight over that which preserves the size of its input.

    None if its norm was not read. The first reading follows the first update. The fan-in is that of
    its layer, or of a matrix whose rows are units where that is unknown.
    """
    norms = facts.run[WEIGHT_NORM].get(layer.name) if WEIGHT_NORM in facts.run else None
    if norms is None or not len(norms):
        return None
    ratios = facts.run[UPDATE_RATIO].get(layer.name) if UPDATE_RATIO in facts.run else None
    first = float(ratios.values[0]) if ratios is not None and len(ratios) else 0.0
    grown = sqrt(1 + first**2) if isfinite(first) else 1.0
    fan = fan_ins(facts).get(layer.name) or prod(layer.shape[1:])
    return float(norms.values[0]) / grown / layer.root * sqrt(fan)


def fan_ins(facts: "Facts") -> dict[str, float]:
    """Return the inputs that an output sums over, for weights of the layers of torch."""
    if PARAMETER_FAN_IN not in facts.run:
        return {}
    known = facts.run[PARAMETER_FAN_IN]
    return {name: float(fans.values[-1]) for name, fans in known.items() if len(fans)}


def growth(facts: "Facts") -> Growth | None:
    """Return the growth of weights that did not start at zero; None if too few norms were read.

    Steps at which a norm is no longer finite are left out.
    """
    norms = facts.sample(WEIGHT_NORM, [layer.name for layer in facts.layers])
    if len(norms) < _NORMS:
        return None
    zero = [layer.name for layer in facts.layers if _starts_at_zero(facts, layer)]
    started = np.array([owner not in zero for owner in norms.owners], bool)
    columns = np.flatnonzero((norms.values[0] > 0) & started)
    if not len(columns):
        return None
    owners = tuple(norms.owners[column] for column in columns)
    values = norms.values[:, columns] / norms.values[0, columns]
    rows = np.isfinite(values).all(axis=1)
    relative = Sample(norms.steps[rows], owners, values[rows])
    if len(relative) < _NORMS:
        return None
    return Growth(relative, float(median(relative.values[-1:], axis=1)[0]))


def _starts_at_zero(facts: "Facts", layer: Layer) -> bool:
    size = initial_size(facts, layer)
    return size is not None and size < ALL_BUT_ZERO


def most_by_updates(facts: "Facts") -> float | None:
    """Return the largest growth that updates of the optimizer can make, or None if none was read.

    A relative update of r makes a norm at most 1 + r times as large. Steps between two that were
    read are taken to have updates of a size in between.
    """
    if UPDATE_RATIO not in facts.run:
        return None
    ratios = facts.sample(UPDATE_RATIO, [layer.name for layer in facts.layers])
    sizes = ratios.typical()
    read = np.isfinite(sizes)
    if not read.any():
        return None
    logs = np.log1p(sizes[read])
    with np.errstate(over="ignore"):
        return float(np.exp(logs[0] + np.trapezoid(logs, ratios.steps[read])))


@dataclass(frozen=True, slots=True)
class Decay:
    """The largest weight decay of all groups, and the share of a weight it takes each step."""

    value: float
    rate: float  # 0 if the learning rate is unknown
    says: str
    pull: float = 0.0  # over the gradient that it is added to; 0 where it is not

    @property
    def prevails(self) -> bool:
        """Whether it is larger than the gradient, so that most of a step is decay."""
        return self.pull > 1

    @property
    def ordinary(self) -> bool:
        """Whether common recipes use as much."""
        return self.value <= _ORDINARY and not self.prevails


def weight_decay(facts: "Facts") -> Decay | None:
    """Return the largest weight decay; None without one."""
    if WEIGHT_DECAY not in facts.run:
        return None
    decays = {
        owner: float(series.values[-1])
        for owner, series in facts.run[WEIGHT_DECAY].items()
        if len(series)
    }
    owner = max(decays, key=lambda owner: decays[owner], default="")
    if not decays.get(owner, 0) > 0:
        return None
    value, says = decays[owner], f"weight_decay={decays[owner]:.3g}"
    rates = facts.run[LR].get(owner) if LR in facts.run else None
    if rates is None or not len(rates):
        return Decay(value, 0.0, says)
    rate = float(np.median(rates.values))
    if not np.isfinite(rate):
        return Decay(value, 0.0, says)
    pull = _pull(facts, value)
    each = f"{says}, lr={rate:.3g}: {100 * value * rate:.2g} % per step"
    if pull > 1:
        each = f"{says}, {pull:.2g} times the gradient that it is added to"
    return Decay(value, value * rate, each, pull)


def _pull(facts: "Facts", decay: float) -> float:
    """Return how large a decay is over the gradient in the first half, where it is added to it.

    Adam divides both by their size: a decay that prevails decides the step, however small it is.
    """
    kinds = {optimizer.class_name for optimizer in facts.run.meta.optimizers}
    if not kinds or not kinds <= set(_ADDED_TO_GRADIENT) or GRAD_NORM not in facts.run:
        return 0.0
    names = [layer.name for layer in facts.layers]
    weights = facts.sample(WEIGHT_NORM, names).between(0, 0.5)
    gradients = facts.sample(GRAD_NORM, weights.owners).between(0, 0.5)
    if gradients.owners != weights.owners or not len(weights) or not len(gradients):
        return 0.0
    size = gradients.medians()
    known = np.isfinite(size) & (size > 0)
    if not known.any():
        return 0.0
    return float(np.nanmedian(decay * weights.medians()[known] / size[known]))
