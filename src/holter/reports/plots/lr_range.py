"""Plot of a learning-rate range test: the sweeps, and the losses of the short trainings."""

from pathlib import Path
from typing import Any

import numpy as np

from holter.diagnosis.facts.rate_range import RangeTest, RateTrial, read
from holter.diagnosis.facts.sweep import ESTIMATORS
from holter.record import Run
from holter.record.errors import HolterError
from holter.record.signals import LR_RANGE_CONFIGURED, LR_RANGE_RATE, LR_RANGE_START
from holter.reports.plots._figure import figure

_ROOM = 0.25  # of the fall, above the start, that is drawn
_FEW_DECADES = 1.5  # that have room for three ticks each
_MOST_TICKS = 7


def draw(run: Run, path: Path) -> None:
    """Write the results of `holter try lr-range` to a PNG file."""
    if any(signal not in run for signal in (LR_RANGE_RATE, LR_RANGE_START, LR_RANGE_CONFIGURED)):
        raise HolterError("This run has no range test; `holter try lr-range SCRIPT` runs one.")
    test = read(run)
    if test.broken:
        raise HolterError(f"Nothing to plot: {test.broken}.")
    with figure(path, 2 if test.trials else 1) as axes:
        _sweeps(test, axes[0])
        if test.trials:
            _trials(test, axes[1])


def _sweeps(test: RangeTest, axes: Any) -> None:
    for number, sweep in enumerate(test.sweeps):
        axes.plot(sweep.rates, sweep.held, ".", color="tab:blue", alpha=0.25, markersize=4)
        label = f"{len(test.sweeps)} sweeps, smoothed" if number == 0 else None
        axes.plot(sweep.rates, sweep.curve, color="tab:blue", linewidth=1.2, label=label)
    axes.axhline(test.level, color="grey", linewidth=0.8, linestyle=":")
    low = min(float(sweep.curve.min()) for sweep in test.sweeps)
    fall = max(test.level - low, 1e-12)
    axes.set(
        xscale="log",
        xlabel="learning rate of the first group",
        ylabel="loss of the held batches",
        title="no suggestion" if test.problem else "sweeps from the same start",
        ylim=(low - 0.05 * fall, test.level + _ROOM * fall),
    )
    if not test.problem:
        _mark(test, axes)
        _estimators(test, axes, test.level + 0.92 * _ROOM * fall)
    if np.isfinite(test.diverges):
        axes.axvline(
            test.diverges,
            color="tab:red",
            linewidth=1,
            linestyle="--",
            label=f"diverges from {test.diverges:.2g}",
        )
    axes.legend(frameon=False, fontsize=8, loc="lower left")


def _estimators(test: RangeTest, axes: Any, height: float) -> None:
    """Mark the rate of each estimator in a row at the top."""
    for marker, name in zip("o^sDv", ESTIMATORS, strict=True):
        middle = float(np.median(test.rates(name)))
        if np.isfinite(middle):
            axes.plot(
                middle, height, marker, color="black", markersize=4, label=f"{name}: {middle:.2g}"
            )


def _trials(test: RangeTest, axes: Any) -> None:
    fall = max(test.level - test.best.level, 1e-3 * abs(test.level), 1e-12)
    top = test.level + _ROOM * fall
    kept = [trial for trial in test.trials if trial.level <= top]
    rates, levels = [trial.rate for trial in kept], [trial.level for trial in kept]
    errors = [_standard_error(trial, test.best) for trial in kept]
    axes.errorbar(rates, levels, yerr=errors, fmt="o-", color="tab:blue", markersize=4, capsize=2)
    worse = [trial.rate for trial in test.trials if not trial.level <= top]
    if worse:
        height = [test.level + 0.8 * _ROOM * fall] * len(worse)
        axes.plot(worse, height, "x", color="tab:red", label="ends higher, or not finite")
    axes.axhline(test.level, color="grey", linewidth=0.8, linestyle=":", label="at the start")
    axes.set(
        xscale="log",
        xlabel="learning rate of the first group",
        ylabel="loss of the held batches at the end",
        title="short trainings from the same start",
        ylim=(min(test.best.level, test.level) - 0.05 * fall, top),
    )
    ticks = _ticks(test.trials[0].rate, test.trials[-1].rate)
    axes.set_xticks(ticks, [f"{tick:.2g}" for tick in ticks])
    axes.minorticks_off()
    if not test.problem:
        _mark(test, axes)
    axes.axvline(
        test.configured["peak"],
        color="tab:orange",
        linewidth=1,
        label=f"configured: {test.configured['peak']:.2g}",
    )
    axes.legend(frameon=False, fontsize=8)


def _ticks(low: float, high: float) -> list[float]:
    """Return round rates between two, fewer in each decade the more decades there are."""
    first, last = int(np.floor(np.log10(low))), int(np.ceil(np.log10(high)))
    digits = (1, 2, 5) if high < 10**_FEW_DECADES * low else (1,)
    every = max(1, -(-(last - first) // _MOST_TICKS))
    rates = [digit * 10.0**power for power in range(first, last + 1, every) for digit in digits]
    inside = [rate for rate in rates if 0.99 * low <= rate <= 1.01 * high]
    return inside if len(inside) > 1 else sorted({low, high})


def _standard_error(trial: RateTrial, best: RateTrial) -> float:
    """Return the standard error, over held batches, of the difference to the best."""
    differences = trial.end - best.end
    return float(differences.std() / np.sqrt(max(len(differences) - 1, 1)))


def _mark(test: RangeTest, axes: Any) -> None:
    good = test.suggestion
    axes.axvspan(good.low, good.high, color="tab:green", alpha=0.12)
    axes.axvline(good.rate, color="tab:green", linewidth=1.5, label=f"suggestion: {good.rate:.2g}")
