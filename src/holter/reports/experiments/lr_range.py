"""The learning-rate range test: what it suggests, by which estimators, what was confirmed."""

import numpy as np

from holter.diagnosis.facts.rate_range import RangeTest, read
from holter.diagnosis.facts.sweep import ESTIMATORS
from holter.record import Run
from holter.record.events import LrRangeNote, LrRangeStop
from holter.record.signals import LR_RANGE_CONFIGURED, LR_RANGE_RATE, LR_RANGE_START
from holter.reports._chart import chart
from holter.reports._lines import Line, hanging

_COLUMN = 14
_WHY = {
    "end": "the highest",
    "diverged": "diverged",
    "not finite": "not finite",
    "skipped": "all steps skipped by the loss scaler",
}
_WIDEST = 72  # columns of the chart
_BAR, _BESIDE = 24, 49  # characters of a full gain, and of what stands in its line


def lines(run: Run, width: int) -> list[Line]:
    """What `lr-range` measured."""
    if any(each not in run for each in (LR_RANGE_RATE, LR_RANGE_START, LR_RANGE_CONFIGURED)):
        return []
    test = read(run)
    found: list[Line] = [(("learning-rate range test", "bold"),)]
    if test.problem:
        found += _item("no suggestion", test.problem, width)
    else:
        found += _item("suggestion", _suggestion(test), width)
        found += _item("configured", _configured(test), width)
        found += _item("diverges", _diverges(test), width)
        found += _table("estimators", _estimates(test))
        found += _table("confirmed", _confirmed(test, min(width - _BESIDE, _BAR)))
    if stops := _stops(run):
        found += _item("sweeps", stops, width)
    for event in run.events_of(LrRangeNote):
        found += _item("note", event.what.note, width)
    return found if test.broken else found + _chart(test, min(width, _WIDEST))


def _stops(run: Run) -> str:
    """Where each sweep ended, and why."""
    stops = [event.what for event in run.events_of(LrRangeStop)]
    ends = [f"{stop.rate or 0:.2g} ({_WHY.get(stop.why, stop.why)})" for stop in stops]
    return f"ended at {', '.join(ends)}" if ends else ""


def _suggestion(test: RangeTest) -> str:
    good = test.suggestion
    if not test.trials:
        return f"{good.rate:.2g}; {good.low:.2g} to {good.high:.2g} over {len(test.sweeps)} sweeps"
    return f"{good.rate:.2g}; {good.low:.2g} to {good.high:.2g} gain at least 95 % of the best"


def _configured(test: RangeTest) -> str:
    peak = test.configured["peak"]
    trial = test.trial_at(peak)
    said = f"{peak:.3g}"
    if test.configured["now"] < peak:
        said += f" at its peak, {test.configured['now']:.2g} now"
    if trial is None:
        return said
    if not np.isfinite(trial.level):
        return f"{said}, with which the loss is soon not finite"
    if trial.level > test.level:
        return f"{said}, with which the loss rises to {trial.level:.4g}"
    return f"{said}, gains {test.gain(trial) / test.gain(test.best):.0%} of the best"


def _diverges(test: RangeTest) -> str:
    if not np.isfinite(test.diverges):
        return f"not up to {max(float(each.rates[-1]) for each in test.sweeps):.2g}"
    return f"from {test.diverges:.2g} on the loss is above where it began, {test.level:.4g}"


def _estimates(test: RangeTest) -> list[str]:
    told = []
    for name in ESTIMATORS:
        rates = test.rates(name)
        middle = float(np.median(rates))
        value = f"{middle:.2g}" if np.isfinite(middle) else "-"
        span = f"{min(rates):.2g} .. {max(rates):.2g}" if np.isfinite(middle) else ""
        told.append(f"{name:<17}{value:<9}{span}")
    return told


def _confirmed(test: RangeTest, bar: int) -> list[str]:
    best = test.gain(test.best) if test.trials else 0.0
    told = []
    for trial in test.trials:
        share = max(test.gain(trial) / best, 0.0)
        value = f"{trial.level:.4g}" if np.isfinite(trial.level) else "not finite"
        mark = "  configured" if trial is test.trial_at(test.configured["peak"]) else ""
        told.append(f"{trial.rate:<9.2g}{value:<12}{'━' * round(bar * share)}{mark}")
    return told


def _chart(test: RangeTest, width: int) -> list[Line]:
    """The held loss over the rate, the mean of the sweeps, cut off where it rises far."""
    last = min(float(each.rates[-1]) for each in test.sweeps)
    places = np.log10(test.sweeps[0].rates[test.sweeps[0].rates <= last])
    curves = [
        np.interp(places, np.log10(each.rates), each.curve, left=test.level) for each in test.sweeps
    ]
    mean = np.minimum(np.mean(curves, axis=0), test.level + max(test.fall[0], 0.0))
    drawn = chart(
        places.tolist(), mean.tolist(), width=width, height=6, label="log10 of the learning rate"
    )
    if not drawn or test.problem:
        return drawn
    axis = drawn[-1][0][0]
    margin = len(axis) - len(axis.lstrip())
    return [*drawn[:-1], _marks(test, places[0], places[-1], margin, width - margin), drawn[-1]]


def _marks(test: RangeTest, first: float, last: float, margin: int, columns: int) -> Line:
    """The interval and the suggestion, under the curve."""
    good = test.suggestion
    low, at, high = (
        round((columns - 1) * float(np.clip((np.log10(each) - first) / (last - first), 0, 1)))
        for each in (good.low, good.rate, good.high)
    )
    row = [" "] * columns
    row[low : high + 1] = "─" * (high + 1 - low)
    row[low], row[high], row[at] = "├", "┤", "▲"
    return ((" " * margin, ""), ("".join(row).rstrip(), "green"))


def _item(label: str, text: str, width: int) -> list[Line]:
    return hanging(text, width=width, lead=((f"  {label:<{_COLUMN}}", "dim"),))


def _table(label: str, rows: list[str]) -> list[Line]:
    labels = [label] + [""] * (len(rows) - 1)
    pairs = zip(labels, rows, strict=True) if rows else ()
    return [((f"  {name:<{_COLUMN}}", "dim"), (row, "")) for name, row in pairs]
