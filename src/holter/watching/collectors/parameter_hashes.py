"""Hashes of the parameters, by which the ranks of a distributed training are compared."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from holter.record.format import ABSENT, Floats
from holter.record.signals import WEIGHT_HASH, Signal
from holter.watching.collectors.groups import in_process_group
from holter.watching.collectors.lane import Lane
from holter.watching.collectors.moments import Depth
from holter.watching.collectors.roster import Roster, Subject
from holter.watching.stats.hashing import hashes
from holter.watching.stats.shards import whole

_DENSITY = 16  # updates of each octave that are read
_RAREST = 1024  # updates between two that are read


class ParameterHashes:
    """Reads parameters before an update, at updates that every rank chooses alike.

    The budget of a rank has no say: it depends on times that only this rank has measured.
    """

    emits: ClassVar[tuple[Signal, ...]] = (WEIGHT_HASH,)

    def __init__(self) -> None:
        self._updates: dict[int, int] = {}  # by the index of the optimizer
        self._columns: dict[int, _Columns] = {}

    def join(self, lane: Lane) -> None:
        """Hear of updates once there is a process group."""
        self._lane = lane
        lane.at_roster.append(self._follow)

    def _follow(self, roster: Roster) -> None:  # noqa: ARG002
        self._columns.clear()
        if self._update not in self._lane.at_update and in_process_group():
            self._lane.at_update.append(self._update)

    def _update(self, subject: Subject, optimizer: Optimizer, depth: Depth) -> None:  # noqa: ARG002
        update = self._updates.get(subject.index, 0)
        self._updates[subject.index] = update + 1
        if not is_read(update):
            return
        columns = self._columns.get(subject.index)
        if columns is None:
            columns = self._columns[subject.index] = _Columns(subject)
        if columns.places:
            parameters = [subject.parameters[place] for place in columns.places]
            held = [part for parameter in parameters if (part := whole(parameter)) is not None]
            self._lane.row.keep_wide(columns, hashes(held))


def is_read(update: int) -> bool:
    """Whether parameters are read before the update of this number."""
    gap = max((1 << update.bit_length() >> 1) // _DENSITY, 1)
    return update % min(gap, _RAREST) == 0


class _Columns:
    """Where the hashes of an optimizer's parameters are written."""

    stream = WEIGHT_HASH.stream

    def __init__(self, subject: Subject) -> None:
        self.layout: Sequence[tuple[str, tuple[str, ...]]] = [(WEIGHT_HASH.name, subject.names)]
        self._owners = len(subject.names)
        self.places = [p for p, each in enumerate(subject.parameters) if _is_read(whole(each))]

    def values(self, row: list[float], read: Floats) -> Floats:  # noqa: ARG002
        """Return a value for every parameter, absent for those without a hash."""
        full = np.full(self._owners, ABSENT)
        full[self.places] = read
        return full


def _is_read(parameter: Tensor | None) -> bool:
    """Whether a parameter is an ordinary tensor, of which this process holds everything."""
    if parameter is None or type(parameter) not in (Tensor, nn.Parameter):
        return False
    return parameter.layout is torch.strided
