"""The loss scale of automatic mixed precision, and the steps it skips."""

from collections.abc import Iterable
from typing import ClassVar

from holter.record.signals import AMP_SCALE, AMP_SKIPPED, Signal
from holter.watching.collectors import STEP, Reading
from holter.watching.collectors.moments import Depth, ScalerStepped


class Scaling:
    """Reads what a GradScaler did with the step."""

    emits: ClassVar[tuple[Signal, ...]] = (AMP_SCALE, AMP_SKIPPED)
    at: ClassVar[tuple[type, ...]] = (ScalerStepped,)
    depth: ClassVar[Depth] = Depth.LIGHT
    wakes_at: ClassVar[tuple[type, ...]] = ()

    def read(self, moment: ScalerStepped) -> Iterable[Reading]:
        """Scale and skip of one step."""
        yield Reading(AMP_SCALE, STEP, moment.scale.reshape(1))
        yield Reading(AMP_SKIPPED, STEP, moment.skipped)
