"""Schedules of the learning rate that are ready to use, and can be drawn before they are used."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch.optim import Optimizer
    from torch.optim.lr_scheduler import LambdaLR, OneCycleLR

_RISING = 0.3  # share of a cycle, where nothing else is said
_FIRST = 1 / 25  # of the peak, at the first step of a cycle
_LAST = 1e-4  # of that, at its last


@dataclass(frozen=True)
class WarmupCosine:
    """The share of the peak at each step: up in a line, down in half a cosine, then the floor."""

    warmup: int
    steps: int
    floor: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.warmup < self.steps:
            raise ValueError(f"warmup is {self.warmup}: it has to be less than steps, {self.steps}")
        if not 0 <= self.floor <= 1:
            raise ValueError(f"floor is {self.floor}: it is a share of the peak, from 0 to 1")

    def __call__(self, step: int) -> float:
        """The share at `step`, counted from 0."""
        if step < self.warmup:
            return (step + 1) / self.warmup  # a first step at 0 would be lost
        done = min((step - self.warmup) / (self.steps - self.warmup), 1.0)
        return self.floor + (1 - self.floor) * 0.5 * (1 + math.cos(math.pi * done))


@dataclass(frozen=True)
class OneCycle:
    """The share of the peak at each step: up and down again in halves of a cosine."""

    steps: int
    warmup: int | None = None

    def __post_init__(self) -> None:
        if self.steps < 2:
            raise ValueError(f"steps is {self.steps}: a cycle takes some")
        if self.warmup is not None and not 1 < self.warmup < self.steps:
            raise ValueError(
                f"warmup is {self.warmup}: it has to be over 1 and less than steps, {self.steps}"
            )

    @property
    def rising(self) -> float:
        """The share of the steps that go up."""
        return _RISING if self.warmup is None else self.warmup / self.steps

    def __call__(self, step: int) -> float:
        """The share at `step`, counted from 0."""
        top = self.rising * self.steps - 1
        if step <= top:
            return _between(_FIRST, 1.0, step / top if top else 1.0)
        done = min((step - top) / (self.steps - 1 - top), 1.0)
        return _between(1.0, _FIRST * _LAST, done)


def warmup_cosine(
    optimizer: "Optimizer", *, warmup: int, steps: int, floor: float = 0.0
) -> "LambdaLR":
    """A scheduler to be stepped after each step of `optimizer`, whose learning rate is the peak.

    It rises in a line over `warmup` steps and falls in half a cosine to `floor`, a share of the
    peak, at `steps`; there it stays. Groups keep their proportions.
    """
    from torch.optim.lr_scheduler import LambdaLR

    schedule = LambdaLR(optimizer, WarmupCosine(warmup, steps, floor))
    vars(schedule)["total_steps"] = steps  # where torch's own keep it: holter reads it from there
    return schedule


def one_cycle(
    optimizer: "Optimizer", *, peak: float, steps: int, warmup: int | None = None
) -> "OneCycleLR":
    """A scheduler to be stepped after each of `steps` steps: torch's own, up to `peak` and down.

    It rises over `warmup` steps, by default three tenths of all, and goes on to almost 0. Momentum
    goes the other way where the optimizer has it.
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
    """From one value to another along half a cosine."""
    return last + (first - last) * 0.5 * (1 + math.cos(math.pi * done))
