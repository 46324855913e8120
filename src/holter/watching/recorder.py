"""From the readings of a step to the records of a run: one buffer, one transfer, one write."""

import math
import tempfile
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from holter.record import Meta, Run, Writer
from holter.record.events import Occurrence, Resumed
from holter.record.format import ABSENT, Floats, is_absent
from holter.record.meta import Environment
from holter.record.notices import tell
from holter.record.signals import (
    ACTIVATION_ABSMAX,
    AMP_SCALE,
    GRAD_TOTAL_NORM,
    LOSS,
    LOSS_COEFFICIENT_BALANCE,
    LOSS_COEFFICIENT_SIZE,
    WATCH_DEVICE_TIME,
    WATCH_TIME,
    WEIGHT_NORM,
    Signal,
)
from holter.record.writer import Row
from holter.watching.collectors import STEP, Reading
from holter.watching.stats import Packed

DELAY = 0.1  # seconds that the first step of a bunch waits at most
_FEW = 12  # readings
SEEN = frozenset(
    (
        *(LOSS, LOSS_COEFFICIENT_BALANCE, LOSS_COEFFICIENT_SIZE, GRAD_TOTAL_NORM, WEIGHT_NORM),
        *(ACTIVATION_ABSMAX, AMP_SCALE),
    )
)


Timers = tuple[Any, Any]  # CUDA events before and after some work of holter


Settle = Callable[[float, bool], float]  # device time, and whether the host is ahead -> the cost


See = Callable[[int, Mapping[Signal, Sequence[float]]], None]


class _Step(NamedTuple):
    """A step whose readings are on their way to the host."""

    number: int
    wall: float
    readings: Sequence[Reading]
    packed: Packed
    timers: Sequence[Timers]
    settle: Settle
    is_hidden: bool  # the GPU was not yet done with the step before: our host time cost nothing


class Recorder:
    """Writes steps to a run. It starts counting where an earlier part of the run left off.

    Steps of which little was read are written in bunches, each at the latest `DELAY` seconds after
    its first: writing them one by one would cost more than reading them.
    """

    def __init__(
        self,
        path: Path,
        *,
        rank: int,
        environment: Environment | None = None,
        resume: bool = False,
    ) -> None:
        self._step = self._first = _steps_in(path, rank) if resume else 0
        self.see: See | None = None  # called with readings as they arrive
        self._began = time.time()
        self._under_way: deque[_Step] = deque()
        self._bunch: list[tuple[int, float, list[float]]] = []
        self._bunch_layout: list[tuple[str, tuple[str, ...]]] = []
        self._bunch_kinds: list[tuple[Signal, tuple[str, ...]]] = []
        self._writer = _open(path, rank=rank, environment=environment, resume=resume)
        self.path = self._writer.path
        if self._first:
            self.event(Resumed())

    @property
    def step(self) -> int:
        """The number of the open step."""
        return self._step

    @property
    def steps(self) -> int:
        """Number of steps that have ended since this recorder was opened, read or not."""
        return self._step - self._first

    def skip_step(self) -> None:
        """Count a step of which nothing was read."""
        self._step += 1

    def write_step(self, readings: list[Reading], timers: Sequence[Timers], settle: Settle) -> bool:
        """Start the transfer of a step's readings; False if a loss that has arrived is not finite.

        Readings of a GPU are written some steps later, when they have arrived without waiting. Then
        the device time between `timers` is known, too, and `settle` returns what the step cost.
        """
        step, self._step = self._step, self._step + 1
        tensors = [reading[2] for reading in readings if isinstance(reading[2], Tensor)]
        if not tensors and not self._under_way and len(readings) < _FEW:
            readings.append(Reading(WATCH_TIME, STEP, [settle(0.0, False)]))
            return self._gather(step, readings)
        entry = _Step(
            step, time.time(), readings, Packed(tensors), timers, settle, bool(self._under_way)
        )
        self._under_way.append(entry)
        fine = True
        while self._under_way and self._under_way[0].packed.arrived:
            fine &= self._write(self._under_way.popleft())
        return fine

    def flush(self) -> None:
        """Write the bunch."""
        if self._bunch:
            steps, walls, values = zip(*self._bunch, strict=True)
            matrix = np.array(values, np.float32)
            self._writer.write_many("steps", steps, walls, self._bunch_layout, matrix)
            self._bunch.clear()

    def _gather(self, step: int, readings: Sequence[Reading]) -> bool:
        """Add a step to the bunch, and write that if it is due."""
        if not self._fits_the_bunch(readings):
            self.flush()
            if any(
                reading.at is not None or reading.signal.stream != "steps" for reading in readings
            ):
                return self._put(step, time.time(), readings, [])
            self._bunch_layout = [(reading.signal.name, reading.owners) for reading in readings]
            self._bunch_kinds = [(reading.signal, reading.owners) for reading in readings]
        values: list[float] = []
        fine = True
        for signal, _, given, _ in readings:
            values += given
            if signal is LOSS:
                fine &= math.isfinite(given[0])
                if self.see is not None:
                    self.see(step, {LOSS: list(given)})
        now = time.time()
        self._bunch.append((step, now, values))
        if now - self._bunch[0][1] > DELAY or not fine:
            self.flush()
        return fine

    def _fits_the_bunch(self, readings: Sequence[Reading]) -> bool:
        if len(readings) != len(self._bunch_kinds):
            return False
        for (signal, owners, _, at), kind in zip(readings, self._bunch_kinds, strict=True):
            if signal is not kind[0] or owners is not kind[1] or at is not None:
                return False
        return True

    def _write(self, step: _Step) -> bool:
        worked = sum(before.elapsed_time(after) for before, after in step.timers) / 1e3
        readings = [*step.readings]
        readings.append(Reading(WATCH_TIME, STEP, [step.settle(worked, step.is_hidden)]))
        if step.timers:
            readings.append(Reading(WATCH_DEVICE_TIME, STEP, [worked]))
        return self._put(step.number, step.wall, readings, step.packed.unpack())

    def _put(
        self, number: int, wall: float, readings: Sequence[Reading], arrived: Sequence[Floats]
    ) -> bool:
        self.flush()
        streams: dict[str, list[Row]] = {}
        tensors = iter(arrived)
        seen: dict[Signal, Sequence[float]] = {}
        fine = True
        for signal, owners, values, at in readings:
            read = next(tensors) if isinstance(values, Tensor) else np.asarray(values, np.float32)
            if signal.bins > 1:
                read = read.reshape(-1, signal.bins)
            if at is not None:
                full = np.full((len(owners), *read.shape[1:]), ABSENT)
                full[at] = read
                read = full
            elif signal is LOSS:
                fine &= math.isfinite(read[0])
            if signal in SEEN:
                seen[signal] = read[~is_absent(read)].tolist()
            streams.setdefault(signal.stream, []).append((signal.name, owners, read))
        for stream, rows in streams.items():
            self._writer.write(stream, number, rows, wall=wall)
        if self.see is not None and seen:
            self.see(number, seen)
        return fine

    @property
    def meta(self) -> Meta:
        """The run's meta fields so far."""
        return self._writer.meta

    def event(self, what: Occurrence) -> None:
        """Write an event under the step that is open."""
        self._writer.event(what, self.step)

    def update_meta(self, **fields: Any) -> None:
        """Set fields of `Meta`."""
        self._writer.update_meta(**fields)

    def close(self, status: str) -> None:
        """Wait for readings under way, record how the training ended, and close the files."""
        while self._under_way:
            self._write(self._under_way.popleft())
        self.flush()
        self._writer.update_meta(status=status, steps=self.step, duration=time.time() - self._began)
        self._writer.close()


def _steps_in(path: Path, rank: int) -> int:
    return Run.load(path, rank=rank).steps if (path / f"rank-{rank}").exists() else 0


def _open(path: Path, *, rank: int, environment: Environment | None, resume: bool) -> Writer:
    """A writer to `path`, or to a temporary folder if that cannot be written: training goes on."""
    open_at = partial(Writer, rank=rank, status="running", environment=environment)
    try:
        return open_at(path, resume=resume)
    except OSError as error:
        elsewhere = Path(tempfile.mkdtemp(prefix="holter-")) / path.name
        tell(f"cannot write to {path} ({error.strerror or error}); recording to {elsewhere}.")
        return open_at(elsewhere)
