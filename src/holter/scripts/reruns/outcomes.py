"""The losses of a rerun, and the outcomes of its last steps."""

from collections.abc import Mapping
from math import isfinite

from holter.lab.replay.outcomes import ReplayTrial, StepOutcome
from holter.record import Run
from holter.record.band import WINDOW
from holter.record.signals import LOSS
from holter.scripts.reruns.attending import Attended, Rerun


def losses(run: Run) -> dict[int, float]:
    """Return the recorded loss of each step."""
    if LOSS not in run:
        return {}
    return {
        int(step): float(loss)
        for series in run[LOSS].values()
        for step, loss in zip(series.steps, series.values, strict=True)
    }


def before(known: Mapping[int, float], step: int) -> list[float]:
    """Return the finite losses of the steps shortly before one."""
    return [loss for own, loss in known.items() if step - WINDOW <= own < step and isfinite(loss)]


def last_steps(run: Run, seen: Attended, order: Rerun) -> ReplayTrial:
    """Return the last steps of a rerun, without those that it skipped."""
    rows: list[tuple[int, StepOutcome]] = []
    for kind, series in enumerate(run[LOSS].values() if LOSS in run else ()):
        for number, loss in zip(series.steps, series.values, strict=True):
            step = int(number)
            if step >= order.first and step not in order.skips:
                norm = seen.norms.get(str(step), 0.0)
                bad = step == seen.first_bad
                rows.append((step, StepOutcome(float(loss), norm, bad, kind)))
    rows.sort(key=lambda row: row[0])
    steps, outcomes = zip(*rows, strict=True) if rows else ((), ())
    return ReplayTrial(tuple(steps), tuple(outcomes), seen.error)
