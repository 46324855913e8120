"""The loss of each step, and how often backward was called for it."""

from collections.abc import Iterable
from typing import ClassVar

import torch
from torch import Tensor

from holter.collectors import STEP, Reading
from holter.collectors.moments import BackwardBegins, Logged, StepEnds
from holter.signals import BACKWARD_CALLS, LOSS, LOSS_LOGGED, Signal


class Losses:
    """Adds up what `backward()` is called on; keeps beside it what the loop logs."""

    emits: ClassVar[tuple[Signal, ...]] = (LOSS, LOSS_LOGGED, BACKWARD_CALLS)
    at: ClassVar[tuple[type, ...]] = (BackwardBegins, Logged, StepEnds)

    def __init__(self) -> None:
        self._optimised: Tensor | None = None
        self._logged: list[Tensor] = []
        self._calls = 0

    def read(self, moment: BackwardBegins | Logged | StepEnds) -> Iterable[Reading]:
        """Both losses at the end of the step."""
        if isinstance(moment, BackwardBegins):
            self._calls += 1
            for root in moment.roots:
                # A copy: the script may go on to change its loss in place.
                value = root.detach().to(torch.float32, copy=True).reshape(())
                self._optimised = value if self._optimised is None else self._optimised + value
            return
        if isinstance(moment, Logged):
            if "loss" in moment.values:
                self._logged.append(moment.values["loss"])
            return
        logged = torch.stack(self._logged).mean().reshape(1) if self._logged else None
        loss = self._optimised.reshape(1) if self._optimised is not None else logged
        calls = self._calls
        self._optimised, self._logged, self._calls = None, [], 0
        yield Reading(BACKWARD_CALLS, STEP, [calls])
        for subject in moment.subjects:
            if loss is not None:
                yield Reading(LOSS, subject.owner, loss)
            if logged is not None:
                yield Reading(LOSS_LOGGED, subject.owner, logged)
