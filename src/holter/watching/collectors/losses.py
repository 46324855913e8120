"""The loss of each step, and how often backward and a closure were called for it."""

from collections.abc import Iterable
from typing import ClassVar

import torch
from torch import Tensor

from holter.record.signals import BACKWARD_CALLS, CLOSURE_CALLS, LOSS, LOSS_LOGGED, Signal
from holter.watching.collectors import STEP, Reading
from holter.watching.collectors.moments import (
    BackwardBegins,
    ClosureCalled,
    Depth,
    Logged,
    StepEnds,
)


class Losses:
    """Adds up what `backward()` is called on, and keeps separately what the loop logs."""

    emits: ClassVar[tuple[Signal, ...]] = (LOSS, LOSS_LOGGED, BACKWARD_CALLS, CLOSURE_CALLS)
    at: ClassVar[tuple[type, ...]] = (BackwardBegins, Logged, ClosureCalled, StepEnds)
    depth: ClassVar[Depth] = Depth.LIGHT
    wakes_at: ClassVar[tuple[type, ...]] = ()

    def __init__(self) -> None:
        self._optimised: float | Tensor | None = None
        self._logged: list[Tensor] = []
        self._calls = 0

    def read(self, moment: BackwardBegins | Logged | ClosureCalled | StepEnds) -> Iterable[Reading]:
        """Both losses at the end of the step."""
        if isinstance(moment, BackwardBegins):
            self._calls += 1
            for root in moment.roots:
                value = _value(root)
                self._optimised = value if self._optimised is None else self._optimised + value
            return ()
        if isinstance(moment, ClosureCalled):
            return [Reading(CLOSURE_CALLS, STEP, [moment.calls])]
        if isinstance(moment, Logged):
            if "loss" in moment.values:
                self._logged.append(moment.values["loss"])
            return ()
        logged = torch.stack(self._logged).mean().reshape(1) if self._logged else None
        loss = logged if self._optimised is None else _values(self._optimised)
        readings = [Reading(BACKWARD_CALLS, STEP, [self._calls])]
        for subject in moment.subjects:
            if loss is not None:
                readings.append(Reading(LOSS, subject.owner, loss))
            if logged is not None:
                readings.append(Reading(LOSS_LOGGED, subject.owner, logged))
        self._optimised, self._logged, self._calls = None, [], 0
        return readings


def _value(root: Tensor) -> float | Tensor:
    """What a root is now: the script may go on to change its loss in place."""
    if root.is_cpu:
        return root.item()
    return root.detach().to(torch.float32, copy=True).reshape(1)


def _values(loss: float | Tensor) -> list[float] | Tensor:
    return loss if isinstance(loss, Tensor) else [loss]
