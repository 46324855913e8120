"""What the script's own gradient clipping measured and did."""

import math
from collections.abc import Iterable
from typing import ClassVar

from holter.record.signals import (
    CLIP_COEFFICIENT,
    CLIP_LATE,
    CLIP_LIMIT,
    CLIP_NORM,
    CLIP_SCALED,
    Signal,
)
from holter.watching.collectors import STEP, Reading
from holter.watching.collectors.moments import Clipped, Depth


class Clipping:
    """Takes the norm that `clip_grad_norm_` has computed anyway."""

    emits: ClassVar[tuple[Signal, ...]] = (
        CLIP_NORM,
        CLIP_LIMIT,
        CLIP_COEFFICIENT,
        CLIP_SCALED,
        CLIP_LATE,
    )
    at: ClassVar[tuple[type, ...]] = (Clipped,)
    depth: ClassVar[Depth] = Depth.LIGHT
    wakes_at: ClassVar[tuple[type, ...]] = ()

    def read(self, moment: Clipped) -> Iterable[Reading]:
        """Norm, limit and coefficient of one clipping call, and whether it was in its place."""
        if moment.late and not math.isfinite(moment.limit):
            return  # the update is over: the script only wants the norm
        yield Reading(CLIP_SCALED, STEP, [moment.scaled])
        yield Reading(CLIP_LATE, STEP, [moment.late])
        yield Reading(CLIP_LIMIT, STEP, [moment.limit])
        if moment.norm is not None:
            # The coefficient as torch computes it, epsilon included.
            if moment.norm.is_cpu:
                value = moment.norm.item()
                yield Reading(CLIP_NORM, STEP, [value])
                yield Reading(CLIP_COEFFICIENT, STEP, [min(moment.limit / (value + 1e-6), 1.0)])
                return
            norm = moment.norm.detach().reshape(1)
            yield Reading(CLIP_NORM, STEP, norm)
            yield Reading(CLIP_COEFFICIENT, STEP, (moment.limit / (norm + 1e-6)).clamp(max=1.0))
