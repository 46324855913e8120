"""Readings as the rules see them: series of one owner, windows over all of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from holter.record.format import ABSENT, Floats, is_absent

Steps = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Series:
    """The readings of one signal for one owner, in step order. NaN and Inf are data.

    Of a histogram each reading is a row of bins.
    """

    steps: Steps
    values: Floats

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def first(self) -> int:
        """The step of the first reading."""
        return int(self.steps[0])

    @property
    def last(self) -> int:
        """The step of the last reading."""
        return int(self.steps[-1])


@dataclass(frozen=True, slots=True)
class Rows:
    """A window of one signal over all its owners; `present` tells a NaN from no reading."""

    steps: Steps
    owners: tuple[str, ...]
    values: Floats
    present: npt.NDArray[np.bool_]


class Stamps:
    """The steps of some records, copied out of the file when first asked for."""

    def __init__(self, stored: Steps) -> None:
        self._stored = stored

    def __len__(self) -> int:
        return len(self._stored)

    @cached_property
    def steps(self) -> Steps:
        """The steps in the order they were written, which is not always rising."""
        return np.ascontiguousarray(self._stored)

    @cached_property
    def rising(self) -> bool:
        """Whether every step is later than the one before."""
        return bool((self.steps[1:] > self.steps[:-1]).all())

    def window(self, first: int | None, last: int | None) -> slice | npt.NDArray[np.bool_]:
        """Which records lie from step `first` to step `last`, both included."""
        low = np.iinfo(np.int64).min if first is None else first
        high = np.iinfo(np.int64).max if last is None else last
        if not self.rising:
            return (self.steps >= low) & (self.steps <= high)
        return slice(
            int(np.searchsorted(self.steps, low, "left")),
            int(np.searchsorted(self.steps, high, "right")),
        )


@dataclass(frozen=True, slots=True)
class Chunk:
    """Readings of one signal that lie together: a row for each step, a column for each owner.

    Histograms have a third dimension: their bins.
    """

    stamps: Stamps
    owners: tuple[str, ...]
    values: Floats

    @property
    def steps(self) -> Steps:
        """The step of each row."""
        return self.stamps.steps


class Table(Mapping[str, Series]):
    """All readings of one signal, by owner. Nothing is read before it is asked for.

    Where a step was recorded twice, as in a run resumed from a checkpoint, the later reading holds.
    """

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self._chunks = chunks

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, owner: str) -> Series:
        steps, values = [], []
        for chunk, column in self._columns(owner):
            read = np.ascontiguousarray(chunk.values[:, column])
            absent = is_absent(read)
            if absent.ndim > 1:  # a histogram is there or not
                absent = absent[:, 0]
            if absent.any():
                steps.append(chunk.steps[~absent])
                values.append(read[~absent])
            else:
                steps.append(chunk.steps)
                values.append(read)
        if len(steps) == 1:
            return in_order(steps[0], values[0])
        return in_order(np.concatenate(steps), np.concatenate(values))

    def rows(self, first: int | None = None, last: int | None = None) -> Rows:
        """The readings of all owners from step `first` to step `last`, both included."""
        owners = tuple(self._places)
        parts = []
        for chunk in self._chunks:
            window = chunk.stamps.window(first, last)
            if len(at := chunk.steps[window]):
                values = chunk.values[window]
                whole = [slice(None)] if chunk.stamps.rising else [[row] for row in range(len(at))]
                parts += [(at[some], chunk.owners, values[some]) for some in whole]
        steps = np.unique(np.concatenate([part[0] for part in parts])) if parts else _NO_STEPS
        column = {owner: index for index, owner in enumerate(owners)}
        bins = self._chunks[0].values.shape[2:] if self._chunks else ()
        out = np.full((len(steps), len(owners), *bins), ABSENT)
        for at, some_owners, values in parts:
            low = int(np.searchsorted(steps, at[0]))
            if some_owners == owners and np.array_equal(at, steps[low : low + len(at)]):
                np.copyto(out[low : low + len(at)], values, where=~is_absent(values))
                continue
            columns = np.array([column[owner] for owner in some_owners], np.intp)
            place = np.ix_(np.searchsorted(steps, at), columns)
            out[place] = np.where(is_absent(values), out[place], values)
        return Rows(steps, owners, out, ~is_absent(out))

    def until(self, step: int) -> "Table":
        """The readings up to `step`, that one included."""
        parts = []
        for chunk in self._chunks:
            window = chunk.stamps.window(None, step)
            if len(steps := chunk.steps[window]):
                parts.append(Chunk(Stamps(steps), chunk.owners, chunk.values[window]))
        return Table(parts)

    @property
    def last_step(self) -> int:
        """The last step that has a record; -1 where none has."""
        return max(
            (int(chunk.steps.max()) for chunk in self._chunks if len(chunk.stamps)), default=-1
        )

    @cached_property
    def _places(self) -> dict[str, list[tuple[tuple[str, ...], int]]]:
        """Of every owner: the lists of owners it stands in, and where."""
        places: dict[str, list[tuple[tuple[str, ...], int]]] = {}
        for owners in dict.fromkeys(chunk.owners for chunk in self._chunks):
            for column, owner in enumerate(owners):
                places.setdefault(owner, []).append((owners, column))
        return places

    def _columns(self, owner: str) -> Iterator[tuple[Chunk, int]]:
        places = self._places[owner]
        for chunk in self._chunks:
            for owners, column in places:
                if chunk.owners == owners:
                    yield chunk, column


_NO_STEPS = np.empty(0, np.int64)


def in_order(steps: Steps, values: Floats) -> Series:
    """A series by step; of two readings of one step the later holds."""
    if not (steps[1:] > steps[:-1]).all():
        order = np.argsort(steps, kind="stable")
        steps, values = steps[order], values[order]
        latest = np.append(steps[1:] != steps[:-1], True)
        steps, values = steps[latest], values[latest]
    return Series(steps, values)
