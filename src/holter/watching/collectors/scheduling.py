"""How often learning-rate schedulers are stepped."""

from collections.abc import Sequence
from typing import ClassVar

from holter.record.signals import SCHEDULE_STEPS, Signal
from holter.watching.collectors import STEP
from holter.watching.collectors.lane import Lane
from holter.watching.collectors.roster import Subject


class Scheduling:
    """Counts `scheduler.step()` calls between the ends of steps, from the first call on."""

    emits: ClassVar[tuple[Signal, ...]] = (SCHEDULE_STEPS,)
    repeats: ClassVar[bool] = True

    def __init__(self) -> None:
        self._calls: int | None = None

    def join(self, lane: Lane) -> None:
        """Hear of schedulers."""
        self._lane, self._places = lane, lane.places(SCHEDULE_STEPS)
        lane.at_schedule.append(self._stepped)

    def resume(self, calls: int) -> None:
        """Take up the open step, with so many calls since the end of the one before."""
        self._calls = calls

    def _stepped(self) -> None:
        if self._calls is None:
            self._calls = 0
            self._lane.at_end.append(self._end)
        self._calls += 1

    def _end(self, subjects: Sequence[Subject]) -> None:  # noqa: ARG002
        self._lane.row[self._places[STEP]] = self._calls
        self._calls = 0
