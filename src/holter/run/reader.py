"""The reading side of a run: lazy, without locks, at any time, by any number of processes."""

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from holter.errors import HolterError
from holter.run.format import (
    ABSENT,
    Floats,
    Header,
    checksum,
    is_absent,
    read_header,
    record_dtype,
    require_format,
)
from holter.signals import Signal

Steps = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Series:
    """The readings of one signal for one owner, in step order. NaN and Inf are data."""

    steps: Steps
    values: Floats

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def first(self) -> int:
        """The step of the first reading."""
        return int(self.steps[0])

    @property
    def last(self) -> int:
        """The step of the last reading."""
        return int(self.steps[-1])


@dataclass(frozen=True, slots=True)
class Rows:
    """A window of one signal over all its owners; `present` tells a NaN from no reading."""

    steps: Steps
    owners: tuple[str, ...]
    values: Floats
    present: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened once: a validation, a mode change, an exception."""

    step: int
    wall: float
    kind: str
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Chunk:
    """Readings of one signal that lie together: a row for each step, a column for each owner."""

    steps: Steps
    owners: tuple[str, ...]
    values: Floats


class Table(Mapping[str, Series]):
    """All readings of one signal, by owner. Nothing is read before it is asked for."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self._chunks = chunks
        self._places: dict[str, list[tuple[Chunk, int]]] = {}
        for chunk in chunks:
            for column, owner in enumerate(chunk.owners):
                self._places.setdefault(owner, []).append((chunk, column))

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, owner: str) -> Series:
        steps, values = [], []
        for chunk, column in self._places[owner]:
            read = np.ascontiguousarray(chunk.values[:, column])
            taken = ~is_absent(read)
            steps.append(chunk.steps[taken])
            values.append(read[taken])
        return _in_order(np.concatenate(steps), np.concatenate(values))

    def rows(self, first: int | None = None, last: int | None = None) -> Rows:
        """The readings of all owners from step `first` to step `last`, both included."""
        parts = []
        for chunk in self._chunks:
            low = 0 if first is None else int(np.searchsorted(chunk.steps, first, "left"))
            high = None if last is None else int(np.searchsorted(chunk.steps, last, "right"))
            if len(chunk.steps[low:high]):
                values = np.ascontiguousarray(chunk.values[low:high])
                parts.append((chunk.steps[low:high], chunk.owners, values))
        owners = tuple(self._places)
        steps = np.unique(np.concatenate([part[0] for part in parts])) if parts else _NO_STEPS
        column = {owner: index for index, owner in enumerate(owners)}
        out = np.full((len(steps), len(owners)), ABSENT)
        for part_steps, part_owners, values in parts:
            where = np.searchsorted(steps, part_steps)
            columns = np.array([column[owner] for owner in part_owners])
            old = out[np.ix_(where, columns)]
            out[np.ix_(where, columns)] = np.where(is_absent(values), old, values)
        return Rows(steps, owners, out, ~is_absent(out))


_NO_STEPS = np.empty(0, np.int64)


@dataclass(frozen=True)
class Run:
    """A recording: its readings by signal, its events, and what is known of it (`meta`)."""

    tables: Mapping[str, Table]
    events: tuple[Event, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)
    path: Path | None = None
    rank: int = 0

    def __contains__(self, signal: Signal) -> bool:
        return signal.name in self.tables

    def __getitem__(self, signal: Signal) -> Table:
        return self.tables[signal.name]

    @cached_property
    def steps(self) -> int:
        """Number of training steps that were recorded, the last one included."""
        last = [
            int(chunk.steps[-1])
            for table in self.tables.values()
            for chunk in table._chunks  # noqa: SLF001  (a run and its tables are one thing)
            if len(chunk.steps)
        ]
        return max(last, default=-1) + 1

    @property
    def ranks(self) -> tuple[int, ...]:
        """The ranks that recorded into this run's folder."""
        return _ranks(self.path) if self.path is not None else (self.rank,)

    @classmethod
    def of(
        cls,
        series: Mapping[Signal, Mapping[str, Series]],
        *,
        events: Sequence[Event] = (),
        meta: Mapping[str, Any] | None = None,
    ) -> "Run":
        """A run held in memory: from another tool's log, or made by hand."""
        tables = {
            signal.name: Table(
                [
                    Chunk(
                        np.asarray(each.steps, np.int64),
                        (owner,),
                        np.asarray(each.values, np.float32)[:, None],
                    )
                    for owner, each in owners.items()
                ]
            )
            for signal, owners in series.items()
        }
        return cls(tables, tuple(events), meta or {})

    @classmethod
    def load(cls, path: str | Path, *, rank: int | None = None) -> "Run":
        """Read a run folder as it is now; records that are still being written are left out."""
        folder = Path(path)
        meta, ranks = _read_meta(folder), _ranks(folder)
        if not ranks:
            raise HolterError(_no_run(folder))
        if rank is None:
            rank = ranks[0]
        if rank not in ranks:
            raise HolterError(f"{folder} has no rank {rank}; it has {', '.join(map(str, ranks))}.")
        chunks: dict[str, list[Chunk]] = {}
        for file in sorted((folder / f"rank-{rank}").glob("*.seg")):
            segment = Segment.open(file)
            if segment is None or not len(segment.records):
                continue
            for block in segment.header.blocks:
                chunks.setdefault(block.signal, []).append(
                    Chunk(
                        segment.steps,
                        block.owners,
                        segment.records["values"][:, block.start : block.stop],
                    )
                )
        tables = {signal: Table(parts) for signal, parts in chunks.items()}
        events = _read_events(folder / f"rank-{rank}" / "events.jsonl")
        return cls(tables, events, meta, folder, rank)

    def reload(self) -> "Run":
        """The same run as it is now."""
        if self.path is None:
            return self
        return Run.load(self.path, rank=self.rank)

    @property
    def finished(self) -> bool:
        """Whether the writer has closed the run."""
        return self.meta.get("status") not in (None, "running")


def follow(path: str | Path, *, every: float = 1.0) -> Iterator[Run]:
    """The run each time it has grown, until its writer closes it."""
    seen = -1
    while True:
        run = Run.load(path)
        size = sum(file.stat().st_size for file in Path(path).glob("rank-*/*"))
        if size != seen or run.finished:
            seen = size
            yield run
        if run.finished:
            return
        time.sleep(every)


@dataclass(frozen=True)
class Segment:
    """One segment file, mapped into memory."""

    path: Path
    header: Header
    records: npt.NDArray[np.void]

    @classmethod
    def open(cls, path: Path) -> "Segment | None":
        """Map a segment; None where its writer died before the header was whole."""
        with path.open("rb") as file:
            header = read_header(file, path)
            if header is None:
                return None
            dtype = record_dtype(header.width)
            count = max(0, os.fstat(file.fileno()).st_size - header.size) // dtype.itemsize
            if count == 0:
                return cls(path, header, np.empty(0, dtype))
            records: npt.NDArray[np.void] = np.memmap(file, dtype, "r", header.size, (count,))
        while count and not _is_whole(records[count - 1]):  # torn, or being written right now
            count -= 1
        return cls(path, header, records[:count])

    @cached_property
    def steps(self) -> Steps:
        """The step of every record."""
        return np.ascontiguousarray(self.records["step"])

    def verify(self) -> None:
        """Check every record; raise a sentence that names the first damaged one."""
        for index, record in enumerate(self.records):
            if not _is_whole(record):
                raise HolterError(
                    f"Record {index} of {self.path} (step {int(record['step'])}) is damaged:"
                    " its checksum does not hold; copy the run again from where it was made."
                )


def verify(path: str | Path) -> int:
    """Check every record of every rank; the number of records that are whole."""
    count = 0
    for rank in _ranks(Path(path)):
        for file in sorted((Path(path) / f"rank-{rank}").glob("*.seg")):
            segment = Segment.open(file)
            if segment is not None:
                segment.verify()
                count += len(segment.records)
    return count


def _is_whole(record: Any) -> bool:
    return checksum(record.tobytes()) == int(record["crc"])


def _in_order(steps: Steps, values: Floats) -> Series:
    if len(steps) > 1 and (np.diff(steps) < 0).any():
        order = np.argsort(steps, kind="stable")
        steps, values = steps[order], values[order]
    return Series(steps, values)


def _ranks(folder: Path) -> tuple[int, ...]:
    names = [path.name.removeprefix("rank-") for path in folder.glob("rank-*") if path.is_dir()]
    return tuple(sorted(int(name) for name in names if name.isdigit()))


def _no_run(folder: Path) -> str:
    if not folder.exists():
        return f"There is no folder {folder}; `holter run train.py` records one."
    runs = sorted(path.parent.name for path in folder.glob("*/meta.json"))
    if runs:
        return f"{folder} holds {len(runs)} runs; name one, for example {folder / runs[-1]}."
    return f"{folder} is not a holter run (it has no rank-0 folder); `holter run` makes one."


def _read_meta(folder: Path) -> dict[str, Any]:
    path = folder / "meta.json"
    if not path.exists():
        return {}
    try:
        meta = json.loads(path.read_text())
    except (ValueError, OSError) as error:
        raise HolterError(
            f"{path} cannot be read ({error}); remove it to read the rest."
        ) from error
    if not isinstance(meta, dict):
        raise HolterError(f"{path} is not the meta file of a holter run.")
    require_format(meta.get("format", 0), path)
    return meta


def _read_events(path: Path) -> tuple[Event, ...]:
    if not path.exists():
        return ()
    events = []
    for line in path.read_bytes().splitlines():
        try:
            fields = json.loads(line)
            step, wall, kind = fields.pop("step"), fields.pop("wall"), fields.pop("kind")
        except (ValueError, KeyError, AttributeError):
            continue  # torn by a crash
        events.append(Event(step, wall, kind, fields))
    return tuple(events)
