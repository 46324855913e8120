"""A figure that is written to a file; needs no display."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from holter.record.errors import HolterError

_WIDE, _HIGH = 5.5, 4.0  # inches of one plot


@contextmanager
def figure(path: Path, panels: int) -> Iterator[tuple[Any, ...]]:
    """Yield so many axes side by side, then write them to `path`."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise HolterError("Plots need matplotlib: pip install 'holter[plots]'.") from None
    drawn = Figure(figsize=(_WIDE * panels, _HIGH), layout="constrained")
    FigureCanvasAgg(drawn)
    axes = drawn.subplots(1, panels, squeeze=False)[0]
    yield tuple(axes)
    for panel in axes:
        panel.grid(visible=True, alpha=0.25)
        panel.spines[["top", "right"]].set_visible(False)
    try:
        drawn.savefig(path, dpi=120, format="png")
    except OSError as error:
        raise HolterError(f"Cannot write {path}: {error.strerror or error}.") from error
