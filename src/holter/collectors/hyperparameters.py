"""Learning rate, momentum, betas and weight decay of every parameter group."""

from collections.abc import Iterable
from typing import Any, ClassVar

import torch
from torch import Tensor

from holter.collectors import Reading
from holter.collectors.moments import BeforeUpdate
from holter.signals import BETA1, BETA2, LR, MOMENTUM, WEIGHT_DECAY, Signal


class Hyperparameters:
    """Reads the optimizer's groups as they are when its step begins."""

    emits: ClassVar[tuple[Signal, ...]] = (LR, MOMENTUM, BETA1, BETA2, WEIGHT_DECAY)
    at: ClassVar[tuple[type, ...]] = (BeforeUpdate,)

    def read(self, moment: BeforeUpdate) -> Iterable[Reading]:
        """A value for each group that has the quantity."""
        groups = moment.optimizer.param_groups[: len(moment.subject.groups)]
        for signal, value in (
            (LR, lambda group: group.get("lr")),
            (MOMENTUM, lambda group: group.get("momentum")),
            (BETA1, lambda group: _beta(group, 0)),
            (BETA2, lambda group: _beta(group, 1)),
            (WEIGHT_DECAY, lambda group: group.get("weight_decay")),
        ):
            values = {
                i: each for i, group in enumerate(groups) if (each := value(group)) is not None
            }
            if values:
                at = list(values) if len(values) < len(moment.subject.groups) else None
                yield Reading(signal, moment.subject.groups, _together(list(values.values())), at)


def _beta(group: dict[str, Any], index: int) -> float | Tensor | None:
    betas = group.get("betas")
    return betas[index] if betas is not None and len(betas) > index else None


def _together(values: list[float | Tensor]) -> Tensor | list[float]:
    tensors = [each for each in values if isinstance(each, Tensor)]
    if not tensors:
        return [float(each) for each in values]
    device = tensors[0].device
    return torch.stack(
        [torch.as_tensor(each, dtype=torch.float32, device=device).reshape(()) for each in values]
    )
