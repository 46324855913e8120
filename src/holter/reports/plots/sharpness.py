"""Plot of the loss around the weights: along random directions, and on a plane of two."""

from pathlib import Path
from typing import Any

import numpy as np

from holter.record import Run
from holter.record.errors import HolterError
from holter.record.signals import (
    SHARPNESS_DISTANCE,
    SHARPNESS_LOSS,
    SHARPNESS_PLANE,
    SHARPNESS_START,
)
from holter.reports.plots._figure import figure

_LEVELS = 14  # contours of the plane
_STEEP = 30  # highest over lowest loss, above which colours and axes are logarithmic


def draw(run: Run, path: Path) -> None:
    """Write the results of `holter try sharpness` to a PNG file."""
    if SHARPNESS_LOSS not in run:
        raise HolterError(
            "This run has no loss along directions; `holter try sharpness SCRIPT` measures it."
        )
    with figure(path, 2 if SHARPNESS_PLANE in run else 1) as axes:
        _lines(run, axes[0])
        if SHARPNESS_PLANE in run:
            _plane(run, axes[1])


def _lines(run: Run, axes: Any) -> None:
    distances = run[SHARPNESS_DISTANCE]["line"].values
    curves = np.array([series.values for series in run[SHARPNESS_LOSS].values()], np.float64)
    for curve in curves:
        axes.plot(distances, curve, color="tab:blue", alpha=0.3, linewidth=1)
    axes.plot(distances, curves.mean(0), color="tab:blue", linewidth=2, label="mean")
    steps = int(run[SHARPNESS_START][""].values[-1])
    axes.set(
        xlabel="distance, in filter norms",
        ylabel="loss in eval mode",
        title=f"{len(curves)} random directions, after {steps} steps",
    )
    if _is_steep(curves):
        axes.set_yscale("log")
    axes.legend(frameon=False)


def _plane(run: Run, axes: Any) -> None:
    from matplotlib.colors import LogNorm

    distances = run[SHARPNESS_DISTANCE]["plane"].values
    losses = run[SHARPNESS_PLANE][""].values.astype(np.float64)
    square = np.ma.masked_invalid(losses.reshape(len(distances), len(distances)))
    axes.set(xlabel="first direction", ylabel="second direction", title="plane of two directions")
    if len(np.unique(square.compressed())) < 2:
        return
    steep = _is_steep(losses)
    ends = float(square.min()), float(square.max())
    levels = (np.geomspace if steep else np.linspace)(*ends, _LEVELS)
    colours = axes.contourf(
        distances,
        distances,
        square,
        levels=levels,
        cmap="viridis",
        norm=LogNorm() if steep else None,
    )
    axes.contour(distances, distances, square, levels=levels, colors="white", linewidths=0.4)
    axes.plot(0, 0, "o", color="white", markersize=5, markeredgecolor="black")
    axes.figure.colorbar(colours, ax=axes, label="loss", format="%.3g")


def _is_steep(losses: "np.ndarray[Any, Any]") -> bool:
    finite = losses[np.isfinite(losses)]
    return bool(len(finite) and finite.min() > 0 and finite.max() > _STEEP * finite.min())
