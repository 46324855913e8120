"""Learning rate, momentum, betas, weight decay and epsilon of every parameter group."""

from collections.abc import Callable
from typing import Any, ClassVar

from torch import Tensor
from torch.optim import Optimizer

from holter.record.signals import BETA1, BETA2, EPSILON, LR, MOMENTUM, WEIGHT_DECAY, Signal
from holter.watching.collectors.lane import Lane, Places, copied
from holter.watching.collectors.moments import Depth
from holter.watching.collectors.roster import Subject

Group = dict[str, Any]
Number = float | Tensor | None


class Hyperparameters:
    """Reads the optimizer's groups when its step begins: learning rates always, the rest rarer."""

    emits: ClassVar[tuple[Signal, ...]] = (LR, MOMENTUM, BETA1, BETA2, WEIGHT_DECAY, EPSILON)
    repeats: ClassVar[bool] = True

    def join(self, lane: Lane) -> None:
        """Hear of updates."""
        self._row, self._rates = lane.row, lane.places(LR)
        self._others = tuple((lane.places(signal), read) for signal, read in _OTHERS)
        lane.at_update.append(self._update)

    def _update(self, subject: Subject, optimizer: Optimizer, depth: Depth) -> None:
        owners, groups = subject.groups, optimizer.param_groups
        for number, group in enumerate(groups[: len(owners)]):
            self._write(self._rates, owners, number, group.get("lr"))
            if depth > Depth.LIGHT:
                for places, read in self._others:
                    self._write(places, owners, number, read(group))

    def _write(self, places: Places, owners: tuple[str, ...], number: int, value: Number) -> None:
        if value is None:
            return
        if isinstance(value, Tensor):
            value = copied(value)
            self._row.is_on_device |= isinstance(value, Tensor)
        else:
            value = float(value)
        self._row[places[owners] + number] = value


def _momentum(group: Group) -> Number:
    return group.get("momentum")


def _beta1(group: Group) -> Number:
    return _beta(group, 0)


def _beta2(group: Group) -> Number:
    return _beta(group, 1)


def _beta(group: Group, index: int) -> Number:
    betas = group.get("betas")
    return betas[index] if betas is not None and len(betas) > index else None


def _weight_decay(group: Group) -> Number:
    return group.get("weight_decay")


def _epsilon(group: Group) -> Number:
    epsilon = group.get("eps")
    return epsilon if isinstance(epsilon, int | float | Tensor) else None  # some have a pair


_OTHERS: tuple[tuple[Signal, Callable[[Group], Number]], ...] = (
    (MOMENTUM, _momentum),
    (BETA1, _beta1),
    (BETA2, _beta2),
    (WEIGHT_DECAY, _weight_decay),
    (EPSILON, _epsilon),
)
