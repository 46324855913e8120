"""The layout of a segment file: a JSON header, then records of one size.

Any language opens one: read the first line as JSON, skip `header` bytes, and what follows is an
array of records `<i8 step, <f8 wall, <u4 crc32, <f4 x width`. In numpy:

    np.memmap(path, dtype, "r", header, ((size - header) // dtype.itemsize,))

A segment that says `through` has taken in its successors up to that number: ignore those.
"""

import json
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from holter.record.errors import HolterError

FORMAT = 1
_UNIT = 4096  # headers are padded to whole pages, so that records begin on one
_MAGIC = b'{"holter": "segment"'
_REST = len(_MAGIC) + len(', "crc": "00000000", ')  # where what the checksum covers begins

# A reading that was not taken is not a NaN: NaN is data. Absence is one particular quiet NaN.
ABSENT_BITS = np.uint32(0x7FC0AB5E)
ABSENT = np.array([ABSENT_BITS]).view("<f4")[0]

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Block:
    """Neighbouring columns of a record: one signal, with `bins` columns for each of its owners."""

    signal: str
    owners: tuple[str, ...]
    start: int
    bins: int = 1

    @property
    def stop(self) -> int:
        """The column after the last one."""
        return self.start + len(self.owners) * self.bins


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a segment."""

    stream: str
    blocks: tuple[Block, ...]
    size: int
    through: int | None = None

    @property
    def width(self) -> int:
        """Number of columns."""
        return self.blocks[-1].stop if self.blocks else 0


def record_dtype(width: int) -> np.dtype[np.void]:
    """One record: the step, the wall clock, a checksum over the rest, and the readings."""
    return np.dtype([("step", "<i8"), ("wall", "<f8"), ("crc", "<u4"), ("values", "<f4", (width,))])


def checksum(record: bytes | bytearray | memoryview) -> int:
    """The checksum of a record: over everything but itself."""
    view = memoryview(record)
    return zlib.crc32(view[20:], zlib.crc32(view[:16]))


def is_absent(values: Floats) -> npt.NDArray[np.bool_]:
    """Which of `values` were never read."""
    absent: npt.NDArray[np.bool_] = values.view(np.uint32) == ABSENT_BITS
    return absent


def encode_header(stream: str, blocks: tuple[Block, ...], *, through: int | None = None) -> bytes:
    """The header, padded to whole pages. Lists of owners that several blocks share stand once."""
    owners = list(dict.fromkeys(block.owners for block in blocks))
    place = {names: index for index, names in enumerate(owners)}
    fields: dict[str, Any] = {
        "format": FORMAT,
        "stream": stream,
        "through": through,
        "absent": int(ABSENT_BITS),
        "owners": owners,
        "blocks": [[block.signal, place[block.owners], block.bins] for block in blocks],
    }
    size = _UNIT
    while True:
        rest = json.dumps({**fields, "header": size}).encode()[1:] + b"\n"
        line = _MAGIC + b', "crc": "%08x", ' % zlib.crc32(rest) + rest
        if len(line) <= size:
            return line.ljust(size)
        size = -(-len(line) // _UNIT) * _UNIT


def read_header(file: BinaryIO, path: Path) -> Header | None:
    """Read a segment's header; None where its writer died before the header was whole."""
    first = file.read(_UNIT)
    if not _MAGIC.startswith(first[: len(_MAGIC)]):
        raise HolterError(
            f"{path} is not a segment of a holter run; remove it from the run folder."
        )
    line = first if b"\n" in first else first + file.readline()
    line, newline, _ = line.partition(b"\n")
    if not newline:
        return None
    try:
        fields = json.loads(line)
        require_format(fields["format"], path)  # first: a newer format may hold other fields
        if int(fields["crc"], 16) != zlib.crc32(line[_REST:] + newline):
            raise ValueError("its checksum does not hold")
        owners = [tuple(names) for names in fields["owners"]]
        blocks, start = [], 0
        for signal, index, *bins in fields["blocks"]:
            blocks.append(Block(signal, owners[index], start, *bins))
            start = blocks[-1].stop
        return Header(fields["stream"], tuple(blocks), fields["header"], fields["through"])
    except (ValueError, LookupError, TypeError) as error:
        raise HolterError(
            f"The header of {path} is damaged ({error}); remove the file to read the rest."
        ) from error


def require_format(made_with: object, path: Path) -> None:
    """Refuse what a newer holter wrote, in one sentence."""
    if not isinstance(made_with, int) or made_with > FORMAT:
        raise HolterError(
            f"{path} has run format {made_with}, this holter reads up to {FORMAT};"
            " upgrade with `pip install -U holter`."
        )
