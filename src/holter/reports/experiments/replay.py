"""A replayed failure: whether it was reproduced, its origin, the interventions, data or state."""

from holter.diagnosis.facts.replays import Replayed, replayed
from holter.record import Run
from holter.reports.experiments import ResultTable

_NAME = "replay"


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
    interventions = _interventions(replay)
    return [*tables, interventions] if interventions.rows or interventions.notes else tables


def _interventions(replay: Replayed) -> ResultTable:
    rows = tuple((name, rung.outcome, rung.says) for name, rung in replay.rungs.items())
    notes = []
    if replay.ladder is not None and replay.ladder.minimal:
        notes.append(f"smallest change that cures it: {replay.ladder.minimal}")
    if replay.triage is not None:
        notes.append(replay.triage.says)
        if replay.triage.samples:
            names = ", ".join(map(str, replay.triage.samples))
            notes.append(f"samples of the batch that fail on their own: {names}")
    columns = ("intervention", "result", "details")
    return ResultTable(_NAME, "interventions", columns, rows, tuple(notes))
