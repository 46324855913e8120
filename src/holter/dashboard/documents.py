"""What the pages show of runs, as plain dictionaries and lists."""

import json
from collections.abc import Sequence
from typing import Any

from holter.dashboard.commands import next_commands, working_directory
from holter.dashboard.encoding import plain_finding, plain_series
from holter.dashboard.library import Alert, Checked, Entry
from holter.diagnosis.differential import diagnose
from holter.diagnosis.engine import all_rules
from holter.record import Run
from holter.record.signals import CATALOGUE, Per, Signal
from holter.reports.html import content_of
from holter.reports.html._sampling import thinned

_POINTS = 1500  # of a curve in a comparison
_MOST_OWNERS = 6  # of one run in a comparison
_OVERALL = (Per.STEP, Per.OPTIMIZER, Per.GROUP, Per.MODEL, Per.LOSS_FUNCTION)


def row(entry: Entry, checked: Checked | None) -> dict[str, Any]:
    """Return a run of the list; without a checkup its name alone."""
    fields: dict[str, Any] = {
        "id": entry.id,
        "name": entry.name,
        "version": entry.version,
        "written": entry.written,
    }
    if checked is None:
        return fields
    summary = checked.summary
    return {
        **fields,
        "status": summary.status,
        "steps": summary.steps,
        "started": summary.started,
        "duration": summary.duration,
        "command": list(summary.command),
        "state": summary.state,
        "numbers": summary.numbers,
        "bad": summary.bad,
        "ended": summary.ended,
        "remark": summary.remark,
        "cause": summary.cause,
        "leading": None if summary.leading is None else plain_finding(summary.leading),
        "curve": plain_series(summary.curve),
        "error": summary.error,
    }


def alert(each: Alert) -> dict[str, Any]:
    """Return a finding that appeared while its run was shown."""
    return {
        "number": each.number,
        "id": each.id,
        "name": each.name,
        "at": each.at,
        **plain_finding(each.finding),
    }


def report(entry: Entry, run: Run, checked: Checked) -> dict[str, Any]:
    """Return the sections of the report with their charts, and the next experiments."""
    content = content_of(run, checked.checkup)
    return {
        "run": row(entry, checked),
        "steps": run.steps,
        "links": [list(each) for each in content.links],
        "main": str(content.main),
        "drawings": json.loads(content.figures.drawings),
        "arrays": content.figures.arrays,
        "rules": list(all_rules()),
        "next": _experiments(run, checked),
    }


def _experiments(run: Run, checked: Checked) -> dict[str, Any]:
    """Return the exact commands of the next experiments."""
    diagnosis = diagnose(checked.checkup)
    return {
        "folder": working_directory(run),
        "commands": [
            {"command": each.command, "why": each.why}
            for each in next_commands(run, diagnosis, bad=checked.checkup.outcome.bad)
        ],
    }


def comparison(runs: Sequence[tuple[Entry, Run]], name: str) -> dict[str, Any]:
    """Return one signal of several runs, and the signals that could be compared instead."""
    signals = _comparable([run for _, run in runs])
    signal = next((each for each in signals if each.name == name), None)
    series = []
    for entry, run in runs:
        if signal is None or signal not in run:
            continue
        owners = list(run[signal])[:_MOST_OWNERS]
        for owner in owners:
            label = entry.name if len(owners) == 1 or not owner else f"{entry.name} · {owner}"
            curve = plain_series(thinned(run[signal][owner], most=_POINTS))
            series.append({"id": entry.id, "name": label, **curve})
    return {
        "signals": [{"name": each.name, "doc": each.doc} for each in signals],
        "signal": None if signal is None else signal.name,
        "unit": "" if signal is None else signal.unit,
        "series": series,
    }


def _comparable(runs: Sequence[Run]) -> list[Signal]:
    """Return the signals of whole trainings that at least one of the runs has."""
    return [
        signal
        for signal in CATALOGUE.values()
        if signal.per in _OVERALL
        and signal.bins == 1
        and not signal.rare
        and any(signal in run for run in runs)
    ]
