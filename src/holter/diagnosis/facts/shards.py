"""Total norms of sharded parameters: each rank records its shards, rules see the whole."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from holter.diagnosis.facts.ranks import Ranks, ranks_of
from holter.record import Run, Series
from holter.record.signals import GRAD_TOTAL_NORM, WEIGHT_TOTAL_NORM, Signal
from holter.record.table import Steps

_NORMS = (GRAD_TOTAL_NORM, WEIGHT_TOTAL_NORM)


def with_global_norms(run: Run) -> Run:
    """Return a run whose total norms are those of all shards, where ranks hold one each.

    Ranks sample their steps independently: between two readings of another rank its squared norm
    is interpolated.
    """
    ranks = ranks_of(run)
    if isinstance(ranks, str) or not ranks.is_sharded or ranks.group is None:
        return run
    copies = len(ranks.members) / ranks.group.shards  # more than one if shards are replicated
    made: dict[Signal, dict[str, Series]] = {}
    for signal in _NORMS:
        if signal in run:
            made[signal] = {
                owner: _whole(ranks, run, signal, owner, copies) for owner in _owners(ranks, signal)
            }
    return replace(run, tables={**run.tables, **Run.of(made).tables})


def _owners(ranks: Ranks, signal: Signal) -> Sequence[str]:
    """Return the owners of a signal on any rank, in order."""
    found = [owner for rank in ranks.members if signal in rank.run for owner in rank.run[signal]]
    return tuple(dict.fromkeys(found))


def _whole(ranks: Ranks, run: Run, signal: Signal, owner: str, copies: float) -> Series:
    """Return the norm over all ranks, at the steps that were read here."""
    read = [rank.run[signal] for rank in ranks.members if signal in rank.run]
    parts = [table[owner] for table in read if owner in table and len(table[owner])]
    own = run[signal][owner] if owner in run[signal] else Series(_NO_STEPS, _NO_VALUES)
    steps = own.steps if len(own) else parts[0].steps if parts else _NO_STEPS
    if not len(steps):
        return own
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.sum([_at(part, steps) for part in parts], axis=0)
        return Series(steps, np.sqrt(squares / copies).astype(np.float32))


def _at(part: Series, steps: Steps) -> npt.NDArray[np.float64]:
    """Return the squared norm of a shard at some steps."""
    squares = part.values.astype(np.float64) ** 2
    finite = np.isfinite(squares)
    if not finite.any():
        return np.full(len(steps), np.nan)
    values = np.interp(steps, part.steps[finite], squares[finite])
    broken = part.steps[~finite]
    if len(broken):  # where it is not finite itself, the whole is not
        _, here, there = np.intersect1d(steps, broken, return_indices=True)
        values[here] = squares[~finite][there]
    return values


_NO_STEPS, _NO_VALUES = np.empty(0, np.int64), np.empty(0, np.float32)
