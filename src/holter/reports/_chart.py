"""Curves for a terminal, in dots: eight to a character."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from holter.reports._lines import Line

Values = npt.NDArray[np.float64]

_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))  # of a character: columns, then rows
_NO_DOTS = 0x2800


def chart(
    at: Sequence[float],
    values: Sequence[float],
    *,
    width: int,
    height: int = 8,
    label: str = "",
    low: float | None = None,
) -> list[Line]:
    """A curve with its scale on the left and the ends of its axis below."""
    x, y = np.asarray(at, np.float64), np.asarray(values, np.float64)
    kept = np.isfinite(y)
    if kept.sum() < 2:
        return []
    x, y = x[kept], y[kept]
    bottom, top = float(y.min()) if low is None else low, float(y.max())
    marks = {0: f"{top:.3g}", height - 1: f"{bottom:.3g}"}
    margin = 2 + max(map(len, marks.values())) + 1
    columns = max(width - margin, 10)
    curve = np.interp(np.linspace(x[0], x[-1], 2 * columns), x, y)
    heights = (curve - bottom) / (top - bottom) if top > bottom else np.full_like(curve, 0.5)
    lines: list[Line] = [
        ((f"{marks.get(number, ''):>{margin - 1}} ", "dim"), (row, "cyan"))
        for number, row in enumerate(_drawn(heights, columns, height))
    ]
    first, last = f"{x[0]:.4g}", f"{x[-1]:.4g}"
    between = f"{label:^{max(columns - len(first) - len(last), 0)}}"
    return [*lines, ((f"{'':{margin}}{first}{between}{last}", "dim"),)]


def _drawn(heights: Values, width: int, rows: int) -> list[str]:
    """Rows of characters with a dot for each height, from 0 to 1, joined to the one before it."""
    cells = np.full((rows, width), _NO_DOTS)
    levels = np.rint((1 - np.clip(heights, 0, 1)) * (4 * rows - 1)).astype(int)
    before = int(levels[0])
    for column, level in enumerate(levels):
        way = range(min(before, level), max(before, level) + 1)
        for dot in (level, *(each for each in way if each != before)):
            cells[dot // 4, column // 2] |= _DOTS[column % 2][dot % 4]
        before = int(level)
    return ["".join(chr(each) if each != _NO_DOTS else " " for each in row) for row in cells]
