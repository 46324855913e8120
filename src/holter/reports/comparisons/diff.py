"""Two runs compared, as text and as JSON."""

import json
import math
from collections.abc import Sequence
from typing import Any

from holter.diagnosis.comparing.runs import Change, Comparison
from holter.record.typed import to_json
from holter.reports._lines import BLANK, Line, hanging, painted
from holter.reports._numbers import count, number
from holter.reports._tables import table_lines
from holter.reports.experiments import Cell, ResultTable

_SHOWN = 8  # rows of a table, without --all


def render(
    comparison: Comparison,
    *,
    files: Sequence[str] = (),
    width: int = 96,
    color: bool = False,
    whole: bool = False,
) -> str:
    """Return the comparison as text; `files` is what changed between the two commits."""
    most = None if whole else _SHOWN
    lines: list[Line] = [*hanging(headline(comparison), width=width, lead=(("holter: ", "bold"),))]
    lines += [((f"  A  {comparison.a}", "dim"),), ((f"  B  {comparison.b}", "dim"),)]
    lines += _first(comparison, width, most)
    lines += _departures(comparison, width)
    for title, changes in (
        ("configuration", comparison.configuration),
        ("environment", comparison.environment),
        ("code", comparison.code),
    ):
        rows = tuple((change.name, change.a or "-", change.b or "-") for change in changes)
        lines += _table(title, ("", "A", "B"), rows, width, most)
    lines += [((f"  {line.strip()}", ""),) for line in files[: None if whole else _SHOWN]]
    if comparison.changed_files:
        names = ", ".join(comparison.changed_files)
        lines += hanging(f"uncommitted changes differ in {names}", width=width, lead=(("  ", ""),))
    lines += _table("at the end", ("", "A", "B"), comparison.ends, width, most)
    lines += _limits(comparison, width, whole)
    return painted(lines, color=color)


def render_json(comparison: Comparison, *, files: Sequence[str] = ()) -> str:
    """Return the comparison for programs; numbers that are not finite are strings."""
    document: dict[str, Any] = {
        "equal": comparison.is_equal,
        "a": comparison.a,
        "b": comparison.b,
        "steps": list(comparison.steps),
        "signals_compared": comparison.compared,
        "first_difference": [
            {
                "step": each.step,
                "signal": each.signal.name,
                "owner": each.owner,
                "phase": each.signal.phase.name.lower(),
                "a": _finite(each.a),
                "b": _finite(each.b),
            }
            for each in comparison.first
        ],
        "meaning": comparison.meaning or None,
        "beyond_noise": [
            {
                "step": each.step,
                "signal": each.signal.name,
                "owner": each.owner,
                "a": _finite(each.a),
                "b": _finite(each.b),
                "sigmas": _finite(each.sigmas),
            }
            for each in comparison.departures
        ],
        "configuration": _changes(comparison.configuration),
        "environment": _changes(comparison.environment),
        "code": _changes(comparison.code),
        "changed_between_commits": [line.strip() for line in files],
        "uncommitted_changes_differ_in": list(comparison.changed_files),
        "only_in_a": list(comparison.only[0]),
        "only_in_b": list(comparison.only[1]),
        "last_readings": [
            {"signal": name, "a": _finite(a), "b": _finite(b)} for name, a, b in comparison.ends
        ],
    }
    return json.dumps(document, indent=2) + "\n"


def headline(comparison: Comparison) -> str:
    """Return the result in one sentence."""
    steps, signals = min(comparison.steps), count(comparison.compared, "signal")
    if not comparison.compared or not steps:
        return "nothing to compare: the runs have no training step or no signal in common"
    if not comparison.first:
        same = f"the runs are equal bit for bit in {signals} over {count(steps, 'step')}"
        if comparison.steps[0] != comparison.steps[1]:
            longer = "A" if comparison.steps[0] > comparison.steps[1] else "B"
            more = abs(comparison.steps[0] - comparison.steps[1])
            return f"{same}; {longer} goes on for {count(more, 'step')} more"
        return same
    start = comparison.first[0].step
    says = (
        "the runs differ from the first step on"
        if start == 0
        else f"the runs are equal for {count(start, 'step')} and differ from step {start:,} on"
    )
    if comparison.departures:
        apart = comparison.departures[0]
        name = apart.signal.name
        return f"{says}; {name} deviates by more than batch noise from step {apart.step:,} on"
    return f"{says}, but by no more than batch noise"


def _first(comparison: Comparison, width: int, most: int | None) -> list[Line]:
    if not comparison.first:
        return []
    rows = tuple(
        (each.signal.phase.name.lower(), each.signal.name, each.owner, *_exact(each.a, each.b))
        for each in comparison.first
    )
    title = f"first difference, at step {comparison.first[0].step:,}"
    lines = _table(title, ("phase", "signal", "owner", "A", "B"), rows, width, most)
    if comparison.meaning:
        lines += hanging(comparison.meaning, width=width, lead=(("  ", ""),))
    return lines


def _departures(comparison: Comparison, width: int) -> list[Line]:
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (each.step, each.signal.name, each.owner, each.a, each.b, each.sigmas)
        for each in comparison.departures
    )
    columns = ("from step", "signal", "owner", "A", "B", "standard errors")
    return _table("beyond the noise between batches", columns, rows, width, None)


def _limits(comparison: Comparison, width: int, whole: bool) -> list[Line]:
    """Return what could not be compared."""
    lines: list[Line] = []
    a, b = comparison.steps
    if a != b:
        lines += hanging(
            f"A has {count(a, 'step')}, B has {b:,}; the first {min(a, b):,} were compared",
            width=width,
            lead=(("  ", ""),),
        )
    for run, names in zip("AB", comparison.only, strict=True):
        if names:
            shown = names if whole else names[:_SHOWN]
            more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
            text = f"only in {run}: {', '.join(shown)}{more}"
            lines += hanging(text, width=width, lead=(("  ", ""),))
    return [BLANK, (("not compared", "bold"),), *lines] if lines else []


def _table(
    title: str,
    columns: tuple[str, ...],
    rows: Sequence[tuple[Cell, ...]],
    width: int,
    most: int | None,
) -> list[Line]:
    if not rows:
        return []
    shown = ResultTable("diff", title, columns, tuple(rows))
    return [BLANK, *table_lines(shown, width, most_rows=most)]


def _exact(a: float, b: float) -> tuple[str, str]:
    """Return two numbers with as many digits as tell them apart."""
    if not (math.isfinite(a) and math.isfinite(b)):
        return number(a), number(b)
    for digits in range(3, 10):
        texts = f"{a:.{digits}g}", f"{b:.{digits}g}"
        if texts[0] != texts[1]:
            return texts
    return repr(a), repr(b)


def _changes(changes: Sequence[Change]) -> list[dict[str, Any]]:
    document: list[dict[str, Any]] = to_json(changes)
    return document


def _finite(value: float | None) -> float | str | None:
    return value if value is None or math.isfinite(value) else str(value)
