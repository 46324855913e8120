"""The targets that loss functions are given in training."""

import math
from collections.abc import Iterable
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from holter.record.signals import (
    TARGET_BATCH_ENTROPY,
    TARGET_BROADCAST,
    TARGET_CLASSES,
    TARGET_COUNT,
    TARGET_ENTROPY,
    TARGET_IGNORED_FRACTION,
    TARGET_LARGEST_CLASS_FRACTION,
    TARGET_MAX,
    TARGET_MEAN,
    TARGET_MIN,
    TARGET_STD,
    TARGET_WEIGHT_AWAY,
    TARGET_WEIGHT_SLOPE,
    Signal,
)
from holter.watching.collectors import Reading
from holter.watching.collectors.baselines import Labels, Moments, Scalars, baseline
from holter.watching.collectors.loss_calls import Family, Given, Measurements, Owners, given
from holter.watching.collectors.moments import (
    AfterUpdate,
    BackwardBegins,
    Depth,
    LossComputed,
    StepEnds,
)

_BASELINES = 8  # of one loss function that are kept: one for each number of classes


class Measured(NamedTuple):
    """One call."""

    baseline: Labels | Moments | None
    left: Tensor | int  # how many targets are not ignored
    total: int | None  # how many there are, where some may be ignored
    span: tuple[Tensor, Tensor] | None
    is_broadcast: bool | None


class Targets:
    """Accumulates targets over the run; signals of a batch are pooled over all calls of a step."""

    emits: ClassVar[tuple[Signal, ...]] = (
        TARGET_ENTROPY,
        TARGET_BATCH_ENTROPY,
        TARGET_CLASSES,
        TARGET_WEIGHT_SLOPE,
        TARGET_WEIGHT_AWAY,
        TARGET_COUNT,
        TARGET_LARGEST_CLASS_FRACTION,
        TARGET_IGNORED_FRACTION,
        TARGET_MEAN,
        TARGET_STD,
        TARGET_MIN,
        TARGET_MAX,
        TARGET_BROADCAST,
    )
    at: ClassVar[tuple[type, ...]] = (LossComputed, BackwardBegins, AfterUpdate, StepEnds)
    depth: ClassVar[Depth] = Depth.FULL
    wakes_at: ClassVar[tuple[type, ...]] = ()

    def __init__(self) -> None:
        self._calls: Measurements[Measured] = Measurements()
        self._owners = Owners()
        self._seen: dict[str, dict[Any, Any]] = {}  # by function and key: its baseline so far

    def read(
        self, moment: LossComputed | BackwardBegins | AfterUpdate | StepEnds
    ) -> Iterable[Reading]:
        """All calls of each loss function together, at the end of the step."""
        if isinstance(moment, LossComputed):
            call = given(moment.function, moment.arguments)
            if call is not None and self._calls.has_room:
                self._calls.add(moment.function, call.target.device, _measured(call))
        elif isinstance(moment, StepEnds):
            for function, calls in self._calls.take():
                owner = self._owners[function]
                yield from _of_the_batch(calls, owner)
                for signal, value in self._known(function, calls).items():
                    yield Reading(signal, owner, value.reshape(1))
        else:
            self._calls.settle()

    def _known(self, function: str, calls: list[Measured]) -> Scalars:
        fresh: dict[Any, Any] = {}
        for call in calls:
            if call.baseline is not None:
                key, one = call.baseline.key, call.baseline
                fresh[key] = one.joined(fresh[key]) if key in fresh else one
        seen = self._seen.setdefault(function, {})
        by_signal: dict[Signal, list[Tensor]] = {}
        for key, batch in fresh.items():
            if key in seen or len(seen) < _BASELINES:
                seen[key] = batch.joined(seen.get(key))
                for signal, value in {**seen[key].of_all(), **batch.of_batch()}.items():
                    by_signal.setdefault(signal, []).append(value)
        return {signal: _mean(values) for signal, values in by_signal.items()}


def _measured(call: Given) -> Measured:
    target, ignored = call.target, call.ignored
    start = baseline(call)
    if call.family is Family.CLASSES:
        count = target.numel() // (call.prediction.shape[call.axis] if call.is_soft else 1)
        if ignored is None:
            return Measured(start, count, None, None, None)
        return Measured(start, (target != ignored).sum(), count, None, None)
    return Measured(start, target.numel(), None, torch.aminmax(target), _is_broadcast(call))


def _is_broadcast(call: Given) -> bool:
    one, other = call.prediction.shape, call.target.shape
    if one == other:
        return False
    if len(other) == 1 and one == (*other, *other):  # each sample against the targets of all
        return len(call.target) > 1
    made = np.broadcast_shapes(one, other)
    return math.prod(made) > max(one.numel(), other.numel())


def _of_the_batch(calls: list[Measured], owner: tuple[str, ...]) -> Iterable[Reading]:
    count = sum(call.left for call in calls)
    yield Reading(TARGET_COUNT, owner, _values(count))
    sparing = [(call.left, call.total) for call in calls if call.total is not None]
    if sparing:
        share = sum(count for count, _ in sparing) / sum(total for _, total in sparing)
        yield Reading(TARGET_IGNORED_FRACTION, owner, _values(1 - share))
    spans = [call.span for call in calls if call.span is not None]
    if spans:
        least = torch.stack([low for low, _ in spans]).amin()
        largest = torch.stack([high for _, high in spans]).amax()
        yield Reading(TARGET_MIN, owner, least.reshape(1))
        yield Reading(TARGET_MAX, owner, largest.reshape(1))
    broadcasts = [call.is_broadcast for call in calls if call.is_broadcast is not None]
    if broadcasts:
        yield Reading(TARGET_BROADCAST, owner, [float(any(broadcasts))])


def _values(value: Tensor | float) -> Tensor | list[float]:
    return value.reshape(1) if isinstance(value, Tensor) else [float(value)]


def _mean(values: list[Tensor]) -> Tensor:
    if len(values) == 1:
        return values[0]
    here = [value.float() for value in values if value.device == values[0].device]
    return torch.stack(here).mean()
