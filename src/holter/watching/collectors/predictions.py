"""The predictions that loss functions are given in training."""

from collections.abc import Callable, Iterable
from typing import ClassVar

import torch
from torch import Tensor

from holter.record.signals import (
    ACCURACY,
    OUTPUT_LOG_NORMALISER,
    OUTPUT_LOG_PROBABILITY_FRACTION,
    OUTPUT_MAX,
    OUTPUT_MIN,
    OUTPUT_PROBABILITY_FRACTION,
    OUTPUT_SIZE,
    OUTPUT_SPREAD,
    OUTPUT_UNITS,
    Signal,
)
from holter.watching.collectors import Reading
from holter.watching.collectors.loss_calls import (
    Family,
    Given,
    Hits,
    Measurements,
    Owners,
    given,
    share,
)
from holter.watching.collectors.moments import (
    AfterUpdate,
    BackwardBegins,
    Depth,
    LossComputed,
    StepEnds,
)

Measured = tuple[dict[Signal, Tensor], Hits | None]

_OF_HALF = (torch.float16, torch.bfloat16)


class Predictions:
    """Reads a prediction when the loss function has returned: nothing is held until backward."""

    emits: ClassVar[tuple[Signal, ...]] = (
        OUTPUT_MIN,
        OUTPUT_MAX,
        OUTPUT_SPREAD,
        OUTPUT_SIZE,
        OUTPUT_PROBABILITY_FRACTION,
        OUTPUT_LOG_PROBABILITY_FRACTION,
        OUTPUT_LOG_NORMALISER,
        OUTPUT_UNITS,
        ACCURACY,
    )
    at: ClassVar[tuple[type, ...]] = (LossComputed, BackwardBegins, AfterUpdate, StepEnds)
    depth: ClassVar[Depth] = Depth.FULL
    wakes_at: ClassVar[tuple[type, ...]] = ()

    def __init__(self) -> None:
        self._calls: Measurements[Measured] = Measurements()
        self._owners = Owners()

    def read(
        self, moment: LossComputed | BackwardBegins | AfterUpdate | StepEnds
    ) -> Iterable[Reading]:
        """All calls of each loss function together, at the end of the step."""
        if isinstance(moment, LossComputed):
            call = given(moment.function, moment.arguments)
            if call is not None and self._calls.has_room:
                self._calls.add(moment.function, call.prediction.device, _measured(call))
        elif isinstance(moment, StepEnds):
            for function, calls in self._calls.take():
                yield from _pooled(calls, self._owners[function])
        else:
            self._calls.settle()


def _measured(whole: Given) -> Measured:
    least, largest = torch.aminmax(whole.prediction)
    thin = whole.thinned()
    values = thin.prediction
    if values.dtype in _OF_HALF:
        values = values.to(torch.float32)
    over_classes = whole.family is Family.CLASSES
    measured = {
        OUTPUT_MIN: least,
        OUTPUT_MAX: largest,
        OUTPUT_SIZE: torch.linalg.vector_norm(values) / values.numel() ** 0.5,
        OUTPUT_UNITS: torch.tensor(float(_units(whole)), device="cpu"),
    }
    samples = [axis for axis in range(values.dim()) if (axis == thin.axis) is not over_classes]
    if values.numel() > _units(thin):
        measured[OUTPUT_SPREAD] = values.var(samples).mean().sqrt()
    if over_classes:
        measured |= _over_classes(values, thin)
    elif whole.family is Family.BINARY:
        rows = values.reshape(-1, _units(thin))
        inside = ((rows >= 0) & (rows <= 1)).all(1)
        measured[OUTPUT_PROBABILITY_FRACTION] = inside.to(values.dtype).mean()
    return measured, thin.hits()


def _over_classes(values: Tensor, thin: Given) -> dict[Signal, Tensor]:
    # What rounding in half precision does to a probability, and to the log of a small one.
    half = thin.prediction.dtype in _OF_HALF
    near, near_log = (0.02, 0.05) if half else (1e-3, 1e-3)
    normaliser = torch.logsumexp(values, thin.axis)
    adds_up = (values.sum(thin.axis) - 1).abs() <= near
    return {
        OUTPUT_LOG_NORMALISER: normaliser.mean(),
        OUTPUT_LOG_PROBABILITY_FRACTION: (normaliser.abs() <= near_log).to(values.dtype).mean(),
        OUTPUT_PROBABILITY_FRACTION: (
            (adds_up & (values.amin(thin.axis) >= 0)).to(values.dtype).mean()
        ),
    }


def _units(call: Given) -> int:
    shape = call.prediction.shape
    if call.family is Family.CLASSES:
        return shape[call.axis]
    return shape[1:].numel()


def _pooled(calls: list[Measured], owner: tuple[str, ...]) -> Iterable[Reading]:
    for signal in {signal: None for measured, _ in calls for signal in measured}:
        values = [measured[signal].reshape(1) for measured, _ in calls if signal in measured]
        if len(values) > 1:
            values = [_together(signal)(torch.cat(values))]
        yield Reading(signal, owner, values[0].reshape(1))
    hits = [hits for _, hits in calls if hits is not None]
    if hits:
        yield Reading(ACCURACY, owner, share(hits))


def _together(signal: Signal) -> Callable[[Tensor], Tensor]:
    return {OUTPUT_MIN: torch.amin, OUTPUT_MAX: torch.amax}.get(signal, torch.mean)
