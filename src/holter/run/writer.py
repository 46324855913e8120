"""The writing side of a run: one `os.write` a record, no locks, and no exception into training."""

import json
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from holter.errors import HolterError
from holter.notices import tell
from holter.run.decimation import Decimator
from holter.run.format import (
    ABSENT,
    Block,
    Floats,
    checksum,
    encode_header,
    record_dtype,
)

SEGMENT_BYTES = 32 << 20
STREAM_BYTES = 256 << 20  # of decimated streams; step-level signals are kept whole

Row = tuple[str, tuple[str, ...], Floats]  # signal, owners, one value for each owner


class Writer:
    """Appends to one rank's files of a run. A failing disk is told of once and counted."""

    def __init__(
        self,
        path: str | Path,
        *,
        rank: int = 0,
        meta: Mapping[str, Any] | None = None,
        resume: bool = False,
        notify: Callable[[str], None] = tell,
        segment_bytes: int = SEGMENT_BYTES,
        stream_bytes: int = STREAM_BYTES,
    ) -> None:
        self.path = Path(path)
        self.lost = 0
        self._folder = self.path / f"rank-{rank}"
        if not resume and any(self._folder.glob("*.seg")):
            raise HolterError(
                f"{self.path} already holds a run; give another folder,"
                " or ask to resume to continue the one that is there."
            )
        self._folder.mkdir(parents=True, exist_ok=True)
        self._meta_path = (self.path if rank == 0 else self._folder) / "meta.json"
        self._meta: dict[str, Any] = dict(meta or {})
        self._notify, self._told = notify, False
        self._segment_bytes, self._stream_bytes = segment_bytes, stream_bytes
        self._streams: dict[str, _Stream] = {}
        self._events = os.open(
            self._folder / "events.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644
        )
        self._write_meta()

    def write(self, stream: str, step: int, rows: Sequence[Row]) -> None:
        """Append one record to `stream`. Owners are compared by identity: pass the same tuple."""
        try:
            self._stream(stream).append(step, time.time(), rows)
        except OSError as error:
            self._lose(error)

    def event(self, kind: str, step: int, **data: object) -> None:
        """Append one event."""
        line = {"step": step, "wall": time.time(), "kind": kind, **data}
        try:
            os.write(self._events, json.dumps(json_safe(line)).encode() + b"\n")
        except OSError as error:
            self._lose(error)

    def update_meta(self, **fields: object) -> None:
        """Set fields of `meta.json`, replacing the file whole."""
        self._meta.update(fields)
        self._write_meta()

    def close(self) -> None:
        """Close the files; safe to call twice."""
        for stream in self._streams.values():
            stream.close()
        self._streams.clear()
        if self.lost:
            self.update_meta(lost_records=self.lost)
        if self._events >= 0:
            os.close(self._events)
            self._events = -1

    def _stream(self, name: str) -> "_Stream":
        found = self._streams.get(name)
        if found is None:
            keep = self._stream_bytes if name == "parameters" else None
            found = _Stream(self._folder, name, self._segment_bytes, keep)
            self._streams[name] = found
        return found

    def _write_meta(self) -> None:
        fresh = self._meta_path.with_suffix(".tmp")
        try:
            fresh.write_text(json.dumps(json_safe(self._meta), indent=1) + "\n")
            fresh.replace(self._meta_path)
        except OSError as error:
            self._lose(error)

    def _lose(self, error: OSError) -> None:
        self.lost += 1
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
        taken = [int(path.stem.rsplit("-", 1)[1]) for path in folder.glob(f"{name}-*.seg")]
        self._index = max(taken, default=-1)
        self._decimator = Decimator(folder, name, keep) if keep is not None else None
        self._blocks: dict[tuple[str, tuple[str, ...]], Block] = {}
        # The same by identity of the owners, who are held so that the identity stays theirs.
        self._known: dict[tuple[str, int], tuple[Block, tuple[str, ...]]] = {}
        self._fd = -1
        self._size = self._width = self._columns = 0

    def append(self, step: int, wall: float, rows: Sequence[Row]) -> None:
        blocks = [self._block(signal, owners) for signal, owners, _ in rows]
        if self._fd < 0 or self._size >= self._segment_bytes or self._width < self._columns:
            self._begin_segment()
        self._values[:] = ABSENT
        for block, (_, _, values) in zip(blocks, rows, strict=True):
            self._values[block.start : block.stop] = values
        self._record["step"], self._record["wall"] = step, wall
        self._record["crc"] = checksum(self._buffer)
        self._write(self._buffer)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        if self._decimator is not None:
            self._decimator.finish()

    def _block(self, signal: str, owners: tuple[str, ...]) -> Block:
        known = self._known.get((signal, id(owners)))
        if known is not None:
            return known[0]
        block = self._blocks.get((signal, owners))
        if block is None:
            block = self._blocks[signal, owners] = Block(signal, owners, self._columns)
            self._columns = block.stop
        self._known[signal, id(owners)] = block, owners
        return block

    def _begin_segment(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
            if self._decimator is not None:
                self._decimator.closed(self._index)
        dtype = record_dtype(self._columns)
        self._buffer = bytearray(dtype.itemsize)
        self._record = np.frombuffer(self._buffer, dtype)[0]
        self._values = self._record["values"]
        self._width = self._columns
        path = self._folder / f"{self._name}-{self._index + 1:06d}.seg"
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
        self._size = 0
        try:
            self._write(encode_header(self._name, tuple(self._blocks.values())))
        except OSError:  # without its header a segment is nothing: the next record tries again
            os.close(self._fd)
            self._fd = -1
            path.unlink(missing_ok=True)
            raise
        self._index += 1

    def _write(self, data: bytes | bytearray) -> None:
        """Append all of `data` or, on a full disk, nothing of it."""
        try:
            written = os.write(self._fd, data)
            while written < len(data):
                written += os.write(self._fd, memoryview(data)[written:])
        except OSError:
            os.ftruncate(self._fd, self._size)
            if self._size == 0:  # without its header a segment is nothing: try a new one next time
                os.close(self._fd)
                self._fd = -1
            raise
        self._size += len(data)


def json_safe(value: Any) -> Any:
    """The same value with NaN and infinities as strings, which JSON can hold."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): json_safe(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_safe(item) for item in value]
    return value
