"""What the script's own gradient clipping measured and did."""

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from torch import Tensor

from holter.record.format import Floats
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
    repeats: ClassVar[bool] = True

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

    def limit_of(self, row: Sequence[float]) -> float | None:
        """Return the limit in a row of gradients clipped in time and without a scale, or None."""
        if not self._places or max(self._places) >= len(row):
            return None
        norm_at, limit_at, _, scaled_at, late_at = self._places
        is_plain = row[norm_at] is not ABSENT and not row[scaled_at] and not row[late_at]
        return row[limit_at] if is_plain else None

    def resume(self, norm: float, limit: float) -> None:
        """Take up the open step, in which gradients were clipped."""
        norm_at, limit_at, _, scaled_at, late_at = self._places
        row = self._lane.row
        row[scaled_at], row[late_at], row[limit_at], row[norm_at] = False, False, limit, norm

    def write(self, rows: Floats, norms: Sequence[float], limit: float) -> None:
        """Write what was clipped in steps of one limit."""
        norm_at, limit_at, coefficient_at, scaled_at, late_at = self._places
        found = np.array(norms)
        rows[:, norm_at], rows[:, limit_at] = found, limit
        rows[:, scaled_at] = rows[:, late_at] = 0.0
        rows[:, coefficient_at] = np.minimum(limit / (found + 1e-6), 1.0)

    def _arrived(self, row: list[float]) -> None:
        """Add the coefficient, as torch computes it, epsilon included."""
        # A row that was taken before the first clipping has none of these places.
        if self._places and max(self._places) < len(row):
            norm_at, limit_at, coefficient_at, *_ = self._places
            norm = row[norm_at]
            if norm is not ABSENT:
                row[coefficient_at] = min(row[limit_at] / (norm + 1e-6), 1.0)
