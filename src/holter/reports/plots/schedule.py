"""Plot of a learning-rate schedule."""

from collections.abc import Sequence
from pathlib import Path

from holter.reports.plots._figure import figure


def draw(rates: Sequence[float], path: Path) -> None:
    """Write the learning rate of each step to a PNG file."""
    with figure(path, 1) as (axes,):
        axes.plot(range(len(rates)), rates, color="tab:blue")
        axes.set(xlabel="step", ylabel="learning rate", xlim=(0, len(rates) - 1))
        axes.set_ylim(bottom=0)
        axes.ticklabel_format(axis="y", style="sci", scilimits=(-2, 3))
