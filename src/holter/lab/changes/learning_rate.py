"""Learning rates: multiplied, warmed up, held constant, or set in proportion."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from torch.optim import Optimizer
from torch.optim.lr_scheduler import CyclicLR

from holter.lab.changes import Altered, Change, TappedChange
from holter.lab.changes._hooks import Group, put, settings_in_steps
from holter.lab.inapplicable import InapplicableError
from holter.lab.setup import Setup
from holter.record.trials import TrialKind, TrialName

_BEGUN = 0.1  # share of its initial value to which a learning rate in warm-up is raised


def rates_times(factor: float) -> TappedChange:
    """Multiply every learning rate by `factor`, whatever a schedule sets it to."""
    shown = f"{factor:.3g}" if factor < 1 else f"{factor:g}"

    def multiplied(_: Optimizer, group: Group) -> dict[str, float]:
        return {"lr": factor * float(group["lr"])}

    return TappedChange(
        TrialName(TrialKind.LEARNING_RATE, shown),
        f"Multiply every learning rate by {shown}.",
        partial(settings_in_steps, multiplied),
    )


def learning_rate_times(factor: float) -> Change:
    """Multiply every learning rate of a setup by `factor`."""
    return rates_times(factor).on_setup


def warm_up(steps: int) -> TappedChange:
    """Raise every learning rate linearly from 0 over the first `steps` steps."""
    return TappedChange(
        TrialName(TrialKind.WARM_UP, str(steps)),
        f"Raise the learning rate linearly over the first {steps} steps.",
        partial(_warmed_up, steps),
    )


@contextmanager
def _warmed_up(steps: int, altered: Altered) -> Iterator[None]:
    made: WeakKeyDictionary[Optimizer, int] = WeakKeyDictionary()

    def share(optimizer: Optimizer, group: Group) -> dict[str, float]:
        if group is optimizer.param_groups[0]:
            made[optimizer] = made.get(optimizer, 0) + 1
        return {"lr": min(made[optimizer] / steps, 1.0) * float(group["lr"])}

    with settings_in_steps(share, altered):
        yield


@contextmanager
def _held(rate_of: Callable[[Group], float], altered: Altered) -> Iterator[None]:
    """Keep each group at the rate that `rate_of` gives at its first step."""
    held: WeakKeyDictionary[Optimizer, list[float]] = WeakKeyDictionary()

    def first(optimizer: Optimizer, group: Group) -> dict[str, float]:
        known = held.setdefault(optimizer, [])
        place = next(n for n, own in enumerate(optimizer.param_groups) if own is group)
        if place == len(known):
            known.append(rate_of(group))
        return {"lr": known[place]}

    with settings_in_steps(first, altered):
        yield


def _known_peak(group: Group) -> float:
    return max(float(group[name]) for name in ("lr", "initial_lr", "max_lr") if name in group)


SCHEDULE_CONSTANT = TappedChange(
    TrialName(TrialKind.SCHEDULE_CONSTANT),
    "Keep every learning rate at the highest value that its schedule starts from.",
    partial(_held, _known_peak),
)
RATES_HELD = TappedChange(
    TrialName(TrialKind.EARLIER_RATE),
    "Keep every learning rate as it is when the change begins.",
    partial(_held, lambda group: float(group["lr"])),
)


@contextmanager
def warmup_begun(setup: Setup) -> Iterator[None]:
    """Raise learning rates that are still in warm-up to a tenth of their initial value."""
    groups = groups_of(setup)
    rates = [float(group["lr"]) for group in groups]
    for group, rate in zip(groups, rates, strict=True):
        set_rate(group, max(rate, _BEGUN * float(group.get("initial_lr", 0.0))))
    try:
        yield
    finally:
        for group, rate in zip(groups, rates, strict=True):
            set_rate(group, rate)


def groups_of(setup: Setup) -> list[dict[str, Any]]:
    """Return the parameter groups of all optimizers."""
    return [group for optimizer in setup.optimizers for group in optimizer.param_groups]


def set_rate(group: Group, rate: float) -> None:
    """Set a group's learning rate."""
    put(group, {"lr": rate})


class Rates:
    """The learning rates of a setup: what each group's schedule reaches, and a common scale.

    The scale is the rate of the first group whose rate is not 0; others keep their ratio to it.
    """

    def __init__(self, setup: Setup) -> None:
        pairs = [
            (optimizer, group) for optimizer in setup.optimizers for group in optimizer.param_groups
        ]
        if any(group.get("lr") is None for _, group in pairs):
            raise InapplicableError("an optimizer has no learning rate that could be set")
        self._groups = [group for _, group in pairs]
        self.peaks = [_peak(setup, optimizer, group) for optimizer, group in pairs]
        if not any(self.peaks):  # a warm-up by hand that begins at 0
            self.peaks = [_default(optimizer) for optimizer, _ in pairs]
        self.peak = next((rate for rate in self.peaks if rate > 0), 0.0)
        first = self.peaks.index(self.peak)
        self.now = float(self._groups[first]["lr"])
        self.given = max(self.now, _default(pairs[first][0]))

    @property
    def warming_up(self) -> bool:
        """Whether the schedule of any group still rises."""
        pairs = zip(self._groups, self.peaks, strict=True)
        return any(float(group["lr"]) < peak for group, peak in pairs)

    def set(self, rate: float) -> None:
        """Set the first group's rate to `rate`, and the others in proportion."""
        self.set_share(rate / self.peak)

    def set_share(self, share: float) -> None:
        """Set every group's rate to a share of its peak."""
        for group, peak in zip(self._groups, self.peaks, strict=True):
            set_rate(group, share * peak)


def _peak(setup: Setup, optimizer: Optimizer, group: dict[str, Any]) -> float:
    """Return the highest rate that a group's schedule is known to reach."""
    rates = [_known_peak(group)]
    for scheduler in setup.schedulers:
        if isinstance(scheduler, CyclicLR) and scheduler.optimizer is optimizer:
            rates += [float(peak) for peak in scheduler.max_lrs]
    return max(rates)


def _default(optimizer: Optimizer) -> float:
    return float(optimizer.defaults.get("lr") or 0.0)
