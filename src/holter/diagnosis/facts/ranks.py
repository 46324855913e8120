"""The processes of a distributed training side by side: how they are joined, where they part."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from holter.record import Run
from holter.record.errors import HolterError
from holter.record.events import (
    ExceptionRaised,
    ProcessGroupSeen,
    SilenceSeen,
    UnevenInputsJoined,
)
from holter.record.format import Floats
from holter.record.heartbeat import Activity, Heartbeat
from holter.record.signals import WEIGHT_HASH, Signal
from holter.record.table import Rows, Steps

ALONE = "one process trained"
_COMMUNICATION = (
    *("closed by peer", "connection reset", "connection refused", "broken pipe", "timed out"),
    *("timeout", "nccl", "gloo", "c10d", "socket", "remote process"),
)  # in the messages of exceptions that are raised because another process is gone


@dataclass(frozen=True)
class Rank:
    """One process of a training."""

    number: int
    run: Run

    @cached_property
    def group(self) -> ProcessGroupSeen | None:
        """How the process takes part in the training, if it is in a process group."""
        seen = self.run.events_of(ProcessGroupSeen)
        return seen[-1].what if seen else None

    @property
    def heartbeat(self) -> Heartbeat | None:
        """Its last signs of life."""
        return self.run.heartbeat

    @cached_property
    def exception(self) -> ExceptionRaised | None:
        """What ended it."""
        raised = self.run.events_of(ExceptionRaised)
        return raised[-1].what if raised and self.run.finished else None

    @property
    def lost_others(self) -> bool:
        """Whether it failed because it could no longer reach another process."""
        error = self.exception
        return error is not None and any(
            word in f"{error.type} {error.message}".lower() for word in _COMMUNICATION
        )

    @cached_property
    def silence(self) -> SilenceSeen | None:
        """Where it was when it fell silent, if it did nothing after that."""
        seen, heartbeat = self.run.events_of(SilenceSeen), self.heartbeat
        if not seen or heartbeat is None or heartbeat.wall > seen[-1].wall:
            return None
        return seen[-1].what

    @cached_property
    def is_alive(self) -> bool:
        """Whether its process still runs."""
        host, heartbeat = self.run.meta.environment.machine.host, self.heartbeat
        return not self.run.finished and heartbeat is not None and heartbeat.is_alive(host)

    @property
    def is_waiting(self) -> bool:
        """Whether it was where processes wait for each other when it was last seen."""
        if self.silence is not None and self.silence.collective:
            return True
        return self.heartbeat is not None and self.heartbeat.activity is Activity.BACKWARD


@dataclass(frozen=True)
class Split:
    """The first reading at which parameters differ between ranks."""

    step: int  # at which they differ
    before: int | None  # the last reading at which all were equal
    parameters: tuple[str, ...]
    ranks: tuple[int, ...]  # that differ from most
    met_again: int | None  # a later step at which all were equal


@dataclass(frozen=True)
class Ranks:
    """All processes of a training that were recorded."""

    members: tuple[Rank, ...]
    world: int  # processes, recorded or not

    @property
    def group(self) -> ProcessGroupSeen | None:
        """How the training is spread: as the first process that knows it says."""
        return next((rank.group for rank in self.members if rank.group is not None), None)

    @property
    def is_wrapped(self) -> bool:
        """Whether a wrapper of torch trains one model in all processes."""
        group = self.group
        return group is not None and bool(group.wrapper) and group.replicas == group.world_size

    @property
    def is_sharded(self) -> bool:
        """Whether each process holds a part of the parameters."""
        return self.group is not None and self.group.shards > 1

    def owners(self, signal: Signal) -> list[str]:
        """Return the owners of a signal, as the first rank has them."""
        first = self.members[0].run
        return list(first[signal]) if signal in first else []

    @property
    def are_joined(self) -> bool:
        """Whether the script allows for different numbers of batches."""
        return any(rank.run.events_of(UnevenInputsJoined) for rank in self.members)

    @cached_property
    def split(self) -> Split | str | None:
        """Where parameters first differ; None if they never do, a sentence if it is not known."""
        return _split(self)

    @property
    def are_replicas(self) -> bool:
        """Whether all processes train one model: by a wrapper, or by hand with equal parameters."""
        return self.is_wrapped or (self.group is not None and self.split is None)


def ranks_of(run: Run) -> Ranks | str:
    """Return the processes of a training, or why there is nothing to compare."""
    seen = run.events_of(ProcessGroupSeen)
    launched = run.meta.environment.variables.get("WORLD_SIZE", "1")
    world = seen[-1].what.world_size if seen else int(launched) if launched.isdigit() else 1
    numbers = run.ranks
    if len(numbers) < 2 and world < 2:
        return ALONE
    members = []
    for number in numbers:
        try:
            members.append(Rank(number, run.of_rank(number)))
        except HolterError:  # damaged, or still being made
            continue
    return Ranks(tuple(members), max(world, len(numbers)))


def named(numbers: Sequence[int], *, limit: int = 4) -> str:
    """Return ranks for a sentence: `rank 3`, `ranks 0 and 2`, `ranks 0, 1, 2, 3 and 4 more`."""
    if len(numbers) == 1:
        return f"rank {numbers[0]}"
    shown = [str(number) for number in numbers[:limit]]
    if len(numbers) > limit:
        return f"ranks {', '.join(shown)} and {len(numbers) - limit} more"
    return f"ranks {', '.join(shown[:-1])} and {shown[-1]}"


@dataclass(frozen=True, slots=True)
class Together:
    """One signal of one owner on all ranks, at the steps that every rank has read."""

    steps: Steps
    values: Floats  # a row for each rank

    def __len__(self) -> int:
        return len(self.steps)

    def apart(self, tolerance: float) -> npt.NDArray[np.bool_]:
        """Return at which steps values differ by more than a share of the largest."""
        if len(self.values) < 2:
            return np.zeros(len(self), np.bool_)
        low, high = self.values.min(axis=0), self.values.max(axis=0)
        size = np.abs(self.values).max(axis=0)
        apart: npt.NDArray[np.bool_] = high - low > tolerance * size
        return apart


def together(ranks: Ranks, signal: Signal, owner: str) -> Together:
    """Return what every rank has read of a signal at the same steps.

    It is nothing where ranks take different numbers of steps: equal numbers are other updates.
    """
    there = [rank.run for rank in ranks.members if signal in rank.run and owner in rank.run[signal]]
    if len(there) < max(len(ranks.members), 2) or ranks.are_joined:
        return Together(np.empty(0, np.int64), np.empty((0, 0), np.float32))
    series = [run[signal][owner] for run in there]
    steps = series[0].steps
    for one in series[1:]:
        steps = np.intersect1d(steps, one.steps, assume_unique=True)
    return Together(steps, np.stack([one.values[np.isin(one.steps, steps)] for one in series]))


def _split(ranks: Ranks) -> Split | str | None:
    if ranks.is_sharded:
        return "the parameters are sharded: each rank holds a different part"
    if ranks.are_joined:
        return "the script uses Join: ranks take different numbers of steps"
    read = [rank for rank in ranks.members if WEIGHT_HASH in rank.run]
    if len(read) < 2:
        return "fewer than two ranks recorded hashes of their parameters"
    rows = [rank.run[WEIGHT_HASH].rows() for rank in read]
    ignored = ranks.group.ignored if ranks.group is not None else ()
    names = [
        name
        for name in rows[0].owners
        if all(name in one.owners for one in rows) and not name.endswith(ignored)
    ]
    steps = rows[0].steps
    for one in rows[1:]:
        steps = np.intersect1d(steps, one.steps, assume_unique=True)
    if not names or not len(steps):
        return "no parameter was read at the same step on two ranks"
    values = np.stack([_chosen(one, steps, names) for one in rows])  # rank, step, parameter
    apart = (values != values[0]).any(axis=0)
    at = apart.any(axis=1)
    if not at.any():
        return None
    first = int(at.argmax())
    later = np.flatnonzero(~at[first:])
    which = np.flatnonzero(apart[first])
    return Split(
        step=int(steps[first]),
        before=int(steps[first - 1]) if first else None,
        parameters=tuple(names[place] for place in which),
        ranks=tuple(read[place].number for place in _minority(values[:, first, which[0]])),
        met_again=int(steps[first + later[0]]) if len(later) else None,
    )


def _chosen(rows: Rows, steps: Steps, names: Sequence[str]) -> npt.NDArray[np.int64]:
    """Return the hashes of some steps and parameters; absent ones are equal to each other."""
    columns = [rows.owners.index(name) for name in names]
    read = np.where(rows.present, rows.values, -1)[np.isin(rows.steps, steps)]
    return read[:, columns].astype(np.int64)


def _minority(values: npt.NDArray[np.int64]) -> list[int]:
    """Return the places of all but the most frequent value; of a tie, the first value stays."""
    _, firsts, inverse, counts = np.unique(
        values, return_index=True, return_inverse=True, return_counts=True
    )
    most = min(range(len(counts)), key=lambda place: (-counts[place], firsts[place]))
    return np.flatnonzero(inverse != most).tolist()
