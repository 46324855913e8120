"""A figure that is written to a file, whatever screen there is."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from holter.record.errors import HolterError

_WIDE, _HIGH = 5.5, 4.0  # inches of one picture


@contextmanager
def figure(path: Path, pictures: int) -> Iterator[tuple[Any, ...]]:
    """So many axes beside each other; afterwards they are written to `path`."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise HolterError("Pictures need matplotlib: pip install 'holter[plots]'.") from None
    drawn = Figure(figsize=(_WIDE * pictures, _HIGH), layout="constrained")
    FigureCanvasAgg(drawn)
    axes = drawn.subplots(1, pictures, squeeze=False)[0]
    yield tuple(axes)
    for each in axes:
        each.grid(visible=True, alpha=0.25)
        each.spines[["top", "right"]].set_visible(False)
    try:
        drawn.savefig(path, dpi=120, format="png")
    except OSError as error:
        raise HolterError(f"Cannot write {path}: {error.strerror or error}.") from error
