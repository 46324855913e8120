"""Learning rate, momentum, betas, weight decay and epsilon of every parameter group."""

from collections.abc import Iterable
from typing import Any, ClassVar

import torch
from torch import Tensor

from holter.record.signals import BETA1, BETA2, EPSILON, LR, MOMENTUM, WEIGHT_DECAY, Signal
from holter.watching.collectors import Reading
from holter.watching.collectors.moments import BeforeUpdate, Depth


class Hyperparameters:
    """Reads the optimizer's groups when its step begins: learning rates always, the rest rarer."""

    emits: ClassVar[tuple[Signal, ...]] = (LR, MOMENTUM, BETA1, BETA2, WEIGHT_DECAY, EPSILON)
    at: ClassVar[tuple[type, ...]] = (BeforeUpdate,)
    depth: ClassVar[Depth] = Depth.LIGHT
    wakes_at: ClassVar[tuple[type, ...]] = ()

    def read(self, moment: BeforeUpdate) -> Iterable[Reading]:
        """A value for each group that has the quantity."""
        owners = moment.subject.groups
        groups = moment.optimizer.param_groups[: len(owners)]
        quantities = [(LR, [group.get("lr") for group in groups])]
        if moment.depth > self.depth:
            quantities += [
                (MOMENTUM, [group.get("momentum") for group in groups]),
                (BETA1, [_beta(group, 0) for group in groups]),
                (BETA2, [_beta(group, 1) for group in groups]),
                (WEIGHT_DECAY, [group.get("weight_decay") for group in groups]),
                (EPSILON, [_epsilon(group) for group in groups]),
            ]
        readings = [_reading(signal, owners, values) for signal, values in quantities]
        return [reading for reading in readings if reading is not None]


def _reading(
    signal: Signal, owners: tuple[str, ...], values: list[float | Tensor | None]
) -> Reading | None:
    present = [value for value in values if value is not None]
    if not present:
        return None
    at = None
    if len(present) < len(owners):
        at = [i for i, value in enumerate(values) if value is not None]
    return Reading(signal, owners, _together(present), at)


def _beta(group: dict[str, Any], index: int) -> float | Tensor | None:
    betas = group.get("betas")
    return betas[index] if betas is not None and len(betas) > index else None


def _epsilon(group: dict[str, Any]) -> float | Tensor | None:
    epsilon = group.get("eps")
    return epsilon if isinstance(epsilon, int | float | Tensor) else None  # some have a pair


def _together(values: list[float | Tensor]) -> Tensor | list[float]:
    device = next((value.device for value in values if isinstance(value, Tensor)), None)
    if device is None:
        return [float(value) for value in values]
    return torch.stack(
        [torch.as_tensor(value, dtype=torch.float32, device=device).reshape(()) for value in values]
    )
