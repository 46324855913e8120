"""The wire format of protocol buffers: fields of a message by number, nothing interpreted."""

import struct
from collections.abc import Iterator

Value = int | bytes  # a number (bits, for floating point), or what has a length

_VARINT, _DOUBLE, _BYTES, _FLOAT = 0, 1, 2, 5
_LONGEST_VARINT = 10  # bytes


class MalformedError(Exception):
    """Bytes that are no message."""


def fields(message: bytes) -> Iterator[tuple[int, Value]]:
    """Yield the number and the value of each field of a message."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        number, wire = key >> 3, key & 7
        value: Value
        if wire == _VARINT:
            value, at = _varint(message, at)
        elif wire in (_DOUBLE, _FLOAT):
            size = 8 if wire == _DOUBLE else 4
            value, at = _slice(message, at, size), at + size
        elif wire == _BYTES:
            size, at = _varint(message, at)
            value, at = _slice(message, at, size), at + size
        else:
            raise MalformedError(f"wire type {wire}")
        yield number, value


def text(value: Value) -> str:
    """Return a field as text."""
    return _bytes(value).decode("utf-8", "replace")


def message(value: Value) -> bytes:
    """Return a field as a message of its own."""
    return _bytes(value)


def signed(value: Value) -> int:
    """Return an `int64` field."""
    if not isinstance(value, int):
        raise MalformedError("a number is no varint")
    return value - (1 << 64) if value >= 1 << 63 else value


def zigzag(value: Value) -> int:
    """Return a `sint64` field."""
    if not isinstance(value, int):
        raise MalformedError("a number is no varint")
    return (value >> 1) ^ -(value & 1)


def floating(value: Value) -> float:
    """Return a `float` or a `double` field."""
    data = _bytes(value)
    if len(data) not in (4, 8):
        raise MalformedError("a floating-point number has another size")
    return float(struct.unpack("<f" if len(data) == 4 else "<d", data)[0])


def _bytes(value: Value) -> bytes:
    if not isinstance(value, bytes):
        raise MalformedError("a number stands where bytes belong")
    return value


def _slice(message: bytes, at: int, size: int) -> bytes:
    if at + size > len(message):
        raise MalformedError("a field is longer than its message")
    return message[at : at + size]


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place in range(_LONGEST_VARINT):
        if at >= len(message):
            raise MalformedError("a number is cut off")
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return value & ((1 << 64) - 1), at
    raise MalformedError("a number is too long")
