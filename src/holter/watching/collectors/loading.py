"""The batches that loaders deliver, and the wait for them."""

from collections.abc import Sequence
from typing import ClassVar

from torch import Tensor

from holter.record.format import Floats
from holter.record.signals import DATA_BATCH_SIZE, DATA_BATCHES, TIME_DATA_WAIT, Signal
from holter.watching.collectors.lane import Lane
from holter.watching.collectors.moments import Depth
from holter.watching.collectors.roster import Subject

Totals = dict[str, tuple[int, float, int]]  # loader -> samples, seconds, batches


class Loading:
    """Files a batch under the step whose backward follows it; validation batches under none."""

    emits: ClassVar[tuple[Signal, ...]] = (DATA_BATCH_SIZE, TIME_DATA_WAIT, DATA_BATCHES)
    repeats: ClassVar[bool] = True

    def __init__(self) -> None:
        self._fetched: Totals = {}
        self._used: Totals = {}
        self._owners: dict[str, tuple[str, ...]] = {}

    def join(self, lane: Lane) -> None:
        """Hear of batches and, from the first one on, of what becomes of them."""
        self._lane, self._row = lane, lane.row
        self._signals = tuple(lane.places(signal) for signal in self.emits)
        lane.at_fetch.append(self._fetch)

    @property
    def single(self) -> tuple[str, int, float] | None:
        """The loader, samples and seconds of the open step's batch, if it has just one."""
        if len(self._used) != 1 or self._fetched:
            return None
        ((loader, (samples, waited, batches)),) = self._used.items()
        return (loader, samples, waited) if batches == 1 else None

    def places(self, loader: str) -> list[int]:
        """Return the places of what is recorded of a loader."""
        return [places[self._owners[loader]] for places in self._signals]

    def resume(self, used: Totals, fetched: Totals) -> None:
        """Take up the open step with its batch, and that of the next step if it is there."""
        self._used, self._fetched = used, fetched

    def write(self, rows: Floats, loader: str, batches: Sequence[tuple[int, float, float]]) -> None:
        """Write the batches of steps that had one each: samples, seconds, and when it came."""
        samples_at, waited_at, batches_at = self.places(loader)
        rows[:, samples_at] = [samples for samples, _, _ in batches]
        rows[:, waited_at] = [waited for _, waited, _ in batches]
        rows[:, batches_at] = 1.0

    def _fetch(self, loader: str, samples: int, waited: float) -> None:
        if not self._owners:
            self._lane.at_validation.append(self._validated)
            self._lane.at_backward.append(self._backward)
            self._lane.at_end.append(self._end)
        self._owners.setdefault(loader, (loader,))
        # Only the latest batch: one that no backward followed was not trained on.
        self._fetched[loader] = (samples, waited, 1)

    def _validated(self) -> None:
        self._fetched.clear()

    def _backward(self, roots: Sequence[Tensor], opens: bool, depth: Depth) -> None:  # noqa: ARG002
        if not self._fetched:
            return
        for loader, (samples, waited, batches) in self._fetched.items():
            old = self._used.get(loader, (0, 0.0, 0))
            self._used[loader] = (old[0] + samples, old[1] + waited, old[2] + batches)
        self._fetched.clear()

    def _end(self, subjects: Sequence[Subject]) -> None:  # noqa: ARG002
        if not self._used:
            return
        for loader, totals in self._used.items():
            owner = self._owners[loader]
            for places, value in zip(self._signals, totals, strict=True):
                self._row[places[owner]] = value
        self._used.clear()
