"""Histograms of weights and gradients by magnitude, at a few steps of the run."""

import numpy as np

from holter.record.signals import GRAD_HISTOGRAM, WEIGHT_HISTOGRAM, Signal
from holter.record.signals.histograms import EXPONENTS, LOWEST, NONFINITE_BIN, ZERO_BIN
from holter.reports.html._view import Drawing, Panel, View

TITLE = "Histograms"
_MOST_STEPS = 16
_MOST_OWNERS = 300


def panel(view: View) -> Panel | None:
    """Return ridgelines of the magnitudes of weights and of gradients."""
    kinds = (
        (WEIGHT_HISTOGRAM, "Magnitudes of weights", "|weight|"),
        (GRAD_HISTOGRAM, "Magnitudes of gradients", "|gradient|"),
    )
    drawings = [drawing for kind in kinds if (drawing := _histograms(view, *kind)) is not None]
    return Panel(tuple(drawings)) if drawings else None


def _histograms(view: View, signal: Signal, title: str, unit: str) -> Drawing | None:
    if signal not in view.run:
        return None
    table = view.run[signal]
    owners = list(table)
    kept = owners
    if len(owners) > _MOST_OWNERS:
        marked = {mark["owner"] for mark in view.marks(signal)}
        spread = np.linspace(0, len(owners) - 1, _MOST_OWNERS).astype(int)
        kept = [owner for n, owner in enumerate(owners) if n in set(spread) or owner in marked]
    rows = table.rows()
    if not len(rows.steps):
        return None
    chosen = np.linspace(0, len(rows.steps) - 1, min(len(rows.steps), _MOST_STEPS))
    at = np.unique(chosen.round().astype(int))
    column = {owner: place for place, owner in enumerate(rows.owners)}
    places = np.array([column[owner] for owner in kept], np.intp)
    shares = np.where(rows.present, rows.values, 0.0)[np.ix_(at, places)].swapaxes(0, 1)
    used = np.flatnonzero(shares[:, :, :EXPONENTS].any((0, 1)))
    first, last = (int(used[0]), int(used[-1])) if len(used) else (0, EXPONENTS - 1)
    notes = []
    if len(at) < len(rows.steps):
        notes.append(f"{len(at)} of {len(rows.steps):,} recorded steps")
    if len(kept) < len(owners):
        notes.append(f"{len(kept)} of {len(owners):,} parameters")
    return Drawing(
        "histograms",
        {
            "names": kept,
            "steps": rows.steps[at],
            "edges": [2.0 ** (LOWEST + edge) for edge in range(first, last + 2)],
            "shares": np.ascontiguousarray(shares[:, :, first : last + 1]),
            "zeros": np.ascontiguousarray(shares[:, :, ZERO_BIN]),
            "nonfinite": np.ascontiguousarray(shares[:, :, NONFINITE_BIN]),
            "unit": unit,
            "label": title,
        },
        title,
        "; ".join(notes),
    )
