"""Cures: the loss after each change to the training, against the unchanged one."""

import math

from holter.diagnosis.facts.cures import cures_of
from holter.diagnosis.facts.tried import Effect, TriedChange
from holter.record.signals import CURE_LOSS
from holter.record.trials import UNCHANGED
from holter.reports.experiments import cures as cures_table
from holter.reports.html._drawings import curves, present
from holter.reports.html._markup import joined
from holter.reports.html._tables import table
from holter.reports.html._view import Drawing, Panel, View

TITLE = "Cures"
_KINDS = {Effect.CURES: "good", Effect.HELPS: "", Effect.WORSE: "error"}
_MOST_CURVES = 7  # beside the unchanged training


def panel(view: View) -> Panel | None:
    """Return the final loss under each change as bars, and the loss curves of the best."""
    cures = cures_of(view.run)
    if cures is None or not cures.tried:
        return None
    tried = [change for change in cures.tried.values() if change.ends]
    tried.sort(key=lambda change: (not math.isfinite(change.level), change.level))
    levels = [end.level for end in cures.unchanged if math.isfinite(end.level)]
    reference = None
    if levels:
        reference = {"value": sorted(levels)[len(levels) // 2], "text": "unchanged training"}
    bars = Drawing(
        "bars",
        {
            "items": [_bar(change) for change in tried],
            "reference": reference,
            "unit": "final loss",
            "label": "Final loss under each change",
        },
        "Final loss under each change",
        "bars: median of the repeats; lines: from the lowest to the highest repeat",
        is_wide=True,
    )
    recorded = view.run[CURE_LOSS]
    shown = (UNCHANGED, *(change.name for change in tried[:_MOST_CURVES]))
    losses = curves(
        {name: recorded[name] for name in shown if name in recorded},
        title="Loss under the changes that end lowest",
        unit="loss",
        own=True,
        is_wide=True,
    )
    below = joined(*(table(found) for found in cures_table.results(view.run)))
    return Panel(present(bars, losses), below=below)


def _bar(change: TriedChange) -> dict[str, object]:
    levels = [end.level for end in change.ends if math.isfinite(end.level)]
    several = len(levels) > 1
    return {
        "name": change.name,
        "value": change.level,
        "low": min(levels) if several else None,
        "high": max(levels) if several else None,
        "kind": _KINDS.get(change.effect, "muted"),
    }
