"""Memory at the end of the phases of a step: forward pass, backward pass, update."""

from collections.abc import Iterable
from typing import ClassVar

import torch

from holter.record.signals import (
    MEMORY_AFTER_BACKWARD,
    MEMORY_AFTER_FORWARD,
    MEMORY_AFTER_OPTIMIZER,
    Signal,
)
from holter.watching.collectors import STEP, Reading
from holter.watching.collectors.moments import (
    AfterUpdate,
    BackwardBegins,
    BeforeUpdate,
    Depth,
    StepEnds,
)
from holter.watching.collectors.roster import Roster
from holter.watching.process_memory import private_memory


class PhaseMemory:
    """Reads the memory in tensors on a GPU, and that of the process elsewhere.

    The peak that torch counts is not reset for it: a script may read that itself.
    """

    emits: ClassVar[tuple[Signal, ...]] = (
        MEMORY_AFTER_FORWARD,
        MEMORY_AFTER_BACKWARD,
        MEMORY_AFTER_OPTIMIZER,
    )
    at: ClassVar[tuple[type, ...]] = (BackwardBegins, BeforeUpdate, AfterUpdate, StepEnds)
    depth: ClassVar[Depth] = Depth.FULL
    wakes_at: ClassVar[tuple[type, ...]] = ()

    def __init__(self) -> None:
        self._most: dict[Signal, int] = {}  # in this step

    def read(
        self, moment: BackwardBegins | BeforeUpdate | AfterUpdate | StepEnds
    ) -> Iterable[Reading]:
        """The largest memory in use at the end of each phase, when the step ends."""
        if isinstance(moment, StepEnds):
            most, self._most = self._most, {}
            return [Reading(signal, STEP, [float(used)]) for signal, used in most.items()]
        signal = MEMORY_AFTER_FORWARD
        if not isinstance(moment, BackwardBegins):
            is_over = isinstance(moment, AfterUpdate)
            signal = MEMORY_AFTER_OPTIMIZER if is_over else MEMORY_AFTER_BACKWARD
        used = _used(moment.roster)
        if used is not None:
            self._most[signal] = max(self._most.get(signal, 0), used)
        return ()


def _used(roster: Roster) -> int | None:
    device = next((each.device for each in roster.parameters if each.is_cuda), None)
    if device is None:
        return private_memory()
    stats = torch.cuda.memory_stats_as_nested_dict(device)
    used: int = stats["allocated_bytes"]["all"]["current"]
    return used
