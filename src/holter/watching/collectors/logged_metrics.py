"""The metrics that the training loop computes itself and logs."""

from collections.abc import Iterable
from typing import ClassVar

from torch import Tensor

from holter.record.signals import METRIC_LOGGED, Signal
from holter.watching.collectors import Reading
from holter.watching.collectors.moments import Depth, Logged, StepEnds

_LOSSES = ("loss", "val_loss")  # which have signals of their own
_MOST = 64  # names that are told apart


class LoggedMetrics:
    """Keeps the last value of each metric that is logged in a step."""

    emits: ClassVar[tuple[Signal, ...]] = (METRIC_LOGGED,)
    at: ClassVar[tuple[type, ...]] = (Logged, StepEnds)
    depth: ClassVar[Depth] = Depth.LIGHT
    wakes_at: ClassVar[tuple[type, ...]] = (Logged,)

    def __init__(self) -> None:
        self._values: dict[str, Tensor] = {}
        self._owners: dict[str, tuple[str, ...]] = {}

    def read(self, moment: Logged | StepEnds) -> Iterable[Reading]:
        """The metrics of the step, at its end."""
        if isinstance(moment, Logged):
            for name, value in moment.values.items():
                if name not in _LOSSES and (name in self._owners or len(self._owners) < _MOST):
                    self._owners.setdefault(name, (name,))
                    self._values[name] = value
            return ()
        values, self._values = self._values, {}
        return [
            Reading(METRIC_LOGGED, self._owners[name], value.reshape(1))
            for name, value in values.items()
        ]
