"""How losses are reduced: what loss functions return against what backward is called on."""

from collections.abc import Iterable
from typing import ClassVar

import torch
from torch import Tensor

from holter.record.signals import LOSS_ROOT_SHARE, LOSS_SUMMED, Signal
from holter.watching.collectors import STEP, Reading
from holter.watching.collectors.loss_calls import Measurements, Owners, reduction
from holter.watching.collectors.moments import (
    AfterUpdate,
    BackwardBegins,
    Depth,
    LossComputed,
    StepEnds,
)


class Reductions:
    """Compares the root of each backward with the one mean that a loss function has returned."""

    emits: ClassVar[tuple[Signal, ...]] = (LOSS_ROOT_SHARE, LOSS_SUMMED)
    at: ClassVar[tuple[type, ...]] = (LossComputed, BackwardBegins, AfterUpdate, StepEnds)
    depth: ClassVar[Depth] = Depth.REGULAR
    wakes_at: ClassVar[tuple[type, ...]] = ()

    def __init__(self) -> None:
        self._summed: Measurements[bool] = Measurements()
        self._owners = Owners()
        self._means: list[Tensor] = []  # since the last backward: the first two
        self._shares: list[Tensor] = []

    def read(
        self, moment: LossComputed | BackwardBegins | AfterUpdate | StepEnds
    ) -> Iterable[Reading]:
        """The mean over the backwards of the step, and one value for each loss function."""
        if isinstance(moment, LossComputed):
            reduced = reduction(moment.arguments)
            self._summed.add(moment.function, moment.loss.device, reduced == "sum")
            if reduced == "mean" and moment.loss.numel() == 1 and len(self._means) < 2:
                # A copy: the script may go on to divide its loss in place.
                self._means.append(moment.loss.to(torch.float32, copy=True).reshape(1))
            return
        if isinstance(moment, StepEnds):
            yield from self._readings()
            return
        self._summed.settle()
        if isinstance(moment, BackwardBegins):
            if len(moment.roots) == len(self._means) == 1:
                root, mean = moment.roots[0].detach(), self._means[0]
                if root.device == mean.device:
                    self._shares.append(root.reshape(1) / mean)
            self._means.clear()

    def _readings(self) -> Iterable[Reading]:
        if self._shares:
            here = [share for share in self._shares if share.device == self._shares[0].device]
            # A loss of 0 has no share in anything.
            yield Reading(LOSS_ROOT_SHARE, STEP, torch.cat(here).nanmean().reshape(1))
            self._shares.clear()
        for function, summed in self._summed.take():
            yield Reading(LOSS_SUMMED, self._owners[function], [float(any(summed))])
