"""Memory of the process, of its children and of the GPU, at the same point of steps."""

from typing import ClassVar

import torch

from holter.record.signals import (
    MEMORY_ALLOCATED,
    MEMORY_PEAK,
    MEMORY_PROCESS,
    MEMORY_RESERVED,
    MEMORY_RETRIES,
    MEMORY_WORKERS,
    Signal,
)
from holter.watching.collectors import STEP
from holter.watching.collectors.lane import Lane
from holter.watching.collectors.moments import Depth
from holter.watching.collectors.roster import Roster, Subject
from holter.watching.process_memory import children, private_memory

_DENSITY = 64  # readings of the process until the number of updates doubles: some 10 µs each
_SELDOM = 4  # readings of which one is of its children and of the GPU, too


class Memory:
    """Reads after the update, when the tensors of forward and backward pass are free again."""

    emits: ClassVar[tuple[Signal, ...]] = (
        MEMORY_PROCESS,
        MEMORY_WORKERS,
        MEMORY_ALLOCATED,
        MEMORY_RESERVED,
        MEMORY_PEAK,
        MEMORY_RETRIES,
    )
    repeats: ClassVar[bool] = True

    def __init__(self) -> None:
        self._updates = 0
        self._every = 1  # updates; a power of two, as `_SELDOM` is
        self._device: torch.device | None = None

    def join(self, lane: Lane) -> None:
        """Hear of updates."""
        self._row = lane.row
        self._places = {signal: lane.places(signal) for signal in self.emits}
        lane.at_roster.append(self._attend)
        lane.at_update_end.append(self._updated)

    def _attend(self, roster: Roster) -> None:
        devices = (parameter.device for parameter in roster.parameters if parameter.is_cuda)
        self._device = next(devices, None)

    @property
    def until_read(self) -> int:
        """Number of updates before the next one that is read."""
        return -self._updates & (self._every - 1)

    def skip(self, updates: int) -> None:
        """Count updates that were not heard."""
        self._updates += updates

    def _updated(self, subject: Subject, depth: Depth) -> None:  # noqa: ARG002
        self.look()

    def look(self) -> None:
        """Read after an update, if it is one of those at which memory is read."""
        update = self._updates
        self._updates += 1
        if update & (self._every - 1):
            return
        if update == 2 * _DENSITY * self._every:
            self._every *= 2
        self._put(MEMORY_PROCESS, private_memory())
        if update & (self._every * _SELDOM - 1):
            return
        processes = children()
        if processes is not None:
            self._put(MEMORY_WORKERS, sum(private_memory(pid) or 0 for pid in processes))
        if self._device is not None:
            # Nested as torch has them: to flatten all of them takes a third of a millisecond.
            stats = torch.cuda.memory_stats_as_nested_dict(self._device)
            allocated = stats["allocated_bytes"]["all"]
            self._put(MEMORY_ALLOCATED, allocated["current"])
            self._put(MEMORY_RESERVED, stats["reserved_bytes"]["all"]["current"])
            self._put(MEMORY_PEAK, allocated["peak"])
            self._put(MEMORY_RETRIES, stats["num_alloc_retries"])

    def _put(self, signal: Signal, value: int | None) -> None:
        if value is not None:
            self._row[self._places[signal][STEP]] = float(value)
