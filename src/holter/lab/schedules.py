"""Learning-rate schedules that are ready to use and can be plotted beforehand."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch.optim import Optimizer
    from torch.optim.lr_scheduler import LambdaLR, OneCycleLR

_RISING = 0.3  # default share of a cycle
_FIRST = 1 / 25  # of the peak, at the first step of a cycle
_LAST = 1e-4  # of that, at its last


@dataclass(frozen=True)
class WarmupCosine:
    """Linear warm-up, cosine decay, then a floor, as a share of the peak at each step."""

    warmup: int
    steps: int
    floor: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.warmup < self.steps:
            raise ValueError(f"warmup is {self.warmup}: it must be less than steps, {self.steps}")
        if not 0 <= self.floor <= 1:
            raise ValueError(f"floor is {self.floor}: it must be a share of the peak, from 0 to 1")

    def __call__(self, step: int) -> float:
        """Return the share at `step`, counted from 0."""
        if step < self.warmup:
            return (step + 1) / self.warmup  # a first step at 0 would be lost
        done = min((step - self.warmup) / (self.steps - self.warmup), 1.0)
        return self.floor + (1 - self.floor) * 0.5 * (1 + math.cos(math.pi * done))


@dataclass(frozen=True)
class OneCycle:
    """Cosine up and cosine down, as a share of the peak at each step."""

    steps: int
    warmup: int | None = None

    def __post_init__(self) -> None:
        if self.steps < 2:
            raise ValueError(f"steps is {self.steps}: a cycle needs at least 2")
        if self.warmup is not None and not 1 < self.warmup < self.steps:
            raise ValueError(
                f"warmup is {self.warmup}: it must be over 1 and less than steps, {self.steps}"
            )

    @property
    def rising(self) -> float:
        """The share of steps in which the rate rises."""
        return _RISING if self.warmup is None else self.warmup / self.steps

    def __call__(self, step: int) -> float:
        """Return the share at `step`, counted from 0."""
        top = self.rising * self.steps - 1
        if step <= top:
            return _between(_FIRST, 1.0, step / top if top else 1.0)
        done = min((step - top) / (self.steps - 1 - top), 1.0)
        return _between(1.0, _FIRST * _LAST, done)


def warmup_cosine(
    optimizer: "Optimizer", *, warmup: int, steps: int, floor: float = 0.0
) -> "LambdaLR":
    """Return a scheduler with linear warm-up and cosine decay; the learning rate is the peak.

    Step it after each `optimizer.step()`. It rises over `warmup` steps, then decays until `steps`
    to `floor`, a share of the peak, and stays there. Groups keep their ratios.
    """
    from torch.optim.lr_scheduler import LambdaLR

    schedule = LambdaLR(optimizer, WarmupCosine(warmup, steps, floor))
    vars(schedule)["total_steps"] = steps  # where torch's own keep it: holter reads it from there
    return schedule


def one_cycle(
    optimizer: "Optimizer", *, peak: float, steps: int, warmup: int | None = None
) -> "OneCycleLR":
    """Return torch's OneCycleLR: up to `peak` and down again in `steps` steps.

    Step it after each `optimizer.step()`. It rises over `warmup` steps, by default 30 % of all, and
    falls to almost 0. Momentum, if the optimizer has one, moves the opposite way.
    """
    from torch.optim.lr_scheduler import OneCycleLR

    has_momentum = "betas" in optimizer.defaults or bool(optimizer.defaults.get("momentum"))
    return OneCycleLR(
        optimizer,
        max_lr=peak,
        total_steps=steps,
        pct_start=OneCycle(steps, warmup).rising,
        cycle_momentum=has_momentum,
        div_factor=1 / _FIRST,
        final_div_factor=1 / _LAST,
    )


def _between(first: float, last: float, done: float) -> float:
    """Interpolate between two values along half a cosine."""
    return last + (first - last) * 0.5 * (1 + math.cos(math.pi * done))
