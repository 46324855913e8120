"""How the spread of activations changes with depth, before training has changed much."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from holter.diagnosis.facts.layers import Matrix, geometric
from holter.record.signals import ACTIVATION_STD, LOSS, UPDATE_RATIO

if TYPE_CHECKING:
    from holter.diagnosis.facts import Facts

LAYERS = 5  # least number of layers in which a slope can be seen
_LARGE = 0.1  # update after which the initialisation is gone
_ENORMOUS = 10.0  # times the loss of a constant answer


@dataclass(frozen=True, slots=True)
class Depth:
    """The spread of each layer's output at the first sampled step, from the input to the output."""

    owners: tuple[str, ...]
    spreads: Matrix
    steps: tuple[int, int]
    factor: float  # from the first layer to the last, if it goes step by step; else 1

    @property
    def whole(self) -> float:
        """The spread at the last layer over that at the first, however it came about."""
        return float(self.spreads[-1] / self.spreads[0])

    def __str__(self) -> str:
        return ", ".join(f"{value:.0e}" for value in self.spreads)


def depth(facts: "Facts") -> Depth | None:
    """The spreads of layers with weights; None where too few were read, or too late.

    The last layer is left out: heads are made small, or large, on purpose. Readings that come after
    a large update say nothing of the initialisation, unless the very first loss was enormous.
    """
    modules = dict.fromkeys(each.module for each in facts.layers)
    spreads = facts.sample(ACTIVATION_STD, modules)
    if not len(spreads):
        return None
    early = np.nan_to_num(spreads.values[0])[:-1]
    owners = tuple(name for name, value in zip(spreads.owners, early, strict=False) if value > 0)
    early = early[early > 0]
    if len(early) < LAYERS:
        return None
    at = int(spreads.steps[0])
    if _disturbed(facts, at):
        return None
    return Depth(owners, early, (at, at), geometric(early, layers=LAYERS))


def _disturbed(facts: "Facts", step: int) -> bool:
    """Whether the weights had changed much before a step."""
    if not step or UPDATE_RATIO not in facts.run:
        return False
    ratios = facts.sample(UPDATE_RATIO, [each.name for each in facts.layers])
    before = np.nan_to_num(ratios.typical()[ratios.steps < step])
    if not before.max(initial=0) > _LARGE:
        return False
    first = (
        [each.values[0] for each in facts.run[LOSS].values() if len(each)]
        if LOSS in facts.run
        else []
    )
    constant = facts.baseline
    return (
        len(first) != 1
        or isinstance(constant, str)
        or not first[0] > _ENORMOUS * constant.level * constant.scale
    )
