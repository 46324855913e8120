"""GroupListener: a training that is one of several processes."""

from holter.record.events import UnevenInputsJoined
from holter.watching.collectors.groups import described, in_process_group, world_size
from holter.watching.collectors.roster import Roster
from holter.watching.heart import Heart
from holter.watching.loop import Loop
from holter.watching.shield import shielded


class GroupListener:
    """Notes how the training is spread, and lets the process give signs of life."""

    def __init__(self, loop: Loop, *, silence: float | None) -> None:
        self.shield = loop.shield
        self._loop, self._silence = loop, silence
        self._heart: Heart | None = None
        self._is_described = False
        loop.stepper.lane.at_roster.append(self._follow)
        if in_process_group():
            self.group_made()

    @shielded
    def group_made(self) -> None:
        """Begin to give signs of life, if there are others."""
        if self._heart is None and world_size() > 1:
            recorder, stepper = self._loop.recorder, self._loop.stepper
            self._heart = Heart(
                recorder.folder,
                lambda: stepper.coming_step,
                recorder.event,
                silence=self._silence,
            )
            self._heart.join(stepper.lane)

    @shielded
    def inputs_joined(self) -> None:
        """Record that processes may have different numbers of batches."""
        self._loop.recorder.event(UnevenInputsJoined())

    def _follow(self, roster: Roster) -> None:
        if not self._is_described and roster.models and roster.subjects and in_process_group():
            self._is_described = True
            self._loop.recorder.event(described(roster))

    def close(self) -> None:
        """Give no more signs of life."""
        if self._heart is not None:
            self._heart.close()
