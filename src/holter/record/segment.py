"""Segment files, mapped into memory: the layer between the bytes of a run and its readings."""

import os
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from holter.record.errors import HolterError
from holter.record.format import Header, checksum, read_header, record_dtype
from holter.record.table import Stamps

_ATTEMPTS = 100
_NAME = re.compile(r"(.+)-(\d+)\.seg")


@dataclass(frozen=True)
class Segment:
    """One segment file. Records that are torn or still being written are left out."""

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
            mapped = np.memmap(file, dtype, "r", header.size, (count,))
        records = mapped.view(np.ndarray)  # views of a plain array are much cheaper to make
        while count and not _is_whole(records[count - 1]):
            count -= 1
        return cls(path, header, records[:count])

    @cached_property
    def stamps(self) -> Stamps:
        """The steps of the records, shared by all signals of the segment."""
        return Stamps(self.records["step"])

    @property
    def index(self) -> int:
        """The number in the file's name."""
        return place_of(self.path)[1]

    @property
    def through(self) -> int:
        """The last segment that this one stands for."""
        return self.index if self.header.through is None else self.header.through

    def verify(self) -> None:
        """Check every record; raise a sentence that names the first damaged one."""
        for index, record in enumerate(self.records):
            if not _is_whole(record):
                raise HolterError(
                    f"Record {index} of {self.path} (step {int(record['step'])}) is damaged: its"
                    " checksum is wrong; copy the run again from its source."
                )


def open_segments(folder: Path, stream: str | None = None) -> list[Segment]:
    """The segments of one rank, or of one of its streams, in the order they were begun."""
    for _ in range(_ATTEMPTS):
        try:
            return _open_segments(folder, stream)
        except FileNotFoundError:  # between listing and opening, it was joined to another
            continue
    raise HolterError(f"The files in {folder} disappear while they are read; try again.")


def _open_segments(folder: Path, stream: str | None) -> list[Segment]:
    found, through = [], {"": -1}
    for path in sorted(folder.glob("*.seg"), key=place_of):
        name, index = place_of(path)
        if stream not in (None, name) or index <= through.get(name, -1):
            continue
        segment = Segment.open(path)
        if segment is not None:
            found.append(segment)
            through[name] = segment.through
    return found


def place_of(path: Path) -> tuple[str, int]:
    """The stream and the number in a segment's name."""
    match = _NAME.fullmatch(path.name)
    return (match[1], int(match[2])) if match else (path.name, 0)


def segment_path(folder: Path, stream: str, index: int) -> Path:
    """The file of a stream's segment of that number."""
    return folder / f"{stream}-{index:06d}.seg"


def _is_whole(record: Any) -> bool:
    return checksum(record.tobytes()) == int(record["crc"])
