"""Where a NaN or an infinity appeared first: at which step, in which parameters."""

from collections.abc import Container
from typing import TYPE_CHECKING

import numpy as np

from holter.record.signals import Signal

if TYPE_CHECKING:
    from holter.diagnosis.facts import Facts


def nonfinite_owners(facts: "Facts", signal: Signal, step: int) -> tuple[str, ...]:
    """Return the owners, in model order, whose reading at `step` was kept and is not finite."""
    if signal not in facts.run:
        return ()
    rows = facts.run[signal].rows(step, step)
    bad = (rows.present & ~np.isfinite(rows.values)).any(axis=0)
    return tuple(rows.owners[column] for column in np.flatnonzero(bad))


def reading_at(facts: "Facts", signal: Signal, owner: str, step: int) -> float | None:
    """Return the reading of one owner at `step`, or None."""
    series = facts.run[signal].get(owner) if signal in facts.run else None
    if series is None:
        return None
    values = series.values[series.steps == step]
    return float(values[-1]) if len(values) else None


def first_nonfinite(
    facts: "Facts", signal: Signal, *, except_for: Container[str] = ()
) -> int | None:
    """Return the first step at which the reading of any owner is not finite, or None."""
    if signal not in facts.run:
        return None
    steps = [
        int(series.steps[~np.isfinite(series.values)][0])
        for owner, series in facts.run[signal].items()
        if owner not in except_for and not np.isfinite(series.values).all()
    ]
    return min(steps, default=None)
