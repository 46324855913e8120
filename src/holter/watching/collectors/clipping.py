"""What the script's own gradient clipping measured and did."""

import math
from typing import ClassVar

from torch import Tensor

from holter.record.signals import (
    CLIP_COEFFICIENT,
    CLIP_LATE,
    CLIP_LIMIT,
    CLIP_NORM,
    CLIP_SCALED,
    Signal,
)
from holter.watching.collectors import STEP
from holter.watching.collectors.lane import ABSENT, Lane


class Clipping:
    """Takes the norm that `clip_grad_norm_` has computed anyway."""

    emits: ClassVar[tuple[Signal, ...]] = (
        CLIP_NORM,
        CLIP_LIMIT,
        CLIP_COEFFICIENT,
        CLIP_SCALED,
        CLIP_LATE,
    )

    def __init__(self) -> None:
        self._places: tuple[int, ...] = ()  # of the signals above; none before the first clipping

    def join(self, lane: Lane) -> None:
        """Hear of clipping."""
        self._lane = lane
        lane.at_clip.append(self._clip)
        lane.at_arrival.append(self._arrived)

    def _clip(self, norm: Tensor | None, limit: float, scaled: bool, late: bool) -> None:
        if late and not math.isfinite(limit):
            return  # the update is over: the script only wants the norm
        if not self._places:
            self._places = tuple(self._lane.places(signal)[STEP] for signal in self.emits)
        row = self._lane.row
        norm_at, limit_at, _, scaled_at, late_at = self._places
        row[scaled_at], row[late_at], row[limit_at] = scaled, late, limit
        if norm is not None:
            row.keep(norm_at, norm)

    def _arrived(self, row: list[float]) -> None:
        """Add the coefficient, as torch computes it, epsilon included."""
        # A row that was taken before the first clipping has none of these places.
        if self._places and max(self._places) < len(row):
            norm_at, limit_at, coefficient_at, *_ = self._places
            norm = row[norm_at]
            if norm is not ABSENT:
                row[coefficient_at] = min(row[limit_at] / (norm + 1e-6), 1.0)
