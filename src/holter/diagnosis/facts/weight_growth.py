"""How the norms of weights went from the first step to the last."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from holter.diagnosis.facts.layers import Sample, median
from holter.record.signals import LR, WEIGHT_DECAY, WEIGHT_NORM

if TYPE_CHECKING:
    from holter.diagnosis.facts import Facts

_FEWEST = 10  # sampled norms
_ORDINARY = 0.1  # the largest weight decay of common recipes


@dataclass(frozen=True, slots=True)
class Growth:
    """The norm of each weight matrix over its first one, by step."""

    relative: Sample
    usual: float  # the median over matrices, at the end

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
        """The first step at which the usual norm had passed a level, from 1 on."""
        typical = self.relative.typical()
        passed = typical < level if level < 1 else typical > level
        return int(self.relative.steps[passed.argmax()])

    def says(self, owner: str) -> str:
        """How the norm of one matrix went."""
        values = self.relative.values[:, self.relative.owners.index(owner)]
        known = values[np.isfinite(values)]
        return f"{known[len(known) // 2]:.2e} of the first norm half-way, {known[-1]:.2e} at last"


def growth(facts: "Facts") -> Growth | None:
    """The growth of the weights that were not zero at first; None where too little was read.

    Matrices with a norm that is no longer finite are left out of the end, not of the history.
    """
    norms = facts.sample(WEIGHT_NORM, [each.name for each in facts.layers])
    if len(norms) < _FEWEST:
        return None
    columns = np.flatnonzero(norms.values[0] > 0)
    if not len(columns):
        return None
    owners = tuple(norms.owners[column] for column in columns)
    values = norms.values[:, columns] / norms.values[0, columns]
    rows = np.isfinite(values).all(axis=1)
    relative = Sample(norms.steps[rows], owners, values[rows])
    if len(relative) < _FEWEST:
        return None
    return Growth(relative, float(median(relative.values[-1:], axis=1)[0]))


@dataclass(frozen=True, slots=True)
class Decay:
    """The largest weight decay of all groups, and what it takes of a weight each step."""

    value: float
    rate: float  # 0 where the learning rate is unknown
    says: str

    @property
    def ordinary(self) -> bool:
        """Whether common recipes have as much."""
        return self.value <= _ORDINARY


def weight_decay(facts: "Facts") -> Decay | None:
    """The largest weight decay; None where there is none."""
    if WEIGHT_DECAY not in facts.run:
        return None
    decays = {o: float(each.values[-1]) for o, each in facts.run[WEIGHT_DECAY].items() if len(each)}
    owner = max(decays, key=lambda each: decays[each], default="")
    if not decays.get(owner, 0) > 0:
        return None
    value, said = decays[owner], f"a weight decay of {decays[owner]:.3g}"
    rates = facts.run[LR].get(owner) if LR in facts.run else None
    if rates is None or not len(rates):
        return Decay(value, 0.0, said)
    usual = float(np.median(rates.values))
    said += f" at a learning rate of {usual:.3g}, {value * usual:.1e} a step"
    return Decay(value, value * usual, said)
