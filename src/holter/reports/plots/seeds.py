"""Plot of a sweep over seeds: every run, and mean and interval of each variant."""

from pathlib import Path

import numpy as np

from holter.diagnosis.comparing.seeds import SeedReport
from holter.record.errors import HolterError
from holter.reports.plots._figure import figure

_SPREAD = 0.12  # of the points of a variant, to the sides


def draw(report: SeedReport, path: Path) -> None:
    """Write the sweep to a PNG file."""
    if not any(variant.values for variant in report.variants):
        raise HolterError(f"No run has {report.metric}: there is nothing to plot.")
    with figure(path, 1) as (axes,):
        for place, variant in enumerate(report.variants):
            values, sample = variant.values, variant.sample
            if sample is None:
                continue
            at = place + np.linspace(-_SPREAD, _SPREAD, len(values))
            axes.plot(at, values, "o", color="tab:blue", alpha=0.5, markersize=5)
            reach = 0.0 if sample.interval is None else sample.interval.high - sample.mean
            axes.errorbar(
                place + 2.2 * _SPREAD, sample.mean, yerr=reach, fmt="s", color="black", capsize=4
            )
        axes.set_xticks(range(len(report.variants)), [each.name for each in report.variants])
        axes.set_xlim(-0.5, len(report.variants) - 0.3)
        axes.set(ylabel=report.metric, title="runs, and mean with 95 % interval")
