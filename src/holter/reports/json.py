"""The report for programs: a versioned JSON document, described by `schema-3.json`."""

import json
import math
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any

import numpy as np

from holter._version import __version__
from holter.diagnosis.checklist import rows
from holter.diagnosis.differential import diagnose
from holter.diagnosis.engine import Checkup
from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.outcome import Outcome
from holter.diagnosis.facts.replays import Replayed, Triage, replayed
from holter.record import Run
from holter.record.events import ExceptionRaised
from holter.record.findings import Clear, Evidence, Finding, Normal, NotExamined
from holter.record.typed import to_json
from holter.reports._evaluation import evaluation_document
from holter.reports._facts import cost
from holter.reports._next import next_command
from holter.reports._performance import performance
from holter.reports.experiments import ResultTable, all_results

SCHEMA = 3
MOST_READINGS = 2000  # of one piece of evidence


def json_schema() -> str:
    """Return the schema of the report, as JSON."""
    return (files("holter.reports") / f"schema-{SCHEMA}.json").read_text(encoding="utf-8")


def render(run: Run, checkup: Checkup, *, readings: bool = False) -> str:
    """Return the whole checkup and its diagnosis; NaN and infinities are strings.

    With `readings`, evidence carries the readings that it is made of.
    """
    told = document(run, checkup, readings=readings)
    return json.dumps(spelled(told), indent=2, allow_nan=False) + "\n"


def document(run: Run, checkup: Checkup, *, readings: bool = False) -> dict[str, Any]:
    """Return the report as plain dictionaries and lists."""
    diagnosis, spent = diagnose(checkup), cost(run)
    read = run if readings else None
    return {
        "schema": SCHEMA,
        "holter": __version__,
        "run": _run(run),
        "outcome": _outcome(checkup.outcome),
        "diagnosis": {
            "leading": None if diagnosis.leading is None else _finding(diagnosis.leading, read),
            "known": diagnosis.known,
            "explains": [_finding(finding, read) for finding in diagnosis.explained],
            "others": [_finding(finding, read) for finding in diagnosis.others],
            "ruled_out": _reasons(diagnosis.ruled_out),
            "unexamined": _reasons(diagnosis.unexamined),
            "experiments": list(diagnosis.experiments),
        },
        "next": next_command(run, checkup),
        "findings": [_finding(finding, read) for finding in checkup.findings],
        "normal": [_normal(normal, read) for normal in checkup.normal],
        "clear": _reasons(checkup.clear),
        "not_examined": _reasons(checkup.not_examined),
        "failures": list(checkup.failures),
        "checklist": [
            {
                "check": row.check.name,
                "question": row.check.question,
                "status": row.status.value,
                "says": row.says,
            }
            for row in (rows(run, checkup) if run.is_experiment else ())
        ],
        "evaluation": evaluation_document(Facts(run)),
        "experiments": [_table(table) for table in all_results(run)],
        "replay": _replay(replayed(run)),
        "cost": {"seconds": spent.seconds, "share": spent.share},
        "performance": performance(run),
    }


def _outcome(outcome: Outcome) -> dict[str, Any]:
    return {
        "state": str(outcome.state),
        "numbers": outcome.says,
        "bad": outcome.bad,
        "since": outcome.onset,
        "loss": {
            "first": outcome.first,
            "last": outcome.last,
            "best_constant": outcome.constant,
            "gain": outcome.gain,
            "validation": outcome.validation,
        },
        "accuracy": {
            "training": outcome.accuracy,
            "chance": outcome.chance_accuracy,
            "validation": outcome.validation_accuracy,
        },
    }


def _table(table: ResultTable) -> dict[str, Any]:
    chart = table.chart
    return {
        "experiment": table.experiment,
        "title": table.title,
        "columns": list(table.columns),
        "rows": [list(row) for row in table.rows],
        "notes": list(table.notes),
        "chart": None
        if chart is None
        else {
            "x": list(chart.x),
            "y": list(chart.y),
            "x_label": chart.x_label,
            "y_label": chart.y_label,
            "interval": None if chart.interval is None else list(chart.interval),
        },
    }


def _replay(replay: Replayed | None) -> dict[str, Any] | None:
    if replay is None:
        return None
    about, birth, cure, triage = replay.about, replay.birth, replay.proven_cure, replay.triage
    return {
        "reproduction": {
            "verdict": about.verdict,
            "says": about.says,
            "alarm": about.alarm,
            "first": about.state_step,
            "onset": about.onset,
            "failing": about.failing,
            "identical": about.same,
            "compared": about.compared,
            "repeatable": about.repeatable,
            "departs_at": about.departs_at,
            "tensor": about.tensor or None,
            "suspects": list(about.suspects),
            "edited": list(about.edited),
            "fatal_before": about.fatal_before or None,
        },
        "birth": None
        if birth is None
        else {
            "step": replay.born_at,
            "operation": birth.operation,
            "kind": birth.kind,
            "phase": birth.phase,
            "where": birth.where,
            "line": birth.line,
            "module": birth.module,
            "samples": list(birth.samples),
            "sample_count": birth.sample_count,
            "indices": list(birth.indices),
            "micro_batch": birth.micro_batch,
            "micro_batches": birth.micro_batches,
            "parameter": birth.parameter,
            "states": list(birth.states),
            "stepped_at": birth.stepped_at,
            "says": birth.says,
        },
        "ladder": [
            {
                "change": change.name,
                "family": str(change.family),
                "outcome": str(change.outcome),
                "says": change.says,
            }
            for change in replay.changes.values()
        ],
        "ladder_complete": replay.all_tried,
        "smallest_cure": None if cure is None else cure.name,
        "triage": None if triage is None else _triage(triage),
    }


def _triage(triage: Triage) -> dict[str, Any]:
    """Return the fields of the schema."""
    told = {"says": triage.says, **to_json(triage)}
    told.pop("outlies")  # what it means for a cure is in `smallest_cure`
    return told


def _run(run: Run) -> dict[str, Any]:
    meta, environment = run.meta, run.meta.environment
    return {
        "path": None if run.path is None else str(run.path),
        "rank": run.rank,
        "ranks": list(run.ranks),
        "steps": run.steps,
        "status": meta.status,
        "command": list(environment.command) or None,
        "started": environment.started,
        "duration": meta.duration,
        "model": to_json(meta.model) or None,
        "torch": environment.versions.get("torch"),
        "python": environment.python,
        "host": environment.machine.host or None,
        "git": environment.git
        and {"commit": environment.git.commit, "dirty": environment.git.dirty},
        "seed": meta.seed,
        "notes": list(meta.notes),
        "source": to_json(meta.source),
        "exceptions": [
            {"step": event.step, "type": event.what.type, "message": event.what.message}
            for event in run.events_of(ExceptionRaised)
        ],
    }


def _finding(finding: Finding, read: Run | None) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "severity": str(finding.severity),
        "confidence": str(finding.confidence),
        "level": str(finding.level),
        "preview": finding.preview,
        "confirmed_by": finding.confirmed_by or None,
        "place": finding.place or None,
        "summary": finding.summary,
        "onset": finding.onset,
        "evidence": [_evidence(reading, read) for reading in finding.evidence],
        "fix": finding.fix,
    }


def _normal(normal: Normal, read: Run | None) -> dict[str, Any]:
    return {
        "rule": normal.rule,
        "summary": normal.summary,
        "exception": normal.exception or None,
        "evidence": [_evidence(reading, read) for reading in normal.evidence],
    }


def _evidence(evidence: Evidence, read: Run | None) -> dict[str, Any]:
    return {
        "signal": evidence.signal.name,
        "owner": evidence.owner,
        "steps": list(evidence.steps),
        "says": evidence.says,
        "readings": None if read is None else readings_of(evidence, read),
    }


def readings_of(evidence: Evidence, run: Run) -> dict[str, list[Any]]:
    """Return the readings behind a piece of evidence; of many, evenly chosen ones and the last."""
    table = run.tables.get(evidence.signal.name)
    series = None if table is None else table.get(evidence.owner)
    if series is None or series.values.ndim > 1:
        return {"steps": [], "values": []}
    first, last = evidence.steps
    inside = np.flatnonzero((series.steps >= first) & (series.steps <= last))
    if len(inside) > MOST_READINGS:
        inside = inside[np.linspace(0, len(inside) - 1, MOST_READINGS).astype(np.intp)]
    return {"steps": series.steps[inside].tolist(), "values": series.values[inside].tolist()}


def _reasons(verdicts: Iterable[Clear | NotExamined]) -> list[dict[str, str]]:
    return [{"rule": verdict.rule, "because": verdict.because} for verdict in verdicts]


def spelled(value: Any) -> Any:
    """Return the value with NaN and infinities as strings, which JSON cannot hold as numbers."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): spelled(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [spelled(item) for item in value]
    return value
