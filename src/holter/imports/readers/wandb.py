"""Weights & Biases offline runs: `run-*.wandb`, a log of protocol-buffer records in 32 KiB blocks.

A record is cut into chunks that do not cross a block: checksum (4 bytes), length (2), type (1),
data. The file is read by itself; the wandb package is not needed.
"""

import json
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from holter.imports.log import Log, Row
from holter.imports.readers import protobuf

KIND = "W&B offline run"
FILES = ("*.wandb",)

_HEADER = b":W&B"
_HEADER_SIZE = 7
_BLOCK = 1 << 15
_FULL, _FIRST, _LAST = 1, 2, 4  # types of chunks
_LARGEST = 1 << 24  # bytes of a record that is read
_HISTORY, _ITEM, _STEP = 2, 1, 2  # fields of a record, and of its history
_KEY, _NESTED_KEY, _INTEGER, _NUMBER, _VALUE_JSON = 1, 2, 5, 6, 16  # fields of an item


def recognises(head: bytes) -> bool:
    """Return whether a file begins as an offline run does."""
    return head.startswith(_HEADER)


def read(path: Path, log: Log) -> None:
    """Read the history of an offline run up to its end, or to where it is damaged."""
    with path.open("rb") as file:
        file.seek(_HEADER_SIZE)
        for record in _records(file, log):
            try:
                for number, value in protobuf.fields(record):
                    if number == _HISTORY:
                        _add(protobuf.message(value), log)
            except protobuf.MalformedError:
                log.damaged += 1


def _add(history: bytes, log: Log) -> None:
    row: Row = {}
    step: object = None
    for number, value in protobuf.fields(history):
        if number == _ITEM:
            name, reading = _item(protobuf.message(value))
            row[name] = reading
        elif number == _STEP:
            for field, count in protobuf.fields(protobuf.message(value)):
                step = protobuf.signed(count) if field == 1 else step
    row.setdefault("_step", step)
    log.add_row(row)


def _item(item: bytes) -> tuple[str, object]:
    """Return the name of an item and its value, if that is a number."""
    keys: list[str] = []
    reading: object = None
    for number, value in protobuf.fields(item):
        if number in (_KEY, _NESTED_KEY):
            keys.append(protobuf.text(value))
        elif number == _INTEGER:
            reading = protobuf.zigzag(value)
        elif number == _NUMBER:
            reading = protobuf.floating(value)
        elif number == _VALUE_JSON:
            reading = _parsed(protobuf.text(value))
    return "/".join(keys), reading


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _records(file: BinaryIO, log: Log) -> Iterator[bytes]:
    """Yield whole records; chunks that fail their checksum are counted, and their record left out.

    Padding and damage end a block: the next block begins a chunk again.
    """
    parts: list[bytes] = []
    size = 0
    block = file.read(_BLOCK - _HEADER_SIZE)
    while block:
        at = 0
        while at + 7 <= len(block):
            checksum, length, kind = struct.unpack_from("<IHB", block, at)
            data = block[at + 7 : at + 7 + length]
            if kind == 0 and length == 0:  # padding
                break
            if len(data) < length or zlib.crc32(data, zlib.crc32(bytes([kind]))) != checksum:
                log.damaged += 1
                parts = []
                break
            at += 7 + length
            if kind in (_FULL, _FIRST):
                parts, size = [], 0
            elif not parts:  # the first part is lost
                continue
            parts.append(data)
            size += length
            if size > _LARGEST:
                parts = []
            elif kind in (_FULL, _LAST):
                yield b"".join(parts)
                parts = []
        block = file.read(_BLOCK)
