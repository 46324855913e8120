"""Readings that have arrived on the host, as the values that a run stores."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from torch import Tensor

from holter.record import format as run_format
from holter.record.format import Floats
from holter.record.signals import Signal
from holter.record.writer import Row as Record
from holter.watching.collectors import Reading
from holter.watching.collectors.lane import ABSENT, Column, Wide

Values = tuple[Signal, tuple[str, ...], Floats]


def of_row(row: list[float], layout: Sequence[Column]) -> Iterator[Values]:
    """The signals of a row that have a value."""
    start = 0
    for signal, owners in layout:
        values = row[start : start + len(owners)]
        start += len(owners)
        if any(value is not ABSENT for value in values):
            yield signal, owners, np.array(values, np.float32)


def of_wide(kind: Wide, row: list[float], read: Floats) -> Iterator[Record]:
    """The signals of a tensor of many values."""
    values, start = kind.values(row, read), 0
    for name, owners in kind.layout:
        yield name, owners, values[start : start + len(owners)]
        start += len(owners)


def on_host(readings: Iterable[Reading], arrived: Iterator[Floats]) -> Iterator[Values]:
    """Readings with their values, absent ones included."""
    for signal, owners, values, at in readings:
        read = next(arrived) if isinstance(values, Tensor) else np.asarray(values, np.float32)
        if signal.bins > 1:
            read = read.reshape(-1, signal.bins)
        if at is not None:
            full = np.full((len(owners), *read.shape[1:]), run_format.ABSENT)
            full[at] = read
            read = full
        yield signal, owners, read


def to_host(row: list[Any], arrived: Iterator[Floats]) -> None:
    """Replace the tensors of a row by their values."""
    for place, value in enumerate(row):
        if isinstance(value, Tensor):
            row[place] = next(arrived).item()


def places_of(layout: Sequence[Column], wanted: Signal) -> list[int]:
    """The places of a signal in a row."""
    columns = [signal for signal, owners in layout for _ in owners]
    return [place for place, signal in enumerate(columns) if signal is wanted]
