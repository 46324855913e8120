"""Time per step: its phases, waiting for data, and holter itself."""

import numpy as np

from holter.diagnosis.signal_words import in_words
from holter.record.signals import CATALOGUE, WATCH_TIME, Signal
from holter.reports._facts import cost
from holter.reports.html._drawings import present, signal_curves
from holter.reports.html._view import Drawing, Panel, View

TITLE = "Time"
_FAMILY, _SECONDS = "time.", "s"


def panel(view: View) -> Panel | None:
    """Return the median time of every phase that was measured, and its course."""
    phases = [
        signal
        for name, signal in CATALOGUE.items()
        if name.startswith(_FAMILY) and signal.unit == _SECONDS and signal in view.run
    ]
    drawings = present(
        _medians(view, phases),
        signal_curves(view, *phases, title="Time of a step", unit="seconds per step"),
        signal_curves(view, WATCH_TIME, title="Cost of watching", unit="seconds per step"),
    )
    return Panel(drawings, f"{cost(view.run).says}.") if drawings else None


def _medians(view: View, phases: list[Signal]) -> Drawing | None:
    items = []
    for signal in phases:
        for owner, series in view.run[signal].items():
            if len(values := series.values[np.isfinite(series.values)]):
                name = ", ".join(filter(None, (in_words(signal), owner)))
                low, middle, high = (1e3 * np.quantile(values, (0.1, 0.5, 0.9))).tolist()
                items.append({"name": name, "value": middle, "low": low, "high": high})
    if len(items) < 2:
        return None
    title = "Time of the phases"
    note = "bars: median over the steps that were read; lines: from the 10th to the 90th percentile"
    data = {"items": items, "unit": "milliseconds per step", "label": title}
    return Drawing("bars", data, title, note, is_wide=True)
