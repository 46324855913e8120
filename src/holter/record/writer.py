"""The writing side of a run: one `os.write` a record, no locks, and no exception into training."""

import contextlib
import errno
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from holter.record.decimation import Decimator
from holter.record.events import Event, Occurrence
from holter.record.folders import require_free
from holter.record.format import (
    ABSENT,
    Block,
    Floats,
    checksum,
    encode_header,
    record_dtype,
)
from holter.record.journal import append_event, read_meta, write_meta
from holter.record.meta import Environment, Meta
from holter.record.notices import tell
from holter.record.portable import BINARY
from holter.record.segment import place_of, segment_path

SEGMENT_BYTES = 32 << 20
STREAM_BYTES = 256 << 20  # of a stream: about a million steps of step-level signals
_SHARE_KEPT = {  # of `stream_bytes`
    "steps": 1.0,
    "parameters": 1.0,
    "modules": 1.0,
    "histograms": 0.25,
}
RETRY_SECONDS = 1.0  # between two tries of a disk that failed

_KNOWN_OWNERS = 1024

Layout = Sequence[
    tuple[str, tuple[str, ...]] | tuple[str, tuple[str, ...], int]
]  # signal, owners and, of a histogram, bins of neighbouring columns
_NONE = np.empty(0, np.float32)
Row = tuple[str, tuple[str, ...], Floats]  # signal, owners, a value or a histogram for each owner


class Writer:
    """Appends to one rank's files of a run. A failing disk is told of once and counted."""

    def __init__(
        self,
        path: str | Path,
        *,
        rank: int = 0,
        status: str | None = None,
        environment: Environment | None = None,
        resume: bool = False,
        notify: Callable[[str], None] = tell,
        segment_bytes: int = SEGMENT_BYTES,
        stream_bytes: int = STREAM_BYTES,
    ) -> None:
        self.path = Path(path)
        self.folder = self.path / f"rank-{rank}"
        self._meta_folder = self.path if rank == 0 else self.folder
        if not resume:
            require_free(self.path, rank)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._before = read_meta(self._meta_folder) if resume else {}  # with foreign fields
        self._meta = replace(Meta.of(self._before), status=status)
        if environment is not None:
            self._meta = replace(self._meta, environment=environment)
        self.lost = self._noted = self._meta.lost_records
        self._noted_at = 0.0
        self._notify, self._told = notify, False
        self._segment_bytes, self._stream_bytes = segment_bytes, stream_bytes
        self._streams: dict[str, _Stream] = {}
        self._write_meta()

    @property
    def meta(self) -> Meta:
        """What `meta.json` says by now."""
        return self._meta

    def write(
        self, stream: str, step: int, rows: Sequence[Row], *, wall: float | None = None
    ) -> None:
        """Append one record to `stream`. Owners are compared by identity: pass the same tuple."""
        layout = [(name, owners, _bins(read)) for name, owners, read in rows]
        values = np.concatenate([_NONE, *(_fitting(*row) for row in rows)])[None]
        self.write_many(stream, [step], [time.time() if wall is None else wall], layout, values)

    def write_many(
        self,
        stream: str,
        steps: Sequence[int],
        walls: Sequence[float],
        layout: Layout,
        values: Floats,
    ) -> None:
        """Append records with the same columns, a row of `values` each, in one write."""
        try:
            self._stream(stream).append(steps, walls, layout, values)
        except OSError as error:
            self._lose(error, len(steps))
        else:
            if self.lost != self._noted and abs(walls[-1] - self._noted_at) > RETRY_SECONDS:
                self._noted_at = walls[-1]
                self._note_loss()

    def event(self, what: Occurrence, step: int) -> None:
        """Append one event."""
        try:
            append_event(self.folder / "events.jsonl", Event(step, time.time(), what))
        except OSError as error:
            self._lose(error)

    def update_meta(self, **fields: Any) -> None:
        """Set fields of `Meta`, and replace `meta.json` whole."""
        self._meta = replace(self._meta, **fields)
        self._write_meta()

    def close(self) -> None:
        """Close the files; safe to call twice."""
        for stream in self._streams.values():
            try:
                stream.close()
            except OSError as error:  # network disks tell here what they could not keep
                self._tell(error)
        self._streams.clear()
        if self.lost != self._noted:
            self._note_loss()

    def _stream(self, name: str) -> "_Stream":
        found = self._streams.get(name)
        if found is None:
            share = _SHARE_KEPT.get(name)
            keep = None if share is None else int(share * self._stream_bytes)
            found = self._streams[name] = _Stream(self.folder, name, self._segment_bytes, keep)
        return found

    def _note_loss(self) -> None:
        self._meta = replace(self._meta, lost_records=self.lost)
        if self._write_meta():
            self._noted = self.lost

    def _write_meta(self) -> bool:
        try:
            write_meta(self._meta_folder, {**self._before, **self._meta.to_json()})
        except OSError as error:
            self._tell(error)
            return False
        return True

    def _lose(self, error: OSError, records: int = 1) -> None:
        self.lost += records
        self._tell(error)

    def _tell(self, error: OSError) -> None:
        if not self._told:
            self._told = True
            self._notify(
                f"cannot write to {self.path} ({error.strerror or error});"
                " training goes on, what cannot be written is not recorded."
            )


class _Stream:
    """One family of segments. A reading with a new signal or new owners starts a new segment."""

    def __init__(self, folder: Path, name: str, segment_bytes: int, keep: int | None) -> None:
        self._folder, self._name, self._segment_bytes = folder, name, segment_bytes
        places = [place_of(path) for path in folder.glob("*.seg")]
        self._index = max((index for stream, index in places if stream == name), default=-1)
        self._decimator = Decimator(folder, name, keep) if keep is not None else None
        self._blocks: dict[tuple[str, tuple[str, ...]], Block] = {}
        # The same by identity of the owners, who are held so that the identity stays theirs.
        self._known: dict[tuple[str, int], tuple[Block, tuple[str, ...]]] = {}
        self._layout: Layout = []
        self._places: list[slice] = []
        self._fd = -1
        self._size = self._width = self._columns = 0
        self._looked = 0.0
        self._failure: OSError | None = None
        self._retry_at = 0.0

    def append(
        self, steps: Sequence[int], walls: Sequence[float], layout: Layout, values: Floats
    ) -> None:
        """Append records in one write, or raise and leave the file as it was."""
        if layout != self._layout:  # quick: the same objects as last time are not compared further
            self._places = _places([self._block(*each) for each in layout])
            self._layout = list(layout)
        if self._failure is not None and time.monotonic() < self._retry_at:
            raise self._failure.with_traceback(None)
        try:
            if self._fd >= 0 and not 0 <= walls[-1] - self._looked < 1:
                self._looked = walls[-1]
                self._look()
            if self._fd < 0 or self._size >= self._segment_bytes or self._width < self._columns:
                self._begin_segment()
            self._write(self._records(steps, walls, values))
        except OSError as error:
            self._abandon()
            self._failure = error
            self._retry_at = time.monotonic() + RETRY_SECONDS
            raise
        self._failure = None

    def close(self) -> None:
        """Close the segment and wait for the fold in progress."""
        if self._decimator is not None:
            self._decimator.finish()
        self._close_segment()

    def _block(self, signal: str, owners: tuple[str, ...], bins: int = 1) -> Block:
        known = self._known.get((signal, id(owners)))
        if known is not None:
            return known[0]
        block = self._blocks.get((signal, owners))
        if block is None:
            block = self._blocks[signal, owners] = Block(signal, owners, self._columns, bins)
            self._columns = block.stop
        if len(self._known) >= _KNOWN_OWNERS:  # a caller that makes its tuples anew each step
            self._known.clear()
        self._known[signal, id(owners)] = block, owners
        return block

    def _records(self, steps: Sequence[int], walls: Sequence[float], values: Floats) -> bytes:
        records = np.empty(len(steps), self._dtype)
        records["step"], records["wall"] = steps, walls
        columns = records["values"]
        if len(self._places) > 1 or values.shape[1] < self._width:
            columns[:] = ABSENT
        start = 0
        for place in self._places:
            stop = start + place.stop - place.start
            columns[:, place] = values[:, start:stop]
            start = stop
        raw, size = records.view(np.uint8).data, self._dtype.itemsize
        records["crc"] = [checksum(raw[at : at + size]) for at in range(0, len(steps) * size, size)]
        return records.tobytes()

    def _look(self) -> None:
        """Writing into a file that was deleted succeeds, and is for nothing."""
        if os.fstat(self._fd).st_nlink == 0:
            raise FileNotFoundError(errno.ENOENT, "its files were deleted")

    def _begin_segment(self) -> None:
        self._close_segment()
        if self._decimator is not None and self._index >= 0:
            self._decimator.closed(self._index)
        self._dtype = record_dtype(self._columns)
        self._width, self._size = self._columns, 0
        self._index += 1  # for good: a number that was tried in vain is not tried again
        path = segment_path(self._folder, self._name, self._index)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | BINARY
        self._fd = os.open(path, flags, 0o644)
        try:
            self._write(encode_header(self._name, tuple(self._blocks.values())))
        except OSError:  # without its header a segment is nothing
            path.unlink()
            raise

    def _write(self, data: bytes | bytearray) -> None:
        """Append all of `data`."""
        written = os.write(self._fd, data)
        while written < len(data):
            written += os.write(self._fd, memoryview(data)[written:])
        self._size += len(data)

    def _abandon(self) -> None:
        """Leave a segment that failed; the next record begins another.

        So a part of a record that cannot be taken back is always the end of its file, where readers
        drop it, and a file handle gone stale is not tried for ever.
        """
        if self._fd >= 0:
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, self._size)
            with contextlib.suppress(OSError):
                self._close_segment()

    def _close_segment(self) -> None:
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)


def _fitting(signal: str, owners: tuple[str, ...], values: Floats) -> Floats:
    if len(values) != len(owners):
        raise ValueError(f"{len(values)} values of {signal} for {len(owners)} owners")
    return values.reshape(-1)


def _bins(values: Floats) -> int:
    return values.shape[1] if values.ndim > 1 else 1


def _places(blocks: list[Block]) -> list[slice]:
    """Where the readings of blocks go: one place for all where they lie side by side."""
    if blocks and all(left.stop == right.start for left, right in pairwise(blocks)):
        return [slice(blocks[0].start, blocks[-1].stop)]
    return [slice(block.start, block.stop) for block in blocks]
