"""The loss scale of automatic mixed precision, and the steps it skips."""

from typing import ClassVar

from torch import Tensor

from holter.record.signals import AMP_SCALE, AMP_SKIPPED, Signal
from holter.watching.collectors import STEP
from holter.watching.collectors.lane import Lane


class Scaling:
    """Reads what a GradScaler did with the step."""

    emits: ClassVar[tuple[Signal, ...]] = (AMP_SCALE, AMP_SKIPPED)

    def join(self, lane: Lane) -> None:
        """Hear of scalers."""
        self._row, self._scale = lane.row, lane.places(AMP_SCALE)
        self._skipped = lane.places(AMP_SKIPPED)
        lane.at_scaler.append(self._stepped)

    def _stepped(self, scale: Tensor, skipped: Tensor | float) -> None:
        row = self._row
        row.keep(self._scale[STEP], scale)
        if isinstance(skipped, Tensor):
            row.keep(self._skipped[STEP], skipped)
        else:
            row[self._skipped[STEP]] = skipped
