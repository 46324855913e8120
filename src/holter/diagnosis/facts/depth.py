"""How the standard deviation of activations changes with depth at the start of training."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from holter.diagnosis.facts.layers import Matrix, geometric
from holter.record.findings import Evidence
from holter.record.signals import ACTIVATION_STD, LOSS, UPDATE_RATIO

if TYPE_CHECKING:
    from holter.diagnosis.facts import Facts

LAYERS = 5  # needed to tell a trend with depth
_LARGE_UPDATE = 0.1  # relative update after which the initialisation is lost
_LARGE_LOSS = 10.0  # times the best constant prediction


@dataclass(frozen=True, slots=True)
class DepthProfile:
    """The standard deviation of each layer's output at one early step, input first."""

    owners: tuple[str, ...]
    deviations: Matrix
    step: int
    factor: float  # from the first layer to the last if it changes layer by layer, else 1

    @property
    def ratio(self) -> float:
        """The standard deviation at the last layer over that at the first."""
        return float(self.deviations[-1] / self.deviations[0])

    @property
    def ends(self) -> str:
        """The first layer and the last, in words."""
        first, last = self.deviations[[0, -1]].tolist()
        return f"from {first:.2g} in {self.owners[0]} to {last:.2g} in {self.owners[-1]}"

    @property
    def evidence(self) -> Evidence:
        """All layers."""
        listed = ", ".join(f"{value:.1g}" for value in self.deviations)
        says = f"standard deviation by layer, input first: {listed}"
        return Evidence(ACTIVATION_STD, (self.step, self.step), says, self.owners[-1])


def depth(facts: "Facts") -> DepthProfile | None:
    """Return the deviations of layers with weights; None if too few were read, or too late.

    The last layer is left out: heads are small or large by design. Readings after a large update
    say nothing about the initialisation, unless the first loss was already enormous.
    """
    modules = dict.fromkeys(layer.module for layer in facts.layers)
    deviations = facts.sample(ACTIVATION_STD, modules)
    if not len(deviations):
        return None
    early = np.nan_to_num(deviations.values[0])[:-1]
    owners = tuple(name for name, std in zip(deviations.owners, early, strict=False) if std > 0)
    early = early[early > 0]
    if len(early) < LAYERS:
        return None
    step = int(deviations.steps[0])
    if _large_update_before(facts, step) and not _large_first_loss(facts):
        return None
    return DepthProfile(owners, early, step, geometric(early, layers=LAYERS))


def _large_update_before(facts: "Facts", step: int) -> bool:
    if not step or UPDATE_RATIO not in facts.run:
        return False
    ratios = facts.sample(UPDATE_RATIO, [layer.name for layer in facts.layers])
    before = np.nan_to_num(ratios.typical()[ratios.steps < step])
    return bool(before.max(initial=0) > _LARGE_UPDATE)


def _large_first_loss(facts: "Facts") -> bool:
    losses = facts.run[LOSS].values() if LOSS in facts.run else ()
    start = facts.fresh_start
    first = [float(loss.values[0]) for loss in losses if len(loss) and loss.first >= start]
    baseline = facts.baseline
    if len(first) != 1 or isinstance(baseline, str):
        return False
    return first[0] > _LARGE_LOSS * baseline.level * baseline.scale
