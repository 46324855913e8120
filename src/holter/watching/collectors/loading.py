"""The batches that loaders deliver, and the wait for them."""

from collections.abc import Iterable
from typing import ClassVar

from holter.record.signals import DATA_BATCH_SIZE, DATA_BATCHES, TIME_DATA_WAIT, Signal
from holter.watching.collectors import Reading
from holter.watching.collectors.moments import (
    BackwardBegins,
    BatchFetched,
    Depth,
    StepEnds,
    ValidationLoss,
)

Totals = dict[str, tuple[int, float, int]]  # loader -> samples, seconds, batches


class Loading:
    """Files a batch under the step whose backward follows it; validation batches under none."""

    emits: ClassVar[tuple[Signal, ...]] = (DATA_BATCH_SIZE, TIME_DATA_WAIT, DATA_BATCHES)
    at: ClassVar[tuple[type, ...]] = (BatchFetched, BackwardBegins, ValidationLoss, StepEnds)
    depth: ClassVar[Depth] = Depth.LIGHT
    wakes_at: ClassVar[tuple[type, ...]] = (BatchFetched,)

    def __init__(self) -> None:
        self._fetched: Totals = {}
        self._used: Totals = {}
        self._owners: dict[str, tuple[str, ...]] = {}

    def read(
        self, moment: BatchFetched | BackwardBegins | ValidationLoss | StepEnds
    ) -> Iterable[Reading]:
        """Samples and wait of each training loader, at the end of the step."""
        if isinstance(moment, BatchFetched):
            # Only the latest batch: one that no backward followed was not trained on.
            self._fetched[moment.loader] = (moment.samples, moment.waited, 1)
        elif isinstance(moment, ValidationLoss):
            self._fetched.clear()
        elif isinstance(moment, BackwardBegins):
            for loader, (samples, waited, batches) in self._fetched.items():
                old = self._used.get(loader, (0, 0.0, 0))
                self._used[loader] = (old[0] + samples, old[1] + waited, old[2] + batches)
            self._fetched.clear()
        elif self._used:
            readings = []
            for loader, (samples, waited, batches) in self._used.items():
                owner = self._owners.setdefault(loader, (loader,))
                readings.append(Reading(DATA_BATCH_SIZE, owner, [samples]))
                readings.append(Reading(TIME_DATA_WAIT, owner, [waited]))
                readings.append(Reading(DATA_BATCHES, owner, [batches]))
            self._used.clear()
            return readings
        return ()
