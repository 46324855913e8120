"""How losses are reduced: what loss functions compute against what backward is called on."""

import math
from collections.abc import Iterable
from typing import ClassVar

import torch
from torch import Tensor

from holter.record.signals import (
    LOSS_ELEMENTS,
    LOSS_MEAN,
    LOSS_ROOT_SHARE,
    LOSS_SUMMED,
    Signal,
)
from holter.watching.collectors import STEP, Reading
from holter.watching.collectors.elements import Total, device_of, number, total
from holter.watching.collectors.inputs import as_values
from holter.watching.collectors.loss_calls import Measurements, Owners, reduction
from holter.watching.collectors.moments import (
    AfterUpdate,
    BackwardBegins,
    Depth,
    LossComputed,
    StepEnds,
)
from holter.watching.collectors.script_factors import script_factors

_MOST_CALLS = 64  # before one backward: memory stays bounded


class Reductions:
    """Compares the root of each backward with the mean of the one loss function before it."""

    emits: ClassVar[tuple[Signal, ...]] = (LOSS_ROOT_SHARE, LOSS_SUMMED, LOSS_MEAN, LOSS_ELEMENTS)
    at: ClassVar[tuple[type, ...]] = (LossComputed, BackwardBegins, AfterUpdate, StepEnds)
    depth: ClassVar[Depth] = Depth.REGULAR
    wakes_at: ClassVar[tuple[type, ...]] = ()

    def __init__(self) -> None:
        self._summed: Measurements[bool] = Measurements()
        self._owners = Owners()
        self._calls: list[tuple[str, Total | None]] = []  # since the last backward
        self._are_whole = True  # nothing is known to be added to what was called
        self._shares: list[Tensor | float] = []
        self._totals: dict[str, Total] = {}  # of functions called once before each backward
        self._repeated: set[str] = set()

    def read(
        self, moment: LossComputed | BackwardBegins | AfterUpdate | StepEnds
    ) -> Iterable[Reading]:
        """The mean over the backwards of the step, and one value for each loss function."""
        if isinstance(moment, LossComputed):
            function, reduced = moment.function, reduction(moment.arguments)
            self._summed.add(function, moment.loss.device, reduced == "sum")
            if len(self._calls) < _MOST_CALLS:
                call = total(function, moment.arguments, moment.loss, moment.samples)
                self._calls.append((function, call))
                self._are_whole &= moment.is_whole
            return
        if isinstance(moment, StepEnds):
            yield from self._readings()
            return
        self._summed.settle()
        if isinstance(moment, BackwardBegins):
            self._settle(moment.roots)

    def _settle(self, roots: tuple[Tensor, ...]) -> None:
        """See a backward: what was called until now is what it is called on."""
        is_alone = self._are_whole and len(roots) == len(self._calls) == 1
        if is_alone and (call := self._calls[0][1]) is not None:
            root, mean = number(roots[0].reshape(())), call.mean
            if device_of(root) == device_of(mean):
                scale = script_factors(roots[0]).scale
                self._shares.append(_ratio(root, mean) / scale)
        functions = [function for function, _ in self._calls]
        for function, call in self._calls:
            before = self._totals.get(function)
            if call is None or functions.count(function) > 1:
                self._repeated.add(function)
            elif before is None:
                self._totals[function] = call
            elif before.is_with(call):
                self._totals[function] = before + call
        self._calls.clear()
        self._are_whole = True

    def _readings(self) -> Iterable[Reading]:
        if self._shares:
            here = [
                share for share in self._shares if device_of(share) == device_of(self._shares[0])
            ]
            yield Reading(LOSS_ROOT_SHARE, STEP, _mean(here))
            self._shares.clear()
        summed = {function: any(calls) for function, calls in self._summed.take()}
        for function, is_summed in summed.items():
            yield Reading(LOSS_SUMMED, self._owners[function], [float(is_summed)])
        for function, losses in self._totals.items():
            if function not in self._repeated:
                yield Reading(LOSS_MEAN, self._owners[function], as_values(losses.mean))
                if summed.get(function):
                    yield Reading(LOSS_ELEMENTS, self._owners[function], as_values(losses.count))
        self._totals.clear()
        self._repeated.clear()


def _ratio(root: Tensor | float, mean: Tensor | float) -> Tensor | float:
    if isinstance(root, Tensor) or isinstance(mean, Tensor):
        return root / mean
    return root / mean if mean else math.nan  # a loss of 0 has no share in anything


def _mean(shares: list[Tensor | float]) -> Tensor | list[float]:
    """Return the mean of the shares that are numbers."""
    tensors = [share for share in shares if isinstance(share, Tensor)]
    if tensors:
        return torch.cat(tensors).nanmean().reshape(1)
    numbers = [float(share) for share in shares if not math.isnan(share)]
    return [sum(numbers) / len(numbers) if numbers else math.nan]
