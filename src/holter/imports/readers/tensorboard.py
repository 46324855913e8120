"""TensorBoard event files: records with checksums that hold protocol buffers.

A record is its length (8 bytes), the checksum of the length (4), the data, and the checksum of the
data (4). TensorBoard is not needed to read them.
"""

import struct
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import BinaryIO

from holter.imports.log import Log
from holter.imports.readers import protobuf

KIND = "TensorBoard event file"
FILES = ("*tfevents*",)

_LARGEST = 1 << 20  # bytes of a record that is read; images and graphs are larger
_IMPOSSIBLE = 1 << 40  # bytes of a record
_STEP, _SUMMARY = 2, 5  # fields of an event
_VALUE = 1  # of a summary
_TAG, _SIMPLE_VALUE, _TENSOR = 1, 2, 8  # of a value
_DTYPE, _CONTENT, _FLOATS, _DOUBLES = 1, 4, 5, 6  # of a tensor
_FLOAT, _DOUBLE = 1, 2  # types


def recognises(head: bytes) -> bool:
    """Return whether a file begins with a record of the format."""
    return len(head) >= 12 and _is_length(head[:12])


def read(path: Path, log: Log) -> None:
    """Read the scalars of an event file up to its end, or to where it is damaged."""
    with path.open("rb") as file:
        for record in _records(file, log):
            try:
                _add(record, log)
            except protobuf.MalformedError:
                log.damaged += 1


def _add(event: bytes, log: Log) -> None:
    step, summaries = 0, []
    for number, value in protobuf.fields(event):
        if number == _STEP:
            step = protobuf.signed(value)
        elif number == _SUMMARY:
            summaries.append(protobuf.message(value))
    for summary in summaries:
        for number, value in protobuf.fields(summary):
            if number == _VALUE:
                name, reading = _scalar(protobuf.message(value))
                if reading is not None:
                    log.add(name, step, reading)


def _scalar(value: bytes) -> tuple[str, float | None]:
    name, reading = "", None
    for number, field in protobuf.fields(value):
        if number == _TAG:
            name = protobuf.text(field)
        elif number == _SIMPLE_VALUE:
            reading = protobuf.floating(field)
        elif number == _TENSOR:
            reading = _only_element(protobuf.message(field))
    return name, reading


def _only_element(tensor: bytes) -> float | None:
    """Return the element of a tensor that has one floating-point number, or None."""
    dtype, data = 0, b""
    for number, field in protobuf.fields(tensor):
        if number == _DTYPE:
            dtype = protobuf.signed(field)
        elif number in (_CONTENT, _FLOATS, _DOUBLES):
            data += protobuf.message(field)
    sizes = {_FLOAT: 4, _DOUBLE: 8}
    return protobuf.floating(data) if len(data) == sizes.get(dtype) else None


def _records(file: BinaryIO, log: Log) -> Iterator[bytes]:
    """Yield the data of each record; large ones are skipped, damage ends the file."""
    while head := file.read(12):
        (length,) = struct.unpack("<Q", head[:8]) if len(head) == 12 else (_IMPOSSIBLE,)
        if length >= _IMPOSSIBLE or not _is_length(head):
            log.damaged += 1
            return
        if length > _LARGEST:
            file.seek(length + 4, 1)
            continue
        data, checksum = file.read(length), file.read(4)
        if len(data) < length or len(checksum) < 4:  # cut off, as by a crash
            log.damaged += 1
            return
        if _masked(data) == struct.unpack("<I", checksum)[0]:
            yield data
        else:
            log.damaged += 1


def _is_length(head: bytes) -> bool:
    return bool(_masked(head[:8]) == struct.unpack("<I", head[8:12])[0])


def _masked(data: bytes) -> int:
    """Return the CRC-32C of some bytes, rotated and shifted as the format wants it."""
    table = _table()
    crc = 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


@cache
def _table() -> tuple[int, ...]:
    entries = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
        entries.append(crc)
    return tuple(entries)
