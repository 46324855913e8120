"""The learning-rate range test: the suggestion, the estimators, and the short trainings."""

import numpy as np

from holter.diagnosis.facts.rate_range import RangeTest, read
from holter.diagnosis.facts.sweep import ESTIMATORS
from holter.record import Run
from holter.record.events import LrRangeNote, LrRangeStop
from holter.record.signals import LR_RANGE_CONFIGURED, LR_RANGE_RATE, LR_RANGE_START
from holter.reports.experiments import Cell, Chart, ResultTable

_NAME = "lr-range"
_WHY = {
    "end": "the highest",
    "diverged": "diverged",
    "not finite": "not finite",
    "skipped": "all steps skipped by the loss scaler",
}


def results(run: Run) -> list[ResultTable]:
    """Return the suggestion with its chart, the estimators, and the short trainings."""
    if any(signal not in run for signal in (LR_RANGE_RATE, LR_RANGE_START, LR_RANGE_CONFIGURED)):
        return []
    test = read(run)
    notes = [f"no suggestion: {test.problem}"] if test.problem else []
    notes += _stops(run)
    notes += [event.what.note for event in run.events_of(LrRangeNote)]
    summary = ResultTable(
        _NAME,
        "learning-rate range test",
        ("quantity", "rate", "note"),
        () if test.problem else (_suggestion(test), _configured(test), _diverges(test)),
        tuple(notes),
        None if test.broken else _chart(test),
    )
    return [summary] if test.problem else [summary, _estimators(test), *_confirmed(test)]


def _stops(run: Run) -> list[str]:
    """Return where each sweep ended, and why."""
    stops = [event.what for event in run.events_of(LrRangeStop)]
    ends = [f"{stop.rate or 0:.2g} ({_WHY.get(stop.why, stop.why)})" for stop in stops]
    return [f"sweeps ended at {', '.join(ends)}"] if ends else []


def _suggestion(test: RangeTest) -> tuple[Cell, ...]:
    good = test.suggestion
    span = f"{good.low:.2g} to {good.high:.2g}"
    if not test.trials:
        return "suggestion", good.rate, f"{span} over {len(test.sweeps)} sweeps"
    return "suggestion", good.rate, f"{span} reach at least 95 % of the best gain"


def _configured(test: RangeTest) -> tuple[Cell, ...]:
    peak, now = test.configured["peak"], test.configured["now"]
    notes = [f"the peak; {now:.2g} now"] if now < peak else []
    trial = test.trial_at(peak)
    if trial is not None:
        if not np.isfinite(trial.level):
            notes.append("the loss soon becomes non-finite")
        elif trial.level > test.level:
            notes.append(f"the loss rises to {trial.level:.3g}")
        else:
            notes.append(f"{test.gain(trial) / test.gain(test.best):.0%} of the best gain")
    return "configured", peak, "; ".join(notes)


def _diverges(test: RangeTest) -> tuple[Cell, ...]:
    if not np.isfinite(test.diverges):
        highest = max(float(sweep.rates[-1]) for sweep in test.sweeps)
        return "diverges", None, f"not up to {highest:.2g}"
    return (
        "diverges",
        test.diverges,
        f"from here on the loss is above its initial value, {test.level:.3g}",
    )


def _estimators(test: RangeTest) -> ResultTable:
    rows: list[tuple[Cell, ...]] = []
    for name in ESTIMATORS:
        rates = test.rates(name)
        middle = float(np.median(rates))
        finite = bool(np.isfinite(middle))
        rows.append((name, *((middle, min(rates), max(rates)) if finite else (None,) * 3)))
    return ResultTable(
        _NAME, "estimators", ("estimator", "median", "lowest", "highest"), tuple(rows)
    )


def _confirmed(test: RangeTest) -> list[ResultTable]:
    if not test.trials:
        return []
    best, configured = test.gain(test.best), test.trial_at(test.configured["peak"])
    rows = tuple(
        (
            trial.rate,
            trial.level,
            round(100 * max(test.gain(trial) / best, 0.0)) if np.isfinite(trial.level) else 0,
            "configured" if trial is configured else None,
        )
        for trial in test.trials
    )
    columns = ("rate", "loss", "% of the best gain", "")
    return [ResultTable(_NAME, "short trainings from the same start", columns, rows)]


def _chart(test: RangeTest) -> Chart:
    """Return the mean held loss of the sweeps over the rate, cut off where it rises far."""
    last = min(float(sweep.rates[-1]) for sweep in test.sweeps)
    places = np.log10(test.sweeps[0].rates[test.sweeps[0].rates <= last])
    curves = [
        np.interp(places, np.log10(sweep.rates), sweep.curve, left=test.level)
        for sweep in test.sweeps
    ]
    mean = np.minimum(np.mean(curves, axis=0), test.level + max(test.fall[0], 0.0))
    good = None if test.problem else test.suggestion
    interval = None if good is None else np.log10((good.low, good.rate, good.high)).tolist()
    return Chart(
        tuple(places.tolist()),
        tuple(mean.tolist()),
        "log10 of the learning rate",
        "loss of the held batches",
        None if interval is None else (interval[0], interval[1], interval[2]),
    )
