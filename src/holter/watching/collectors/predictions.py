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
from holter.watching.collectors.arguments import Memory
from holter.watching.collectors.calls import Calls, is_compiled
from holter.watching.collectors.inputs import roots
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
    Closing,
    Depth,
    Joined,
    LossComputed,
    StepEnds,
)

Measured = tuple[dict[Signal, Tensor], Hits | None]

_LOOKS = 16
_OF_HALF = (torch.float16, torch.bfloat16)


class Predictions:
    """Reads a prediction when the loss function has returned: nothing is held until backward.

    A loss function whose targets are what a model was called with rebuilds its input, as an
    autoencoder does: its targets are no classes, and it has no accuracy.
    """

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
    at: ClassVar[tuple[type, ...]] = (
        Joined,
        LossComputed,
        BackwardBegins,
        AfterUpdate,
        StepEnds,
        Closing,
    )
    depth: ClassVar[Depth] = Depth.FULL
    wakes_at: ClassVar[tuple[type, ...]] = ()

    def __init__(self) -> None:
        self._calls: Measurements[Measured] = Measurements()
        self._owners = Owners()
        self._models: Calls[str] = Calls(lambda _, __, arguments: self._inputs.add(arguments))
        self._inputs = Memory()  # of the models, in the step that is read
        self._knows_models = False  # before, targets may be inputs that were not heard
        self._looks = _LOOKS  # steps in which targets are still compared with inputs
        self._rebuilding: set[str] = set()  # loss functions whose targets are inputs

    @property
    def spent(self) -> float:
        """Seconds inside the hooks, which no moment sees."""
        return self._models.spent

    def read(
        self, moment: Joined | LossComputed | BackwardBegins | AfterUpdate | StepEnds | Closing
    ) -> Iterable[Reading]:
        """All calls of each loss function together, at the end of the step."""
        if isinstance(moment, LossComputed):
            self._models.check()
            call = given(moment.function, moment.arguments)
            if call is not None and self._calls.has_room:
                if call.family is Family.BINARY and self._inputs.holds(call.target):
                    self._rebuilding.add(moment.function)
                self._calls.add(moment.function, call.prediction.device, self._measured(call))
        elif isinstance(moment, StepEnds):
            for function, calls in self._calls.take():
                yield from _pooled(calls, self._owners[function])
        else:
            if not isinstance(moment, Joined):
                self._calls.settle()
            self._listen(moment)

    def _listen(self, moment: Joined | BackwardBegins | AfterUpdate | Closing) -> None:
        """Hear what models are called with from one step that is read whole to its backward."""
        self._models.stop()
        self._inputs.clear()
        if isinstance(moment, BackwardBegins | Closing):
            return
        self._knows_models = True
        if not self._looks:
            return
        depth = moment.depth if isinstance(moment, Joined) else moment.next_depth
        if depth < self.depth or any(is_compiled(each.module) for each in moment.roster.models):
            return
        self._looks -= 1
        self._models.know(roots(moment.roster))
        self._models.listen()

    def _measured(self, call: Given) -> Measured:
        values, thin = _values(call)
        is_unsure = call.family is Family.BINARY and not self._knows_models
        return values, None if is_unsure or call.function in self._rebuilding else thin.hits()


def _values(whole: Given) -> tuple[dict[Signal, Tensor], Given]:
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
    return measured, thin


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
