"""Learning rates of all groups together: what is configured, and another at the same ratios."""

from typing import Any

from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import CyclicLR

from holter.lab.experiments import InapplicableError
from holter.lab.setup import Setup


class Rates:
    """The learning rates of a setup, by that of its first group whose rate is not 0."""

    def __init__(self, setup: Setup) -> None:
        pairs = [(each, group) for each in setup.optimizers for group in each.param_groups]
        if any(group.get("lr") is None for _, group in pairs):
            raise InapplicableError("an optimizer has no learning rate that could be set")
        self._groups = [group for _, group in pairs]
        peaks = [_peak(setup, *each) for each in pairs]
        if not any(peaks):  # a warm-up by hand that begins at 0
            peaks = [float(each.defaults.get("lr") or 0.0) for each, _ in pairs]
        self.peak = next((each for each in peaks if each > 0), 0.0)
        if not self.peak:
            raise InapplicableError("every learning rate is 0")
        self._ratios = [each / self.peak for each in peaks]
        first = peaks.index(self.peak)
        self.now = float(self._groups[first]["lr"])
        self.given = max(self.now, float(pairs[first][0].defaults.get("lr") or 0.0))

    def set(self, rate: float) -> None:
        """Give the first group this rate, and the others theirs in proportion."""
        for group, ratio in zip(self._groups, self._ratios, strict=True):
            if isinstance(group["lr"], Tensor):  # which a compiled step may hold
                group["lr"].fill_(rate * ratio)
            else:
                group["lr"] = rate * ratio


def _peak(setup: Setup, optimizer: Optimizer, group: dict[str, Any]) -> float:
    """The highest rate of a group that its schedule is known to come to."""
    known = [float(group[each]) for each in ("lr", "initial_lr", "max_lr") if each in group]
    for each in setup.schedulers:
        if isinstance(each, CyclicLR) and each.optimizer is optimizer:
            known += [float(top) for top in each.max_lrs]
    return max(known)
