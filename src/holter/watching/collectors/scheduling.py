"""How often learning-rate schedulers are stepped."""

from collections.abc import Iterable
from typing import ClassVar

from holter.record.signals import SCHEDULE_STEPS, Signal
from holter.watching.collectors import STEP, Reading
from holter.watching.collectors.moments import Depth, SchedulerStepped, StepEnds


class Scheduling:
    """Counts `scheduler.step()` calls between the ends of steps, from the first call on."""

    emits: ClassVar[tuple[Signal, ...]] = (SCHEDULE_STEPS,)
    at: ClassVar[tuple[type, ...]] = (SchedulerStepped, StepEnds)
    depth: ClassVar[Depth] = Depth.LIGHT
    wakes_at: ClassVar[tuple[type, ...]] = (SchedulerStepped,)

    def __init__(self) -> None:
        self._calls: int | None = None

    def read(self, moment: SchedulerStepped | StepEnds) -> Iterable[Reading]:
        """The count of the step."""
        if isinstance(moment, SchedulerStepped):
            self._calls = (self._calls or 0) + 1
        elif self._calls is not None:
            calls, self._calls = self._calls, 0
            return (Reading(SCHEDULE_STEPS, STEP, [calls]),)
        return ()
