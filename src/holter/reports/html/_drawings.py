"""Drawings of signals: curves over steps, and heat maps of layers over steps."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from holter.diagnosis.signal_words import in_words
from holter.record.signals import Signal
from holter.record.table import Series
from holter.reports.html._sampling import Thinned, grid_of, thinned
from holter.reports.html._view import Drawing, Mark, View

_STEEP = 30.0  # ratio of readings above which a log axis shows more
_MOST_SERIES = 24  # of one chart
_CHOSEN = 5  # layers whose curves are shown before the reader chooses


def curves(
    series: Mapping[str, Series],
    *,
    title: str,
    unit: str = "",
    marks: Iterable[Mark] = (),
    references: Iterable[tuple[float, str]] = (),
    log: bool | None = None,
    is_wide: bool = False,
    **options: Any,
) -> Drawing | None:
    """Return a line chart of named series, or None if they hold no reading.

    The axis is logarithmic where positive readings span far more than a decade, unless `log` says.
    """
    read = {name: thinned(one) for name, one in series.items() if len(one)}
    if not read:
        return None
    left_out = len(read) - _MOST_SERIES
    shown = dict(list(read.items())[:_MOST_SERIES])
    notes = [thinning(shown.values())]
    if left_out > 0:
        notes.append(f"{left_out} more series are not drawn")
    return Drawing(
        "lines",
        {
            "series": [_series(name, one) for name, one in shown.items()],
            "marks": list(marks),
            "references": [{"value": value, "text": text} for value, text in references],
            "unit": unit,
            "label": title,
            "log": _is_steep(shown.values()) if log is None else log,
            **options,
        },
        title,
        "; ".join(filter(None, notes)),
        is_wide,
    )


def signal_curves(
    view: View, *signals: Signal, title: str, unit: str = "", **options: Any
) -> Drawing | None:
    """Return a line chart of all owners of some signals, with the evidence in them."""
    recorded = [signal for signal in signals if signal in view.run]
    series = {
        named(signal, owner, alone=len(recorded) == 1): one
        for signal in recorded
        for owner, one in view.run[signal].items()
    }
    marks = [mark for signal in recorded for mark in view.marks(signal)]
    return curves(series, title=title, unit=unit, marks=marks, **options)


def layers(
    view: View,
    signal: Signal,
    *,
    title: str,
    unit: str,
    log: bool = True,
    domain: tuple[float, float] | None = None,
    row: str = "parameter",
    note: str = "",
    is_folded: bool = False,
) -> Drawing | None:
    """Return a heat map of a signal of parameters or modules, with curves of chosen rows."""
    if signal not in view.run:
        return None
    grid = grid_of(view.run[signal])
    if not len(grid.steps) or not grid.owners:
        return None
    place = {owner: number for number, owner in enumerate(grid.owners)}
    marks = [
        {**mark, "row": place[mark["owner"]]}
        for mark in view.marks(signal)
        if mark["owner"] in place
    ]
    drawn = "" if grid.is_exact else _folded(grid.recorded, len(grid.steps))
    data = {
        "rows": list(grid.owners),
        "steps": grid.steps,
        "end": max(grid.end, view.run.steps),
        "high": grid.high,
        "marks": marks,
        "unit": unit,
        "log": log,
        "domain": domain,
        "rowLabel": row,
        "label": title,
        "chosen": _chosen(len(grid.owners), [mark["row"] for mark in marks]),
    }
    if not grid.is_exact:
        data["low"] = grid.low
    note = "; ".join(filter(None, (note, drawn)))
    return Drawing("layers", data, title, note, is_wide=True, is_folded=is_folded)


def present(*drawings: Drawing | None) -> tuple[Drawing, ...]:
    """Return the drawings that have readings."""
    return tuple(drawing for drawing in drawings if drawing is not None)


def named(signal: Signal, owner: str, *, alone: bool) -> str:
    """Return the name of a series: its owner if the chart is of one signal."""
    if alone and owner:
        return owner
    return ", ".join(filter(None, (in_words(signal), owner)))


def thinning(series: Iterable[Thinned]) -> str:
    """Return a sentence on what was left out; empty if nothing was."""
    shortened = [one for one in series if len(one.steps) < one.recorded]
    if not shortened:
        return ""
    longest = max(shortened, key=lambda one: one.recorded)
    return (
        f"{len(longest.steps):,} of {longest.recorded:,} readings are drawn: the smallest and"
        " largest of equal parts, and every part's NaN and infinities; the strong line is the mean"
    )


def _series(name: str, one: Thinned) -> dict[str, Any]:
    drawn: dict[str, Any] = {"name": name, "steps": one.steps, "values": one.values}
    if one.middle is not None:
        drawn["middle"] = {"steps": one.middle.steps, "values": one.middle.values}
    return drawn


def _folded(recorded: int, columns: int) -> str:
    return (
        f"{recorded:,} steps with readings in {columns:,} columns: a cell is the largest of its"
        " readings, NaN if any is; curves show the smallest and the largest"
    )


def _chosen(count: int, evidence: list[int]) -> list[int]:
    """Return the rows with evidence, then rows spread over the depth."""
    spread = np.linspace(0, count - 1, min(count, _CHOSEN)).round().astype(int).tolist()
    return list(dict.fromkeys([*evidence, *spread]))[:_CHOSEN]


def _is_steep(series: Iterable[Thinned]) -> bool:
    values = np.concatenate([one.values for one in series])
    values = values[np.isfinite(values)]
    if not len(values) or values.min() < 0:
        return False
    values = values[values > 0]
    return bool(len(values) and values.max() > _STEEP * values.min())
