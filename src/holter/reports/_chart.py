"""Curves for a terminal, drawn in Braille dots: eight to a character."""

import numpy as np
import numpy.typing as npt

from holter.reports._lines import Line
from holter.reports.experiments import Chart

Values = npt.NDArray[np.float64]

_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))  # bits by column, then row
_NO_DOTS = 0x2800


def chart(curve: Chart, *, width: int, height: int = 8, low: float | None = None) -> list[Line]:
    """Draw a curve with its scale on the left and its axis below; nothing for under two points."""
    x, y = np.asarray(curve.x, np.float64), np.asarray(curve.y, np.float64)
    kept = np.isfinite(y)
    if kept.sum() < 2:
        return []
    x, y = x[kept], y[kept]
    bottom, top = float(y.min()) if low is None else low, float(y.max())
    marks = {0: f"{top:.3g}", height - 1: f"{bottom:.3g}"}
    margin = 2 + max(map(len, marks.values())) + 1
    columns = max(width - margin, 10)
    dense = np.interp(np.linspace(x[0], x[-1], 2 * columns), x, y)
    heights = (dense - bottom) / (top - bottom) if top > bottom else np.full_like(dense, 0.5)
    lines: list[Line] = [
        ((f"{marks.get(row, ''):>{margin - 1}} ", "dim"), (dots, "cyan"))
        for row, dots in enumerate(_drawn(heights, columns, height))
    ]
    if curve.interval is not None:
        lines.append(_interval(curve.interval, float(x[0]), float(x[-1]), margin, columns))
    first, last = f"{x[0]:.3g}", f"{x[-1]:.3g}"
    between = f"{curve.x_label:^{max(columns - len(first) - len(last), 0)}}"
    return [*lines, ((f"{'':{margin}}{first}{between}{last}", "dim"),)]


def _interval(
    interval: tuple[float, float, float], first: float, last: float, margin: int, columns: int
) -> Line:
    """Mark an interval and the choice in it, under the curve."""
    low, at, high = (
        round((columns - 1) * float(np.clip((place - first) / (last - first), 0, 1)))
        for place in interval
    )
    row = [" "] * columns
    row[low : high + 1] = "─" * (high + 1 - low)
    row[low], row[high], row[at] = "├", "┤", "▲"
    return ((" " * margin, ""), ("".join(row).rstrip(), "green"))


def _drawn(heights: Values, width: int, rows: int) -> list[str]:
    """Return rows of characters with a dot for each height (0 to 1), joined to the one before."""
    cells = np.full((rows, width), _NO_DOTS)
    levels = np.rint((1 - np.clip(heights, 0, 1)) * (4 * rows - 1)).astype(int)
    before = int(levels[0])
    for column, level in enumerate(levels):
        way = range(min(before, level), max(before, level) + 1)
        for dot in (level, *(place for place in way if place != before)):
            cells[dot // 4, column // 2] |= _DOTS[column % 2][dot % 4]
        before = int(level)
    return ["".join(chr(cell) if cell != _NO_DOTS else " " for cell in row) for row in cells]
