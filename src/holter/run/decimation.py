"""Keeps a long stream inside its disk budget: the past is folded to its lowest and highest."""

import os
import threading
from pathlib import Path

import numpy as np
import numpy.typing as npt

from holter.run.format import ABSENT, checksum, encode_header, is_absent, read_header, record_dtype

FOLD = 8


class Decimator:
    """Folds closed segments, the largest and oldest first, until the stream fits its budget.

    Folding replaces eight records by two, the lowest and the highest reading of each column, so
    that no spike and no NaN vanishes. It runs in a thread of its own and replaces files whole, so
    neither training nor readers notice it.
    """

    def __init__(self, folder: Path, stream: str, budget: int) -> None:
        self._folder, self._stream, self._budget = folder, stream, budget
        self._closed: set[int] = set()
        self._thread: threading.Thread | None = None

    def closed(self, index: int) -> None:
        """Take over the segment `index`, which will not be written again."""
        self._closed.add(index)
        if self._thread is None or not self._thread.is_alive():
            names = [self._folder / f"{self._stream}-{i:06d}.seg" for i in sorted(self._closed)]
            self._thread = threading.Thread(target=shrink, args=(names, self._budget), daemon=True)
            self._thread.start()

    def finish(self) -> None:
        """Wait for the fold in progress."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None


def shrink(paths: list[Path], budget: int) -> None:
    """Fold the largest of `paths` again and again until they fit `budget` together."""
    try:
        sizes = {path: path.stat().st_size for path in paths if path.exists()}
        while sum(sizes.values()) > budget:
            largest = max(sizes, key=lambda path: sizes[path])
            folded = fold_segment(largest)
            if folded >= sizes[largest]:
                return
            sizes[largest] = folded
    except OSError:
        return  # a full disk or a vanished folder: the records stay as they are


def fold_segment(path: Path) -> int:
    """Fold one segment in place; the size it has then."""
    with path.open("rb") as file:
        header = read_header(file, path)
        if header is None:
            return path.stat().st_size
        dtype = record_dtype(header.width)
        file.seek(header.size)
        whole = (path.stat().st_size - header.size) // dtype.itemsize
        records = np.frombuffer(file.read(whole * dtype.itemsize), dtype)
    folded = fold(records)
    fresh = path.with_suffix(".tmp")
    with fresh.open("wb") as file:
        file.write(encode_header(header.stream, header.blocks))
        file.write(folded.tobytes())
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    return path.stat().st_size


def fold(records: npt.NDArray[np.void]) -> npt.NDArray[np.void]:
    """Two records for every eight: the lowest and the highest readings; a NaN is a highest."""
    groups = [records[i : i + FOLD] for i in range(0, len(records), FOLD)]
    folded = np.empty(sum(min(2, len(group)) for group in groups), records.dtype)
    at = 0
    for group in groups:
        if len(group) == 1:
            folded[at] = group[0]
            at += 1
            continue
        values = np.ascontiguousarray(group["values"])
        absent = is_absent(values)
        gone = absent.all(axis=0)
        nan = (np.isnan(values) & ~absent).any(axis=0)
        low = np.fmin.reduce(values, axis=0)
        high = np.where(nan, np.float32(np.nan), np.fmax.reduce(values, axis=0))
        for extreme, record in ((low, group[0]), (high, group[-1])):
            # Where all that was read is NaN, fmin may hand back the mark of absence.
            side = np.where(np.isnan(extreme), np.float32(np.nan), extreme)
            side[gone] = ABSENT
            folded[at]["step"], folded[at]["wall"] = record["step"], record["wall"]
            folded[at]["values"] = side
            at += 1
    seal(folded)
    return folded


def seal(records: npt.NDArray[np.void]) -> None:
    """Write the checksum of every record."""
    for i in range(len(records)):
        records["crc"][i] = checksum(records[i].tobytes())
