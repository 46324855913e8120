"""Where a NaN or an infinity was at one step: in which parameters, and in which scalars."""

from typing import TYPE_CHECKING

import numpy as np

from holter.record.signals import Signal

if TYPE_CHECKING:
    from holter.diagnosis.facts import Facts


def nonfinite_owners(facts: "Facts", signal: Signal, step: int) -> tuple[str, ...]:
    """Owners, in model order, whose reading at `step` is not finite; none if it was not kept."""
    if signal not in facts.run:
        return ()
    rows = facts.run[signal].rows(step, step)
    bad = (rows.present & ~np.isfinite(rows.values)).any(axis=0)
    return tuple(rows.owners[column] for column in np.flatnonzero(bad))


def reading_at(facts: "Facts", signal: Signal, owner: str, step: int) -> float | None:
    """The reading of one owner at `step`, None where there is none."""
    series = facts.run[signal].get(owner) if signal in facts.run else None
    if series is None:
        return None
    values = series.values[series.steps == step]
    return float(values[-1]) if len(values) else None


def first_nonfinite(facts: "Facts", signal: Signal) -> int | None:
    """The first step at which the reading of any owner is not finite; None where all are."""
    tables = facts.run[signal].values() if signal in facts.run else ()
    lost = [each.steps[~np.isfinite(each.values)] for each in tables]
    return min((int(each[0]) for each in lost if len(each)), default=None)
