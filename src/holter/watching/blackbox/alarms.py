"""Alarms: what makes the black box write its window, seen in readings as they arrive."""

import math
import statistics
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from holter.record.band import WINDOW, Band
from holter.record.signals import (
    ACTIVATION_ABSMAX,
    AMP_SCALE,
    GRAD_TOTAL_NORM,
    LOSS,
    WEIGHT_NORM,
    Signal,
)

_FEWEST = 32  # before which there is no band
_STILL_HIGH = 4.0  # spreads above the band from which it has not come back
_LOOK_EVERY = 8  # losses between two looks at the band: medians take their time
_PATIENCE = 24  # losses that a spike is given to come back


@dataclass(frozen=True, slots=True)
class Alarm:
    """Why a window is written, and the step it began with."""

    kind: str  # "nonfinite", "spike", "exception", "asked"
    step: int
    says: str


class Alarms:
    """Looks at the readings of each step on the host; tells of the first thing that is wrong."""

    def __init__(self) -> None:
        self._spikes = Spikes()

    @property
    def suspects(self) -> bool:
        """Whether a loss has left its band, and may still come back."""
        return self._spikes.is_open

    def see(self, step: int, readings: Mapping[Signal, Sequence[float]]) -> Alarm | None:
        """The alarm that the readings of a step raise, if they do."""
        for loss in readings.get(LOSS, ()):
            if not math.isfinite(loss):
                return Alarm("nonfinite", step, f"the loss is {loss}")
            peak = self._spikes.add(step, loss)
            if peak is not None:
                return Alarm("spike", peak[0], f"the loss rose to {peak[1]:.4g} and did not return")
        if not all(map(math.isfinite, readings.get(WEIGHT_NORM, ()))):
            return Alarm("nonfinite", step, "a weight is not finite")
        if (
            AMP_SCALE in readings
        ):  # with a loss scale, gradients that overflow are skipped by design
            return None
        for norm in readings.get(GRAD_TOTAL_NORM, ()):
            if not math.isfinite(norm):
                return Alarm("nonfinite", step, f"the gradient norm is {norm}")
        if not all(map(math.isfinite, readings.get(ACTIVATION_ABSMAX, ()))):
            return Alarm("nonfinite", step, "an activation is not finite")
        return None


class Spikes:
    """Tells of a loss that left its band upwards and has not come back."""

    def __init__(self) -> None:
        self._band: deque[float] = deque(maxlen=WINDOW)
        self._ceiling = math.inf  # above which a loss is a spike
        self._until_look = _FEWEST  # losses until the band is looked at again
        self._since: list[tuple[int, float]] = []  # losses from a spike on

    @property
    def is_open(self) -> bool:
        """Whether a spike is waited for to come back."""
        return bool(self._since)

    def add(self, step: int, loss: float) -> tuple[int, float] | None:
        """The step and height of a spike that has not recovered, once that is known."""
        if self._since:
            return self._wait(step, loss)
        if loss > self._ceiling:
            self._since = [(step, loss)]
            return None
        self._band.append(loss)
        self._until_look -= 1
        if self._until_look <= 0:
            self._look()
        return None

    def _look(self) -> None:
        self._ceiling, self._until_look = Band.of(self._band).ceiling(), _LOOK_EVERY

    def _wait(self, step: int, loss: float) -> tuple[int, float] | None:
        self._since.append((step, loss))
        if len(self._since) < _PATIENCE:
            return None
        since, self._since = self._since, []
        band = Band.of(self._band)
        late = statistics.median(value for _, value in since[len(since) // 2 :])
        highest = max(self._band)  # losses with long tails come as high without being ill
        self._band.clear()
        self._ceiling, self._until_look = math.inf, _FEWEST
        if late > max(band.ceiling(_STILL_HIGH), highest):
            return since[0][0], max(value for _, value in since)
        self._band.extend(value for _, value in since[len(since) // 2 :])
        return None
