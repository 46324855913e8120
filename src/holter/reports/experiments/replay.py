"""A replayed failure: whether it was reproduced, its origin, the interventions, data or state."""

from typing import Any

from holter.record import Run
from holter.reports.experiments import ResultTable

_NAME = "replay"


def results(run: Run) -> list[ResultTable]:
    """Return what the last replay of the run showed."""
    told = _last(run, "reproduction")
    if told is None:
        return []
    notes = [told["says"]]
    if told["onset"] < told["failing"]:
        before = told["failing"] - told["onset"]
        notes.append(f"abnormal from step {told['onset']} on, {before} steps before the failure")
    if (birth := _last(run, "birth")) is not None:
        notes.append(birth["birth"]["says"])
        where = birth["birth"]
        if where["line"]:
            notes.append(f"{where['where']}: `{where['line'].strip()}`")
    tables = [ResultTable(_NAME, f"replay of step {told['failing']}", notes=tuple(notes))]
    interventions = _interventions(run)
    if interventions.rows or interventions.notes:
        tables.append(interventions)
    return tables


def _interventions(run: Run) -> ResultTable:
    rows = tuple((each["name"], each["outcome"], each["says"]) for each in _since(run, "rung"))
    notes = []
    if (ladder := _last(run, "ladder")) is not None and ladder["minimal"]:
        notes.append(f"smallest change that cures it: {ladder['minimal']}")
    if (triage := _last(run, "triage")) is not None:
        notes.append(triage["says"])
        if triage["samples"]:
            names = ", ".join(map(str, triage["samples"]))
            notes.append(f"samples of the batch that fail on their own: {names}")
    columns = ("intervention", "result", "details")
    return ResultTable(_NAME, "interventions", columns, rows, tuple(notes))


def _last(run: Run, kind: str) -> Any:
    """Return the data of the last event of a kind, from the last replay, or None."""
    found = _since(run, kind)
    return found[-1] if found else None


def _since(run: Run, kind: str) -> list[Any]:
    places = [n for n, event in enumerate(run.events) if event.kind == "reproduction"]
    first = places[-1] if places else 0
    return [event.data for event in run.events[first:] if event.kind == kind]
