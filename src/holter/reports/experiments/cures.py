"""Changes to a failed training: which of them restore learning."""

import math

from holter.diagnosis.facts.cures import Cures, cures_of
from holter.diagnosis.facts.tried import Effect, TriedChange
from holter.record import Run
from holter.reports.experiments import ResultTable

_ORDER = (Effect.CURES, Effect.HELPS, Effect.NONE, Effect.WORSE, Effect.FAILED, Effect.IDLE)


def results(run: Run) -> list[ResultTable]:
    """Return every change that was tried and its effect; none if the training did not fail."""
    cures = cures_of(run)
    if cures is None or not cures.tried:
        return []
    changes = sorted(cures.tried.values(), key=lambda each: (_ORDER.index(each.effect), -each.gain))
    rows = tuple(_row(change) for change in changes if change.effect is not Effect.IDLE)
    title = f"cures: the training repeated under {len(cures.tried)} changes"
    columns = ("change", "result", "loss", "unchanged", "repeats")
    return [ResultTable("cures", title, columns, rows, tuple(_notes(cures)))]


def _row(change: TriedChange) -> tuple[str, str, float | None, float | None, int]:
    return (
        change.name,
        str(change.effect),
        _finite(change.level),
        _finite(change.instead),
        len(change.ends),
    )


def _notes(cures: Cures) -> list[str]:
    notes = []
    if (change := cures.improvement) is not None:
        notes.append(f"smallest change that makes the training learn far more: {change.name}")
    elif (change := cures.smallest) is not None:
        notes.append(f"smallest change that restores learning: {change.name}")
    elif (change := cures.localising) is not None:
        notes.append(f"the fault is in the {change.cause.part}: {change.name} restores learning")
    if idle := cures.with_effect(Effect.IDLE):
        notes.append(f"nothing to change: {', '.join(idle)}")
    if cures.untried:
        notes.append(f"not tried (out of time): {', '.join(cures.untried)}")
    return notes


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
