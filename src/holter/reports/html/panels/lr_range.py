"""The learning-rate range test: loss over the learning rate, and the suggestion."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from holter.diagnosis.facts.rate_range import RangeTest, read
from holter.diagnosis.facts.robust import Values
from holter.record.signals import LR_RANGE_CONFIGURED, LR_RANGE_RATE, LR_RANGE_START
from holter.reports._numbers import number
from holter.reports.html._view import Drawing, Mark, Panel, View

TITLE = "Learning-rate range test"


def panel(view: View) -> Panel | None:
    """Return the sweeps, and the short trainings at single rates."""
    run = view.run
    if any(signal not in run for signal in (LR_RANGE_RATE, LR_RANGE_START, LR_RANGE_CONFIGURED)):
        return None
    test = read(run)
    if test.broken:
        return Panel(intro=f"No curve: {test.broken}.")
    sweeps: list[Mapping[str, Any]] = [
        {"name": f"sweep {n}", "steps": sweep.rates, "values": _within(test, sweep.curve)}
        for n, sweep in enumerate(test.sweeps, 1)
    ]
    cut = f"smoothed; losses above {number(_ceiling(test))} are drawn there"
    drawings = [_chart("Sweeps from the same start", sweeps, test, note=cut)]
    if kept := [trial for trial in test.trials if np.isfinite(trial.level)]:
        trained = {
            "name": "short trainings",
            "steps": np.array([trial.rate for trial in kept]),
            "values": np.array([trial.level for trial in kept]),
        }
        drawings.append(_chart("Short trainings from the same start", [trained], test, log=True))
    return Panel(tuple(drawings), test.problem and f"No suggestion: {test.problem}.")


def _chart(
    title: str,
    series: list[Mapping[str, Any]],
    test: RangeTest,
    *,
    log: bool = False,
    note: str = "",
) -> Drawing:
    data = {
        "series": series,
        "marks": _marks(test),
        "references": [{"value": test.level, "text": "at the start"}],
        "xLog": True,
        "xLabel": "learning rate",
        "unit": "loss of the held batches",
        "label": title,
        "log": log,
        "own": True,
    }
    return Drawing("lines", data, title, note)


def _marks(test: RangeTest) -> list[Mark]:
    marks: list[Mark] = []
    if not test.problem:
        good = test.suggestion
        text = (
            f"suggestion {number(good.rate)}, good from {number(good.low)} to {number(good.high)}"
        )
        marks.append({"from": good.low, "to": good.high, "kind": "info", "text": text})
    peak = test.configured["peak"]
    marks.append({"from": peak, "to": peak, "kind": "onset", "text": f"configured {number(peak)}"})
    return marks


def _ceiling(test: RangeTest) -> float:
    """Return the loss above which a sweep has diverged: as far above the start as it fell."""
    return test.level + max(test.fall[0], 1e-12)


def _within(test: RangeTest, curve: Values) -> Values:
    return np.minimum(curve, _ceiling(test))
