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
from holter.record.events import Occurrence, Resumed, RolledBack
from holter.record.format import Floats, is_absent
from holter.record.meta import Environment
from holter.record.notices import tell
from holter.record.signals import (
    ACTIVATION_ABSMAX,
    AMP_SCALE,
    GRAD_TOTAL_NORM,
    LOSS,
    LOSS_COEFFICIENT_BALANCE,
    LOSS_COEFFICIENT_SIZE,
    OPTIMIZER_AGE,
    WATCH_DEVICE_TIME,
    WATCH_TIME,
    WEIGHT_NORM,
    Signal,
)
from holter.record.writer import Row as Record
from holter.watching.arrivals import of_row, of_wide, on_host, places_of, to_host
from holter.watching.collectors import STEP, Reading, Tally
from holter.watching.collectors.lane import ABSENT, Column, Lane, Row, Wide
from holter.watching.stats import Packed

DELAY = 0.1  # seconds that the first step of a bunch waits at most
_DELAY_ON_DEVICE = 0.5  # the same where its readings are on a device: to fetch them costs more
_MANY = 64  # steps of a bunch whose readings are on a device
LOOK = 16  # steps whose losses are looked at together: no more than lie between two snapshots
SEEN = frozenset(
    (
        *(LOSS, LOSS_COEFFICIENT_BALANCE, LOSS_COEFFICIENT_SIZE, GRAD_TOTAL_NORM, WEIGHT_NORM),
        *(ACTIVATION_ABSMAX, AMP_SCALE),
    )
)


Timers = tuple[Any, Any]  # CUDA events before and after some work of holter


Settle = Callable[[float], float]  # device time -> the cost


See = Callable[[int, Mapping[Signal, Sequence[float]]], bool]
SeeLoss = Callable[[int, float], bool]


class _Step(NamedTuple):
    """A step whose readings are on their way to the host."""

    number: int
    wall: float
    row: list[Any]
    readings: Sequence[Reading]
    tallies: Sequence[Tally]
    packed: Packed
    timers: Sequence[Timers]
    wide: Sequence[tuple[Wide, Tensor]]
    settle: Settle


class _Bunch(NamedTuple):
    """Light steps, on their way to the host."""

    steps: list[int]
    walls: list[float]
    rows: list[list[Any]]  # floats, and tensors of a device
    wide: list[Sequence[tuple[Wide, Tensor]]]
    looked: int  # rows whose losses were looked at before
    packed: Packed


class Recorder:
    """Writes steps to a run. It starts counting where an earlier part of the run left off.

    Light steps are written in bunches, each a fraction of a second after its first: writing them
    one by one would cost more than reading them.
    """

    def __init__(
        self,
        path: Path,
        *,
        rank: int,
        environment: Environment | None = None,
        resume: bool = False,
    ) -> None:
        self.step = self._first = _steps_in(path, rank) if resume else 0  # the open one
        self._rank = rank
        self.see: See | None = None  # called with readings as they arrive
        self.see_loss: SeeLoss | None = None  # and with the losses of light steps
        self._began = time.time()
        self._under_way: deque[_Step | _Bunch] = deque()
        self._lane: Lane | None = None
        self._losses: list[int] = []  # their places in a row
        self._columns = 0  # of the layout that those were found in
        self._steps: list[int] = []  # of the bunch
        self._walls: list[float] = []
        self._rows: list[list[Any]] = []
        self._wide: list[Sequence[tuple[Wide, Tensor]]] = []
        self.last_row: list[Any] | None = None  # of a light step on the host
        self._looked = 0  # rows of the bunch whose losses were looked at
        self._is_on_device = False
        self._writer = _open(path, rank=rank, environment=environment, resume=resume)
        self.path = self._writer.path
        self.is_resumed = bool(self._first)  # and has not begun to train yet
        if self._first:
            self.event(Resumed())

    def take_up(self, age: float | None, owner: str) -> str | None:
        """Continue at the step that a resumed optimizer has reached; a sentence if steps are lost.

        `age` is the number of steps that its state has seen, None if it does not count them.
        """
        self.is_resumed = False
        step = _step_of_age(Run.load(self.path, rank=self._rank), age, owner)
        if step is None or step >= self._first:
            return None
        recorded, self.step, self._first = self._first, step, step
        self.event(RolledBack(recorded, self._began))
        self._writer.update_meta(steps=step)
        return (
            f"resumed from a checkpoint at step {step:,}: the {recorded - step:,} steps recorded"
            " after it are discarded."
        )

    def follow(self, lane: Lane) -> None:
        """Write rows with the layout of this lane."""
        self._lane = lane

    @property
    def steps(self) -> int:
        """Number of steps that have ended since this recorder was opened, read or not."""
        return self.step - self._first

    def write_row(self, row: Row) -> bool:
        """Take the row of a light step; return False if something odd has arrived."""
        step, self.step = self.step, self.step + 1
        if self._columns != len(row.layout):
            self._columns, self._losses = len(row.layout), places_of(row.layout, LOSS)
        on_device = row.is_on_device
        values, wide = row.take()
        self.last_row = None if on_device else values
        now = time.time()
        self._steps.append(step)
        self._walls.append(now)
        self._rows.append(values)
        self._wide.append(wide)
        is_finite = True
        if on_device:
            self._is_on_device = True
        else:
            for place in self._losses:
                is_finite &= math.isfinite(values[place]) or values[place] is ABSENT
        full = self._is_on_device and len(self._steps) >= _MANY
        delay = _DELAY_ON_DEVICE if self._is_on_device else DELAY
        if full or not is_finite or now - self._walls[0] > delay:
            return self._send_bunch() and is_finite
        fine = len(self._rows) - self._looked < LOOK or self._is_on_device or self._look()
        return self._write_arrived() and fine if self._under_way else fine

    def write_rows(self, first: int, walls: Sequence[float], rows: Floats) -> bool:
        """Write rows of light steps from one on, whose losses are looked at by others.

        Return False if something odd has arrived.
        """
        fine = self._send_bunch()
        assert self._lane is not None
        layout = [(signal.name, owners) for signal, owners in self._lane.row.layout]
        steps = range(first, first + len(walls))
        self._writer.write_many("steps", steps, walls, layout, rows)
        return fine

    def look(self) -> bool:
        """Look at the losses of light steps that are still to be; return False for an odd one."""
        return self._is_on_device or self._look()

    def write_step(
        self,
        row: Row,
        readings: list[Reading],
        tallies: list[Tally],
        timers: Sequence[Timers],
        settle: Settle,
    ) -> bool:
        """Start the transfer of a step's readings; return False if something odd has arrived.

        Readings of a GPU are written some steps later, when they have arrived without waiting. Then
        the device time between `timers` is known, too, and `settle` returns what the step cost.
        """
        step, self.step = self.step, self.step + 1
        self.last_row = None
        fine = self._send_bunch()
        values, wide = row.take()
        tensors = [value for value in values if isinstance(value, Tensor)]
        tensors += [value for _, value in wide]
        tensors += [reading[2] for reading in readings if isinstance(reading[2], Tensor)]
        tensors += [tally.values for tally in tallies]
        packed = Packed(tensors)
        self._under_way.append(
            _Step(
                number=step,
                wall=time.time(),
                row=values,
                readings=readings,
                tallies=tallies,
                packed=packed,
                timers=timers,
                wide=wide,
                settle=settle,
            )
        )
        return self._write_arrived() and fine

    def _send_bunch(self) -> bool:
        """Start the transfer of the bunch; return False if something odd has arrived."""
        fine = True
        if self._steps:
            fine = self._is_on_device or self._look()
            packed = Packed(list(self._tensors()) if self._is_on_device else ())
            bunch = _Bunch(self._steps, self._walls, self._rows, self._wide, self._looked, packed)
            self._steps, self._walls, self._rows, self._wide = [], [], [], []
            self._is_on_device, self._looked = False, 0
            self._under_way.append(bunch)
        return self._write_arrived() and fine

    def _look(self) -> bool:
        """Look at losses of the bunch that are on the host; return False for an odd one."""
        first, self._looked = self._looked, len(self._rows)
        fine = True
        for step, row in zip(self._steps[first:], self._rows[first:], strict=True):
            fine &= self._saw_losses(step, row)
        return fine

    def _tensors(self) -> Iterator[Tensor]:
        """The tensors of the bunch, step by step."""
        for row, wide in zip(self._rows, self._wide, strict=True):
            yield from (value for value in row if isinstance(value, Tensor))
            yield from (values for _, values in wide)

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
        fine, lane = True, self._lane
        assert lane is not None
        width = len(lane.row)
        values = bunch.packed.unpack()
        arrived = iter(values)
        records: dict[Wide, tuple[list[int], list[float], list[Floats]]] = {}
        for step, wall, row, wide in zip(
            bunch.steps, bunch.walls, bunch.rows, bunch.wide, strict=True
        ):
            if values:  # of a device
                to_host(row, arrived)
            for kind, _ in wide:
                steps, walls, read = records.setdefault(kind, ([], [], []))
                steps.append(step)
                walls.append(wall)
                read.append(kind.values(row, next(arrived)))
            if step >= bunch.steps[0] + bunch.looked:
                fine &= self._saw_losses(step, row)
            lane.tell(lane.at_arrival, row)
            row.extend([ABSENT] * (width - len(row)))  # the layout may have grown since
        matrix = np.array(bunch.rows, np.float32)
        layout = [(signal.name, owners) for signal, owners in lane.row.layout]
        self._writer.write_many("steps", bunch.steps, bunch.walls, layout, matrix)
        for kind, (steps, walls, read) in records.items():
            self._writer.write_many(kind.stream, steps, walls, kind.layout, np.stack(read))
        return fine

    def _saw_losses(self, step: int, row: list[float]) -> bool:
        """Whether the losses of a light step are as they should be."""
        fine = True
        for place in self._losses:
            if place < len(row) and (loss := row[place]) is not ABSENT:
                odd = self.see_loss is not None and self.see_loss(step, loss)
                fine &= not odd and math.isfinite(loss)
        return fine

    def _write(self, step: _Step) -> bool:
        worked = sum(before.elapsed_time(after) for before, after in step.timers) / 1e3
        arrived = iter(step.packed.unpack())
        to_host(step.row, arrived)
        readings = [*step.readings]
        readings.append(Reading(WATCH_TIME, STEP, [step.settle(worked)]))
        if step.timers:
            readings.append(Reading(WATCH_DEVICE_TIME, STEP, [worked]))
        assert self._lane is not None
        self._lane.tell(self._lane.at_arrival, step.row)
        fine = self._put(step, readings, arrived, self._lane.row.layout)
        for tally, values in zip(step.tallies, arrived, strict=True):
            if (event := tally.told(values)) is not None:
                self._writer.event(event, step.number)
        return fine

    def _put(
        self,
        step: _Step,
        readings: Sequence[Reading],
        arrived: Iterator[Floats],
        layout: Sequence[Column],
    ) -> bool:
        streams: dict[str, list[Record]] = {}
        seen: dict[Signal, Sequence[float]] = {}
        for kind, _ in step.wide:
            streams.setdefault(kind.stream, []).extend(of_wide(kind, step.row, next(arrived)))
        for signal, owners, read in (*of_row(step.row, layout), *on_host(readings, arrived)):
            if signal in SEEN:
                seen[signal] = read[~is_absent(read)].tolist()
            streams.setdefault(signal.stream, []).append((signal.name, owners, read))
        for stream, rows in streams.items():
            self._writer.write(stream, step.number, rows, wall=step.wall)
        odd = self.see is not None and bool(seen) and self.see(step.number, seen)
        return not odd and all(map(math.isfinite, seen.get(LOSS, ())))

    @property
    def folder(self) -> Path:
        """The folder of this rank."""
        return self._writer.folder

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


def _step_of_age(run: Run, age: float | None, owner: str) -> int | None:
    """Return the step that follows the one after which an optimizer had this age, or None."""
    ages = run[OPTIMIZER_AGE].get(owner) if OPTIMIZER_AGE in run else None
    if not age or ages is None or not len(ages):
        return None
    earlier = np.flatnonzero(ages.values <= age)
    if not len(earlier):
        return None
    last = int(earlier[-1])
    return int(ages.steps[last]) + 1 + round(age - float(ages.values[last]))


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
