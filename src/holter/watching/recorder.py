"""From the readings of a step to the records of a run: one buffer, one transfer, one write."""

import math
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
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
    WATCH_DEVICE_TIME,
    WATCH_TIME,
    WEIGHT_NORM,
    Signal,
)
from holter.record.writer import Row
from holter.watching.collectors import STEP, Reading
from holter.watching.stats import Packed

DELAY = 0.1  # seconds that the first step of a bunch waits at most
_FEW = 16  # readings of a step that is written in a bunch
_MANY = 64  # steps of a bunch whose readings are on a device
SEEN = frozenset((LOSS, GRAD_TOTAL_NORM, WEIGHT_NORM, ACTIVATION_ABSMAX, AMP_SCALE))


Timers = tuple[Any, Any]  # CUDA events before and after some work of holter


Settle = Callable[[float, bool], float]  # device time, and whether the host is ahead -> the cost


See = Callable[[int, Mapping[Signal, Sequence[float]]], bool]


class _Step(NamedTuple):
    """A step whose readings are on their way to the host."""

    number: int
    wall: float
    readings: Sequence[Reading]
    packed: Packed
    timers: Sequence[Timers]
    settle: Settle
    is_hidden: bool  # the GPU was not yet done with the step before: our host time cost nothing


class _Bunch(NamedTuple):
    """Steps of which the same few signals were read, on their way to the host."""

    layout: Sequence[tuple[Signal, tuple[str, ...]]]
    steps: list[int]
    walls: list[float]
    rows: list[list[Any]]  # floats, and tensors of a device
    packed: Packed


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
        self._under_way: deque[_Step | _Bunch] = deque()
        self._layout: list[tuple[Signal, tuple[str, ...]]] = []
        self._steps: list[int] = []  # of the bunch, which have the columns of the layout
        self._walls: list[float] = []
        self._rows: list[list[Any]] = []  # with the time of the watch in the last column
        self._is_on_device = False
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

    def write_step(self, readings: list[Reading], timers: Sequence[Timers], settle: Settle) -> bool:
        """Start the transfer of a step's readings; False if something odd has arrived.

        Readings of a GPU are written some steps later, when they have arrived without waiting. Then
        the device time between `timers` is known, too, and `settle` returns what the step cost.
        """
        step, self._step = self._step, self._step + 1
        if len(readings) < _FEW and not timers:
            if self._fits_the_bunch(readings) or self._begin_bunch(readings):
                readings.append(Reading(WATCH_TIME, STEP, [settle(0.0, False)]))
                fine = self._gather(step, readings)
                return self._write_arrived() and fine if self._under_way else fine
        else:
            self._send_bunch()
        tensors = [reading[2] for reading in readings if isinstance(reading[2], Tensor)]
        entry = _Step(
            step, time.time(), readings, Packed(tensors), timers, settle, bool(self._under_way)
        )
        self._under_way.append(entry)
        return self._write_arrived()

    def _fits_the_bunch(self, readings: Sequence[Reading]) -> bool:
        if len(readings) != len(self._layout):
            return False
        for (signal, owners, _, at), column in zip(readings, self._layout, strict=True):
            if signal is not column[0] or owners is not column[1] or at is not None:
                return False
        return True

    def _begin_bunch(self, readings: Sequence[Reading]) -> bool:
        """Begin a bunch of steps with these columns, if they can be in one."""
        self._send_bunch()
        if any(reading.at is not None or reading.signal.stream != "steps" for reading in readings):
            return False
        self._layout = [(reading.signal, reading.owners) for reading in readings]
        return True

    def _gather(self, step: int, readings: Sequence[Reading]) -> bool:
        """Add a step to the bunch, and send that if it is due."""
        row: list[Any] = []
        fine = True
        for signal, _, values, _ in readings:
            if isinstance(values, Tensor) and not values.is_cpu:
                self._is_on_device = True
                row.append(values)
                continue
            given = values.tolist() if isinstance(values, Tensor) else values
            row += given
            if signal is LOSS:
                fine &= self._saw(step, {LOSS: given})
        now = time.time()
        self._steps.append(step)
        self._walls.append(now)
        self._rows.append(row)
        full = self._is_on_device and len(self._steps) >= _MANY
        if full or not fine or now - self._walls[0] > DELAY:
            self._send_bunch()
        return fine

    def _send_bunch(self) -> None:
        """Start the transfer of the bunch."""
        if self._steps:
            packed = Packed(
                [value for row in self._rows for value in row if isinstance(value, Tensor)]
                if self._is_on_device
                else ()
            )
            layout = [*self._layout, (WATCH_TIME, STEP)]
            bunch = _Bunch(layout, self._steps, self._walls, self._rows, packed)
            self._steps, self._walls, self._rows = [], [], []
            self._is_on_device = False
            self._under_way.append(bunch)
            self._write_arrived()

    def _write_arrived(self) -> bool:
        """Write what is on the host by now; False if something odd is among it."""
        fine = True
        while self._under_way and self._under_way[0].packed.arrived:
            fine &= self._write_first()
        return fine

    def _write_first(self) -> bool:
        first = self._under_way.popleft()
        return self._write(first) if isinstance(first, _Step) else self._write_bunch(first)

    def _write_bunch(self, bunch: _Bunch) -> bool:
        arrived = iter(bunch.packed.unpack())
        rows, fine = bunch.rows, True
        if any(isinstance(value, Tensor) for value in rows[0]):
            rows = [_on_host(row, arrived) for row in rows]
            places = [at for at, owner in enumerate(_columns(bunch.layout)) if owner is LOSS]
            for step, row in zip(bunch.steps, rows, strict=True):
                fine &= self._saw(step, {LOSS: [row[at] for at in places]})
        layout = [(signal.name, owners) for signal, owners in bunch.layout]
        matrix = np.array(rows, np.float32)
        self._writer.write_many("steps", bunch.steps, bunch.walls, layout, matrix)
        return fine

    def _saw(self, step: int, seen: Mapping[Signal, Sequence[float]]) -> bool:
        """Whether the readings of a step are as they should be; show them to who listens."""
        odd = self.see is not None and bool(seen) and self.see(step, seen)
        return not odd and all(map(math.isfinite, seen.get(LOSS, ())))

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
        streams: dict[str, list[Row]] = {}
        tensors = iter(arrived)
        seen: dict[Signal, Sequence[float]] = {}
        for signal, owners, values, at in readings:
            read = next(tensors) if isinstance(values, Tensor) else np.asarray(values, np.float32)
            if signal.bins > 1:
                read = read.reshape(-1, signal.bins)
            if at is not None:
                full = np.full((len(owners), *read.shape[1:]), ABSENT)
                full[at] = read
                read = full
            if signal in SEEN:
                seen[signal] = read[~is_absent(read)].tolist()
            streams.setdefault(signal.stream, []).append((signal.name, owners, read))
        for stream, rows in streams.items():
            self._writer.write(stream, number, rows, wall=wall)
        return self._saw(number, seen)

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
        self._send_bunch()
        while self._under_way:
            self._write_first()
        self._writer.update_meta(status=status, steps=self.step, duration=time.time() - self._began)
        self._writer.close()


def _columns(layout: Sequence[tuple[Signal, tuple[str, ...]]]) -> list[Signal]:
    """The signal of each column."""
    return [signal for signal, owners in layout for _ in owners]


def _on_host(row: Sequence[Any], arrived: Iterator[Floats]) -> list[float]:
    """A row with the values of its tensors."""
    values: list[float] = []
    for value in row:
        values += next(arrived).tolist() if isinstance(value, Tensor) else (value,)
    return values


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
