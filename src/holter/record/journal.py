"""The JSON side of a run: `meta.json`, replaced whole, and `events.jsonl`, a line an event."""

import contextlib
import errno
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from holter.record.errors import HolterError
from holter.record.events import Event, Occurrence
from holter.record.format import FORMAT, require_format
from holter.record.portable import BINARY

_NOT_FINITE = ("nan", "inf", "-inf")


def read_meta(folder: Path) -> dict[str, Any]:
    """What `meta.json` of a folder says; nothing where there is none."""
    path = folder / "meta.json"
    try:
        meta = decode(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (ValueError, OSError) as error:
        raise HolterError(
            f"{path} cannot be read ({error}); remove it to read the rest."
        ) from error
    if not isinstance(meta, dict):
        raise HolterError(f"{path} is not the meta file of a holter run; remove it.")
    require_format(meta.get("format", 0), path)
    return meta


def write_meta(folder: Path, meta: Mapping[str, Any]) -> None:
    """Replace `meta.json`: a reader sees the old one or the new one, never a part."""
    fresh = folder / "meta.tmp"
    try:
        fresh.write_bytes(encode({**meta, "format": FORMAT}, indent=1) + b"\n")
        fresh.replace(folder / "meta.json")
    except OSError:
        with contextlib.suppress(OSError):
            fresh.unlink()
        raise


def read_events(path: Path) -> tuple[Event[Occurrence], ...]:
    """All events of a file; a line torn by a crash is left out."""
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return ()
    events = []
    for line in lines:
        try:
            events.append(Event.of(decode(line)))
        except (ValueError, KeyError, TypeError, OverflowError):
            continue
    return tuple(events)


def append_event(path: Path, event: Event[Occurrence]) -> None:
    """Append one line. The file is not kept open: events are few, and folders vanish."""
    line = encode(event.to_json()) + b"\n"
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | BINARY, 0o644)
    try:
        size = os.fstat(file).st_size
        if size:
            os.lseek(file, size - 1, os.SEEK_SET)
            if os.read(file, 1) != b"\n":  # the line before was torn
                line = b"\n" + line
        if os.write(file, line) < len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    finally:
        os.close(file)


def encode(value: object, *, indent: int | None = None) -> bytes:
    """Strict JSON of anything; NaN and infinities as `{"float": "nan"}`."""
    return json.dumps(_plain(value), indent=indent, allow_nan=False).encode()


def decode(text: bytes) -> Any:
    """What `encode` was given, so far as JSON can hold it."""
    return json.loads(text, object_hook=_float_or_same)


def _plain(value: object) -> object:
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"float": str(float(value))}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, str | int) else str(value)


def _float_or_same(fields: dict[str, Any]) -> Any:
    if len(fields) == 1 and fields.get("float") in _NOT_FINITE:
        return float(fields["float"])
    return fields
