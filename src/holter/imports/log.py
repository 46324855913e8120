"""Log: the readings of another tool's log while it is read, in bounded memory."""

import math
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
import numpy.typing as npt

from holter.imports.names import role_of, speaks_of_competing_losses
from holter.record.errors import HolterError
from holter.record.signals import Signal

MOST_READINGS = 5_000_000  # of names that stand for a signal; others are not kept
MOST_NAMES = 1000  # that are listed as ignored
LATEST_STEP = 1 << 40
_DEPTH = 4  # of nested objects
_LONGEST_NAME = 200  # characters

Row = dict[str, object]  # one line of a log: names and values
Steps = npt.NDArray[np.int64]

_STEP_KEYS = (
    "global_step",
    "trainer/global_step",
    "train/global_step",
    "_step",
    "step",
    "steps",
    "iteration",
    "iter",
    "num_updates",
    "batch",
)
_EPOCH_KEYS = ("epoch", "train/epoch", "_epoch", "ep")
_NO_STEP = math.nan


@dataclass(slots=True)
class Column:
    """The readings of one name: step, or number of the row, and value."""

    places: "array[int]" = field(default_factory=lambda: array("q"))
    values: "array[float]" = field(default_factory=lambda: array("d"))


@dataclass(slots=True)
class Log:
    """What was read so far. `mapping` names the signal of names that the user has mapped."""

    mapping: Mapping[str, Signal] = field(default_factory=dict)
    columns: dict[str, Column] = field(default_factory=dict)  # of names that stand for a signal
    ignored: dict[str, None] = field(default_factory=dict)
    damaged: int = 0  # records that could not be read
    dropped: int = 0  # readings without a possible step
    competing: str = ""  # a name of a training whose losses may compete
    counts_epochs: bool = False
    _rows: "array[float]" = field(default_factory=lambda: array("d"))  # step and epoch of each
    _readings: int = 0

    def add(self, name: str, step: int, value: float) -> None:
        """Add a reading of a name that has its step."""
        if 0 <= step < LATEST_STEP:
            self._append(name, step, value)
        else:
            self.dropped += 1

    def add_row(self, row: Mapping[str, object]) -> None:
        """Add a line of names and values; which of them is the step is found out at the end."""
        flat = _flat(row)
        keys = {name.lower(): name for name in flat}
        step = _count(flat, keys, _STEP_KEYS)
        epoch = _count(flat, keys, _EPOCH_KEYS)
        place = len(self._rows) // 2
        counters = {*_STEP_KEYS, *_EPOCH_KEYS}
        some = False
        for name, value in flat.items():
            if name.lower() not in counters and (number := number_of(value)) is not None:
                some = self._append(name, place, number) or some
        if some or not math.isnan(step):
            self._rows.extend((step, epoch))
            self._count_reading()

    def ignore(self, name: str) -> None:
        """Remember a name that stands for no signal."""
        self._look_for_competing(name)
        if len(self.ignored) < MOST_NAMES:
            self.ignored[name[:_LONGEST_NAME]] = None

    def _look_for_competing(self, name: str) -> None:
        if not self.competing and speaks_of_competing_losses(name):
            self.competing = name[:_LONGEST_NAME]

    def finish(self) -> None:
        """Give the readings of rows their steps."""
        if not self._rows:
            return
        table = np.frombuffer(self._rows, np.float64).reshape(-1, 2)
        steps, self.counts_epochs = _steps_of_rows(table[:, 0], table[:, 1])
        for column in self.columns.values():
            places = steps[np.frombuffer(column.places, np.int64)]
            column.places = array("q", places.tobytes())

    def _append(self, name: str, place: int, value: float) -> bool:
        """Add a reading if its name stands for a signal; return whether it does."""
        column = self.columns.get(name)
        if column is None:
            if name in self.ignored:
                return False
            self._look_for_competing(name)
            if name not in self.mapping and role_of(name[:_LONGEST_NAME]) is None:
                self.ignore(name)
                return False
            column = self.columns[name] = Column()
        column.places.append(place)
        column.values.append(value)
        self._count_reading()
        return True

    def _count_reading(self) -> None:
        self._readings += 1
        if self._readings > MOST_READINGS:
            raise HolterError(
                f"The log has more than {MOST_READINGS:,} readings, the limit; export the losses"
                " of a single run."
            )


def number_of(value: object) -> float | None:
    """Return a value as a number, or None if it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def _flat(row: Mapping[str, object], prefix: str = "", depth: int = _DEPTH) -> Row:
    """Return the values of nested objects under names joined by `/`."""
    flat: Row = {}
    for name, value in islice(row.items(), MOST_NAMES):
        if isinstance(value, Mapping):
            if depth > 0:
                flat.update(_flat(value, f"{prefix}{name}/", depth - 1))
        else:
            flat[f"{prefix}{name}"] = value
    return flat


def _count(flat: Row, keys: Mapping[str, str], names: tuple[str, ...]) -> float:
    """Return the first of some counters that a row has, or NaN."""
    for name in names:
        if name in keys:
            number = number_of(flat[keys[name]])
            if number is not None and 0 <= number < LATEST_STEP:
                return number
    return _NO_STEP


def _steps_of_rows(
    steps: npt.NDArray[np.float64], epochs: npt.NDArray[np.float64]
) -> tuple[Steps, bool]:
    """Return the step of each row, and whether epochs are counted.

    Steps that begin again with each epoch are counted on. Rows without a step belong to the last
    one before. Where rows have no steps, whole epochs count; else the rows themselves.
    """
    known = steps[~np.isnan(steps)]
    if len(known) and (len(steps) == 1 or known.min() < known.max()):  # else it is no counter
        counted = _filled(steps)
        if (drops := np.flatnonzero(np.diff(counted) < 0) + 1).size:
            epoch = _filled(epochs)
            begins = drops[epoch[drops] > epoch[drops - 1]]
            offsets = np.zeros(len(counted))
            offsets[begins] = counted[begins - 1] + 1
            counted = counted + np.cumsum(offsets)
        return counted.astype(np.int64), False
    known = epochs[~np.isnan(epochs)]
    whole = len(known) == len(epochs) and bool((known == np.floor(known)).all())
    if whole and len(np.unique(known)) * 2 >= len(known):
        return known.astype(np.int64), True
    return np.arange(len(steps), dtype=np.int64), False


def _filled(counts: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return counts with gaps filled by the last one before, and by 0 at the beginning."""
    known = ~np.isnan(counts)
    last = np.maximum.accumulate(np.where(known, np.arange(len(counts)), -1))
    return np.where(last >= 0, counts[np.maximum(last, 0)], 0.0)
