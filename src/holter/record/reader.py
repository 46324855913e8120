"""The reading side of a run: lazy, without locks, at any time, by any number of processes."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import cast

import numpy as np

from holter.record.errors import HolterError
from holter.record.events import (
    Event,
    ExperimentMade,
    ExperimentsChosen,
    Occurrence,
    What,
)
from holter.record.heartbeat import Heartbeat, read_heartbeat
from holter.record.journal import read_events, read_meta
from holter.record.meta import Meta
from holter.record.rich import card
from holter.record.rollbacks import without_discarded
from holter.record.segment import open_segments
from holter.record.signals import CATALOGUE, Per, Signal
from holter.record.table import Chunk, Series, Stamps, Table, in_order

_MOST_NAMES = 1000  # in a folder that are compared with a name that is not there


@dataclass(frozen=True)
class Run:
    """A recording: its readings by signal, its events, and what is known of it (`meta`)."""

    tables: Mapping[str, Table]
    events: tuple[Event[Occurrence], ...] = ()
    meta: Meta = field(default_factory=Meta)
    path: Path | None = None
    rank: int = 0

    def __contains__(self, signal: Signal) -> bool:
        return signal.name in self.tables

    def __getitem__(self, signal: Signal) -> Table:
        return self.tables[signal.name]

    @cached_property
    def steps(self) -> int:
        """Number of training steps: as its recorder counted, or up to the last that was read."""
        # Trials of experiments have steps of their own.
        signals = ((CATALOGUE.get(name), table) for name, table in self.tables.items())
        trained = [table for signal, table in signals if not (signal and signal.per is Per.TRIAL)]
        read = max((table.last_step for table in trained), default=-1) + 1
        return max(read, self.meta.steps or 0)

    def events_of(self, kind: type[What]) -> list[Event[What]]:
        """Return the events of one kind, in the order in which they happened."""
        return [cast("Event[What]", event) for event in self.events if isinstance(event.what, kind)]

    @property
    def is_experiment(self) -> bool:
        """Whether the run is that of an experiment, not of a whole training."""
        chosen, made = self.events_of(ExperimentsChosen), self.events_of(ExperimentMade)
        return bool(chosen or (made and not self.steps))

    @property
    def ranks(self) -> tuple[int, ...]:
        """The ranks that recorded into this run's folder."""
        return (_ranks(self.path) if self.path is not None else ()) or (self.rank,)

    @classmethod
    def of(
        cls,
        series: Mapping[Signal, Mapping[str, Series]],
        *,
        events: Sequence[Event[Occurrence]] = (),
        meta: Meta | None = None,
    ) -> "Run":
        """A run held in memory: from another tool's log, or made by hand."""
        tables = {
            signal.name: Table([_chunk(owner, each) for owner, each in owners.items()])
            for signal, owners in series.items()
        }
        return cls(tables, tuple(events), meta or Meta())

    @classmethod
    def load(cls, path: str | Path, *, rank: int | None = None) -> "Run":
        """Read a run folder as it is now; records that are still being written are left out."""
        folder = Path(path)
        ranks = _ranks(folder)
        if not ranks:
            raise HolterError(_no_run(folder))
        if rank is None:
            rank = ranks[0]
        if rank not in ranks:
            raise HolterError(f"{folder} has no rank {rank}; it has {', '.join(map(str, ranks))}.")
        own = _folder_of(folder, rank)
        meta = Meta.of({**read_meta(folder), **read_meta(own.parent), **read_meta(own)})
        events, rollbacks = without_discarded(read_events(own / "events.jsonl"))
        chunks: dict[str, list[Chunk]] = {}
        for segment in map(rollbacks.applied, open_segments(own)):
            if len(segment.records):
                readings = segment.records["values"]
                for block in segment.header.blocks:
                    values = readings[:, block.start : block.stop]
                    if block.bins > 1:
                        values = values.reshape(len(values), -1, block.bins)
                    chunk = Chunk(segment.stamps, block.owners, values)
                    chunks.setdefault(block.signal, []).append(chunk)
        tables = {signal: Table(parts) for signal, parts in chunks.items()}
        return cls(tables, events, meta, folder, rank)

    def of_rank(self, rank: int) -> "Run":
        """The recording of another process of the same training."""
        if rank == self.rank:
            return self
        if self.path is None:
            raise HolterError(f"This run has no rank {rank}; it is not in a folder.")
        return Run.load(self.path, rank=rank)

    @cached_property
    def heartbeat(self) -> Heartbeat | None:
        """The last sign of life of the process, if it was a member of a process group."""
        return None if self.path is None else read_heartbeat(_folder_of(self.path, self.rank))

    def reload(self) -> "Run":
        """The same run as it is now."""
        if self.path is None or self.meta.source is not None:
            return self
        return Run.load(self.path, rank=self.rank)

    def until(self, step: int) -> "Run":
        """The run as it was when `step` had just been recorded."""
        tables = {name: table.until(step) for name, table in self.tables.items()}
        return Run(
            {name: table for name, table in tables.items() if table.last_step >= 0},
            tuple(event for event in self.events if event.step <= step),
            replace(self.meta, status="running") if step + 1 < self.steps else self.meta,
            self.path,
            self.rank,
        )

    @property
    def finished(self) -> bool:
        """Whether the writer has closed the run."""
        return self.meta.status not in (None, "running")

    def _repr_html_(self) -> str:
        meta = self.meta
        models = [f"{model.class_name}, {model.parameters:,} parameters" for model in meta.model]
        rows = (
            ("status", meta.status or ""),
            ("steps", f"{self.steps:,}"),
            ("duration", "" if meta.duration is None else f"{meta.duration:.3g} s"),
            ("model", "; ".join(models)),
            ("command", " ".join(meta.environment.command)),
            ("started", meta.environment.started or ""),
            ("signals", f"{len(self.tables)}"),
        )
        return card(f"Run {'in memory' if self.path is None else self.path}", rows)


def follow(path: str | Path, *, every: float = 1.0) -> Iterator[Run]:
    """The run each time it has grown, until its writer closes it."""
    seen: object = None
    while True:
        now = state(Path(path))  # before loading: what comes between is seen the next time
        if now != seen:
            seen = now
            run = Run.load(path)
            yield run
            if run.finished:
                return
        time.sleep(every)


def verify(path: str | Path) -> int:
    """Check every record of every rank; the number of records that are whole."""
    folder = Path(path)
    if not (ranks := _ranks(folder)):
        raise HolterError(_no_run(folder))
    count = 0
    for rank in ranks:
        for segment in open_segments(_folder_of(folder, rank)):
            segment.verify()
            count += len(segment.records)
    return count


def _chunk(owner: str, series: Series) -> Chunk:
    steps, values = np.asarray(series.steps, np.int64), np.asarray(series.values, np.float32)
    ordered = in_order(steps, values)
    return Chunk(Stamps(ordered.steps), (owner,), ordered.values[:, None])


@dataclass(frozen=True, slots=True)
class FileState:
    """A file of a run as it was at one moment."""

    path: Path
    size: int
    written: int  # nanoseconds since 1970


def state(folder: Path) -> tuple[FileState, ...]:
    """Return what differs whenever a file of the run has been written to."""
    files = []
    for path in (folder / "meta.json", *sorted(folder.glob("rank-*/*"))):
        try:
            status = path.stat()
        except FileNotFoundError:
            continue
        files.append(FileState(path, status.st_size, status.st_mtime_ns))
    return tuple(files)


def is_run(folder: Path) -> bool:
    """Return whether the folder is that of a run."""
    return bool(_ranks(folder))


def _ranks(folder: Path) -> tuple[int, ...]:
    if workers := _workers(folder):
        return tuple(workers)
    return tuple(_numbered(folder, "rank-"))


def _folder_of(run: Path, rank: int) -> Path:
    workers = _workers(run)
    return workers[rank] / "rank-0" if rank in workers else run / f"rank-{rank}"


def _workers(run: Path) -> dict[int, Path]:
    """Return the recordings of processes that a script has started, if it trains in them alone.

    They become ranks when the script ends; until then, and if it is killed, they are read here.
    """
    if any(run.glob("rank-*/*.seg")):
        return {}
    return _numbered(run, "worker-")


def _numbered(folder: Path, prefix: str) -> dict[int, Path]:
    paths = {path.name.removeprefix(prefix): path for path in folder.glob(f"{prefix}*")}
    found = {int(name): path for name, path in paths.items() if name.isdigit() and path.is_dir()}
    return dict(sorted(found.items()))


def _no_run(folder: Path) -> str:
    if not folder.exists():
        return _missing(folder)
    runs = sorted({path.parent for path in folder.glob("*/rank-*") if path.is_dir()})
    if runs:
        count = "a run" if len(runs) == 1 else f"{len(runs)} runs"
        return f"{folder} is not a run but holds {count}; name one, for example {runs[-1]}."
    return f"{folder} is not a holter run (it has no rank-0 folder); `holter run` makes one."


def _missing(path: Path) -> str:
    """Return the sentence about a path that does not exist: a run, or the log of another tool."""
    kind = "file or folder" if path.suffix else "folder"
    names: list[str] = []
    with suppress(OSError):
        names = [entry.name for entry in islice(path.parent.iterdir(), _MOST_NAMES)]
    if near := get_close_matches(path.name, sorted(names), n=1):
        return f"There is no {kind} {path}; did you mean {path.with_name(near[0])}?"
    return f"There is no {kind} {path}" + (
        "." if path.suffix else "; `holter run train.py` records one."
    )
