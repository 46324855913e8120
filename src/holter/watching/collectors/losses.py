"""The loss of each step, and how often backward and a closure were called for it."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import torch
from torch import Tensor

from holter.record.signals import BACKWARD_CALLS, CLOSURE_CALLS, LOSS, LOSS_LOGGED, Signal
from holter.watching.collectors import STEP
from holter.watching.collectors.lane import Lane, copied
from holter.watching.collectors.moments import Depth
from holter.watching.collectors.roster import Subject


class Losses:
    """Adds up what `backward()` is called on, and keeps separately what the loop logs."""

    emits: ClassVar[tuple[Signal, ...]] = (LOSS, LOSS_LOGGED, BACKWARD_CALLS, CLOSURE_CALLS)

    def __init__(self) -> None:
        self._optimised: float | Tensor | None = None
        self._logged: list[Tensor] = []
        self._calls = 0

    def join(self, lane: Lane) -> None:
        """Hear of backward passes, of values that are logged, and of closures."""
        self._row = lane.row
        self._losses, self._logs = lane.places(LOSS), lane.places(LOSS_LOGGED)
        self._backward_calls, self._closure_calls = (
            lane.places(BACKWARD_CALLS),
            lane.places(CLOSURE_CALLS),
        )
        lane.at_backward.append(self._backward)
        lane.at_closure.append(self._closure)
        lane.at_log.append(self._log)
        lane.at_end.append(self._end)

    def _backward(self, roots: Sequence[Tensor], opens: bool, depth: Depth) -> None:  # noqa: ARG002
        self._calls += 1
        for root in roots:
            value = copied(root)
            self._optimised = value if self._optimised is None else self._optimised + value

    def _closure(self, calls: int) -> None:
        self._row[self._closure_calls[STEP]] = calls

    def _log(self, values: Mapping[str, Tensor]) -> None:
        if "loss" in values:
            self._logged.append(values["loss"])

    def _end(self, subjects: Sequence[Subject]) -> None:
        row, loss = self._row, self._optimised
        row[self._backward_calls[STEP]] = self._calls
        for subject in subjects:
            if self._logged:
                logged = torch.stack(self._logged).mean()
                row.keep(self._logs[subject.owner], logged)
                if loss is None:
                    row.keep(self._losses[subject.owner], logged)
            if loss is not None:
                row[self._losses[subject.owner]] = loss
                row.is_on_device |= isinstance(loss, Tensor)
        self._optimised, self._calls = None, 0
        if self._logged:
            self._logged = []
