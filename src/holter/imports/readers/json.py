"""JSON: `trainer_state.json` of Transformers, JSON lines, exported histories."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

from holter.imports.log import Log
from holter.record.errors import HolterError

KIND = "JSON log"
FILES = ("*metrics*.json*", "*log*.json*", "*history*.json*")

_BEGINNING = re.compile(rb'(?:\xef\xbb\xbf)?\s*(?:\{\s*["}]|\[\s*\{)')
_LARGEST = 64 << 20  # bytes of a document that is read as a whole
_LONGEST_LINE = 1 << 20  # bytes
_SUMMARY = "train_runtime"  # in the last row of Trainer, whose `train_loss` is the mean of the run


def recognises(head: bytes) -> bool:
    """Return whether a file begins as an object with names, or an array of objects, does."""
    return _BEGINNING.match(head) is not None


def read(path: Path, log: Log) -> None:
    """Read a document with rows, or a document in each line."""
    with path.open("rb") as file:
        first = file.readline(_LONGEST_LINE)
        is_lines = isinstance(_parsed(first), Mapping) and file.read(1) != b""
        if not is_lines:
            _read_document(path, log)
            return
        file.seek(0)
        while line := file.readline(_LONGEST_LINE):
            row = _parsed(line)
            if isinstance(row, Mapping):
                _add(row, log)
            elif line.strip():
                log.damaged += 1


def _read_document(path: Path, log: Log) -> None:
    size = path.stat().st_size
    if size > _LARGEST:
        raise HolterError(
            f"{path} is a JSON document of {size / 2**20:.0f} MB, and at most {_LARGEST >> 20} MB"
            " are read; write one object per line instead."
        )
    document = _parsed(path.read_bytes())
    if isinstance(document, Mapping):
        document = document.get("log_history", document.get("history", document))
    if isinstance(document, Mapping):
        document = _transposed(document)
    if not isinstance(document, list):
        raise HolterError(f"{path} contains no rows of names and values.")
    for row in document:
        if isinstance(row, Mapping):
            _add(row, log)
        else:
            log.damaged += 1


def _add(row: Mapping[str, object], log: Log) -> None:
    if _SUMMARY not in row:
        log.add_row(row)


def _transposed(history: Mapping[str, object]) -> list[dict[str, object]]:
    """Return the rows of a history that has a list for each name, as that of Keras."""
    lists = {name: values for name, values in history.items() if isinstance(values, list)}
    longest = max((len(values) for values in lists.values()), default=0)
    return [
        {name: values[place] for name, values in lists.items() if place < len(values)}
        for place in range(longest)
    ]


def _parsed(text: bytes) -> object:
    """Return what a text says, or None where it is no JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
