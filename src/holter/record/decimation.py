"""Keeps a long stream inside its disk budget: the older the past, the coarser it is kept."""

import contextlib
import os
import threading
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from holter.record.errors import HolterError
from holter.record.format import ABSENT, Floats, checksum, encode_header, is_absent
from holter.record.segment import Segment, open_segments

WINDOW = 8
_SLAB_BYTES = 4 << 20  # read at once: the fold must not be felt in the training's memory

Records = npt.NDArray[np.void]
Counts = npt.NDArray[np.int64]
_NAN = np.float32(np.nan)


class Decimator:
    """Folds closed segments in a thread of its own until the stream fits its budget.

    Files are replaced whole, so neither training nor readers notice it.
    """

    def __init__(self, folder: Path, stream: str, budget: int) -> None:
        self._folder, self._stream, self._budget = folder, stream, budget
        self._newest = -1
        self._thread: threading.Thread | None = None
        for left_over in folder.glob(f"{stream}-*.tmp"):  # by a fold that was killed
            left_over.unlink(missing_ok=True)

    def closed(self, index: int) -> None:
        """Take over all segments up to `index`, which will not be written again."""
        self._newest = index
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._shrink, daemon=True)
            self._thread.start()

    def finish(self) -> None:
        """Wait until the stream fits."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
            self._shrink()  # what was closed during the last fold

    def _shrink(self) -> None:
        # On a full disk, in a vanished folder, beside a foreign file the records stay as they are.
        with contextlib.suppress(OSError, HolterError):
            shrink(self._folder, self._stream, newest=self._newest, budget=self._budget)


def shrink(folder: Path, stream: str, *, newest: int, budget: int) -> None:
    """Fold the segments up to `newest` until they fit `budget`.

    The newest half of the budget stays as it was recorded while folding the rest can do. There the
    two largest neighbours become one, so the past grows coarser by age, and files stay few.
    """
    if sum(each.stat().st_size for each in folder.glob(f"{stream}-*.seg")) <= budget:
        return  # without opening them: a script may begin thousands
    closed = [each for each in open_segments(folder, stream) if each.index <= newest]
    sizes = [each.path.stat().st_size for each in closed]
    while sum(sizes) > budget:
        old = sum(1 for at in range(len(closed)) if sum(sizes[at:]) > budget // 2)
        groups = list(_groups(closed))
        groups = [group for group in groups if sum(group) <= old] or groups
        if not groups:
            return
        at, count = max(groups, key=lambda group: sum(sizes[group[0] : sum(group)]))
        before = sum(sizes)
        closed[at : at + count] = [fold_segments(closed[at : at + count])]
        sizes[at : at + count] = [closed[at].path.stat().st_size]
        if sum(sizes) == before:  # steps that go back at every record
            return


def _groups(segments: Sequence[Segment]) -> Iterator[tuple[int, int]]:
    """Where neighbours start that can become one smaller segment, and how many they are."""
    for at, each in enumerate(segments):
        # The last keeps its file: a writer that resumes must not give its number away again.
        joins = at + 2 < len(segments) and segments[at + 1].header.blocks == each.header.blocks
        if joins:
            yield at, 2
        elif len(each.records) > 3:
            yield at, 1


def fold_segments(segments: Sequence[Segment]) -> Segment:
    """Fold neighbouring segments into the first one's file.

    Its header then says that it stands for all of them: whoever comes before the others are
    removed, or after a crash in between, leaves them out.
    """
    for each in segments:
        each.verify()  # before damage is sealed with a fresh checksum
    path, header = segments[0].path, segments[0].header
    fresh = path.with_suffix(".tmp")
    try:
        with fresh.open("wb") as file:
            file.write(encode_header(header.stream, header.blocks, through=segments[-1].through))
            for each in segments:
                for slab in _slabs(each.records):
                    file.write(fold(slab).tobytes())
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise
    for each in segments[1:]:
        each.path.unlink()
    folded = Segment.open(path)
    assert folded is not None
    return folded


def _slabs(records: Records) -> Iterator[Records]:
    """Split where steps go back: a window never holds steps of before and after a resume."""
    windows = max(1, _SLAB_BYTES // (records.dtype.itemsize * WINDOW))
    back = np.flatnonzero(np.diff(records["step"]) < 0) + 1
    for start, stop in pairwise([0, *back.tolist(), len(records)]):
        for at in range(start, stop, windows * WINDOW):
            yield records[at : min(at + windows * WINDOW, stop)]


def fold(records: Records) -> Records:
    """Two records for every eight, so that the lowest, the highest and a NaN of each column stay.

    The two extremes stand in the order in which they came. A window that has a NaN beside two
    different numbers in one column takes a third record.
    """
    whole = len(records) // WINDOW * WINDOW
    folded = _fold(records[:whole].reshape(-1, WINDOW))
    if whole < len(records):
        folded = np.concatenate([folded, _fold(records[whole:].reshape(1, -1))])
    for index in range(len(folded)):
        folded["crc"][index] = checksum(folded[index].tobytes())
    return folded


def _fold(windows: Records) -> Records:
    """Fold each row of `windows`, without checksums."""
    count, length = windows.shape
    if length == 1:
        return windows[:, 0].copy()
    values = np.ascontiguousarray(windows["values"])
    not_number = np.isnan(values)
    is_nan = not_number & ~is_absent(values)
    numbers: Counts = (~not_number).sum(axis=1)
    nans: Counts = is_nan.sum(axis=1)

    with np.errstate(invalid="ignore"):  # signalling NaNs
        low: Floats = np.fmin.reduce(values, axis=1)
        high: Floats = np.fmax.reduce(values, axis=1)
        falling = (values == low[:, None]).argmax(axis=1) > (values == high[:, None]).argmax(axis=1)
    three = (nans > 0) & (numbers > 0) & (low != high)
    no_number = np.where(nans > 0, _NAN, ABSENT)
    early = np.where(numbers == 0, no_number, np.where(falling, high, low))
    late = np.where((nans > 0) & ~three, _NAN, np.where(falling, low, high))
    late = np.where(numbers + nans < 2, ABSENT, late)

    folded = np.zeros((count, 3), windows.dtype)
    for place, source, readings in (
        (0, 0, early),
        (1, length // 2, np.where(three, _NAN, ABSENT)),
        (2, length - 1, late),
    ):
        folded["step"][:, place] = windows["step"][:, source]
        folded["wall"][:, place] = windows["wall"][:, source]
        folded["values"][:, place] = readings
    keep = np.ones((count, 3), np.bool_)
    keep[:, 1] = three.any(axis=1)
    return folded[keep]
