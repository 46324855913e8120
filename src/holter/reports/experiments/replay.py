"""A replayed failure: whether it was reproduced, its origin, the changes, data or state."""

from holter.diagnosis.facts.replayed_changes import ChangeFamily
from holter.diagnosis.facts.replays import Replayed, replayed
from holter.diagnosis.wording import some
from holter.record import Run
from holter.reports.experiments import ResultTable

_NAME = "replay"
_SAMPLES = 8  # that are named


def results(run: Run) -> list[ResultTable]:
    """Return what the last replay of the run showed."""
    replay = replayed(run)
    if replay is None:
        return []
    notes = [replay.says]
    if replay.onset < replay.failing:
        before = replay.failing - replay.onset
        notes.append(f"abnormal from step {replay.onset} on, {before} steps before the failure")
    if replay.birth is not None:
        notes.append(replay.birth.says)
        if replay.birth.line:
            notes.append(f"{replay.birth.where}: `{replay.birth.line.strip()}`")
    tables = [ResultTable(_NAME, f"replay of step {replay.failing}", notes=tuple(notes))]
    changes = _changes(replay)
    return [*tables, changes] if changes.rows or changes.notes else tables


def _changes(replay: Replayed) -> ResultTable:
    rows = tuple(
        (change.name, str(change.outcome), change.says) for change in replay.changes.values()
    )
    notes = []
    if (cure := replay.proven_cure) is not None:
        notes.append(f"smallest change that cures it: {cure.name}")
    guards = [c.name for c in replay.changes.values() if c.family is ChangeFamily.GUARD]
    if guards and replay.birth is not None:
        notes.append(
            f"{guards[0]}: {replay.birth.operation} at {replay.birth.where} is guarded against"
            " operands outside its domain"
        )
    if replay.triage is not None:
        notes.append(replay.triage.says)
        if replay.triage.samples:
            names = some(list(map(str, replay.triage.samples)), limit=_SAMPLES)
            notes.append(f"samples of the batch that fail: {names}")
    return ResultTable(_NAME, "changes", ("change", "result", "details"), rows, tuple(notes))
