"""The loss of each pass over validation batches."""

from collections.abc import Iterable
from typing import ClassVar

import torch
from torch import Tensor

from holter.collectors import Reading
from holter.collectors.moments import Depth, Logged, StepEnds, ValidationLoss
from holter.signals import VAL_LOSS, Signal


class Validation:
    """Averages validation losses between two training steps, by loss function and batch size."""

    emits: ClassVar[tuple[Signal, ...]] = (VAL_LOSS,)
    at: ClassVar[tuple[type, ...]] = (ValidationLoss, Logged, StepEnds)
    depth: ClassVar[Depth] = Depth.LIGHT
    wakes_at: ClassVar[tuple[type, ...]] = (ValidationLoss, Logged)

    def __init__(self) -> None:
        self._sums: dict[str, tuple[Tensor, int]] = {}
        self._logged: Tensor | None = None
        self._owners: dict[str, tuple[str, ...]] = {"": ("",)}

    def read(self, moment: ValidationLoss | Logged | StepEnds) -> Iterable[Reading]:
        """The mean of each loss function, at the end of the step; what was logged comes first."""
        if isinstance(moment, ValidationLoss):
            loss = moment.loss.detach().to(torch.float32) * moment.samples
            total, samples = self._sums.get(moment.function, (0.0, 0))
            self._sums[moment.function] = (total + loss, samples + moment.samples)
        elif isinstance(moment, Logged):
            self._logged = moment.values.get("val_loss", self._logged)
        elif self._sums or self._logged is not None:
            return self._pass()
        return ()

    def _pass(self) -> Iterable[Reading]:
        if self._logged is not None:
            yield Reading(VAL_LOSS, self._owners[""], self._logged.reshape(1))
            self._logged = None
        for function, (total, samples) in self._sums.items():
            owner = self._owners.setdefault(function, (function,))
            yield Reading(VAL_LOSS, owner, (total / samples).reshape(1))
        self._sums.clear()
