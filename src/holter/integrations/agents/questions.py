"""The questions of an agent about runs and logs below one folder, answered as plain data."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from holter.diagnosis.differential import diagnose
from holter.diagnosis.engine import Checkup, check, named_rule
from holter.imports import open_run
from holter.record import Run
from holter.record.errors import HolterError
from holter.record.folders import RUNS
from holter.record.journal import read_meta
from holter.record.meta import Meta
from holter.reports.json import document, spelled

_LONG = ("clear", "not_examined", "findings", "normal")  # parts that a short answer only counts
_MOST_RUNS = 100


class Questions:
    """Answers about what lies below `root`; anything else is refused. Nothing is written."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()

    def list_runs(self, folder: str = str(RUNS)) -> list[dict[str, Any]]:
        """List the recorded runs in a folder, the newest first: path, status, steps, start."""
        place = self._inside(folder)
        found = sorted(place.glob("*/meta.json"), key=_written, reverse=True)
        return [self._listed(path.parent) for path in found[:_MOST_RUNS]]

    def diagnose(self, path: str, *, everything: bool = False) -> dict[str, Any]:
        """Diagnose a recorded run, or a log of another tool: outcome, cause, evidence, fix, next.

        The log may be of TensorBoard, W&B, MLflow, Lightning, Transformers or Keras, a CSV table,
        JSON lines, or what a training printed. With `everything`, all findings and all rules that
        found nothing or could not be applied are listed, otherwise only counted.
        """
        run, checkup = self._checked(path)
        told: Mapping[str, Any] = spelled(document(run, checkup))
        if everything:
            return dict(told)
        short = {key: value for key, value in told.items() if key not in _LONG}
        return {**short, "counts": {key: len(told[key]) for key in _LONG}}

    def evidence(self, path: str, rule: str) -> list[dict[str, Any]]:
        """Return the findings of a rule in a run, with the readings behind each."""
        named_rule(rule)
        run, checkup = self._checked(path)
        told = spelled(document(run, checkup, readings=True))
        found = [finding for finding in told["findings"] if finding["rule"] == rule]
        if not found:
            raise HolterError(f"{rule} found nothing in {path}; {_verdict(checkup, rule)}.")
        return found

    def explain(self, rule: str) -> str:
        """Return the page of a rule: what it detects, why it matters, the fix, when it is wrong."""
        return named_rule(rule).doc

    def next_experiment(self, path: str) -> dict[str, Any]:
        """Return what would tell the most about a run now: the command, and the reason."""
        run, checkup = self._checked(path)
        diagnosis = diagnose(checkup)
        return {
            "command": document(run, checkup)["next"],
            "cause": None if diagnosis.leading is None else diagnosis.leading.rule,
            "known": diagnosis.known,
            "experiments": list(diagnosis.experiments) or [*filter(None, (checkup.advice,))],
            "not_examined": [verdict.rule for verdict in diagnosis.unexamined],
        }

    def _checked(self, path: str) -> tuple[Run, Checkup]:
        run = open_run(self._inside(path))
        return run, check(run)

    def _inside(self, path: str) -> Path:
        place = (self._root / path).resolve()
        if place != self._root and self._root not in place.parents:
            raise HolterError(
                f"{path} is outside of {self._root}, the only folder that may be read."
            )
        return place

    def _listed(self, folder: Path) -> dict[str, Any]:
        meta = Meta.of(read_meta(folder))
        return {
            "path": str(folder.relative_to(self._root)),
            "status": meta.status,
            "steps": meta.steps,
            "started": meta.environment.started,
            "command": list(meta.environment.command),
        }


def _written(path: Path) -> float:
    return path.stat().st_mtime


def _verdict(checkup: Checkup, rule: str) -> str:
    """Return why a rule has no finding."""
    for verdict in checkup.not_examined:
        if verdict.rule == rule:
            return f"it was not examined: {verdict.because}"
    for clear in checkup.clear:
        if clear.rule == rule and clear.because:
            return clear.because
    return "its condition is absent"
