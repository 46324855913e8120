"""Tables and charts of experiments' results as lines of text."""

from collections.abc import Sequence

from holter.reports._chart import chart
from holter.reports._lines import Line, hanging
from holter.reports._numbers import number
from holter.reports.experiments import Cell, ResultTable

_GAP = 2  # spaces between columns
_CHART_WIDTH, _CHART_HEIGHT = 72, 6


def table_lines(table: ResultTable, width: int, *, most_rows: int | None = None) -> list[Line]:
    """Return title, rows, chart and notes; of many rows the first and the last `most_rows` / 2."""
    lines: list[Line] = [((table.title, "bold"),)]
    lines += _rows(table, width, most_rows)
    if table.chart is not None:
        lines += chart(table.chart, width=min(width, _CHART_WIDTH), height=_CHART_HEIGHT)
    for note in table.notes:
        lines += hanging(note, width=width, lead=(("  ", ""),), hang=2)
    return lines


def _rows(table: ResultTable, width: int, most_rows: int | None) -> list[Line]:
    if not table.rows:
        return []
    kept = [n for n in range(len(table.columns)) if any(row[n] is not None for row in table.rows)]
    body = [[_cell(row[n]) for n in kept] for row in table.rows]
    numeric = [all(not isinstance(row[n], str) for row in table.rows) for n in kept]
    titles = [table.columns[n] for n in kept]
    widths = [max(map(len, column)) for column in zip(titles, *body, strict=True)]
    lines: list[Line] = []
    if any(titles):
        head = [_aligned(*cell) for cell in zip(titles, widths, numeric, strict=True)]
        lines += [((f"  {(' ' * _GAP).join(head)}".rstrip(), "dim"),)]
    for place, cells in enumerate(body):
        if most_rows is not None and len(body) > most_rows + 2:  # worth a line that says so
            half = most_rows // 2
            if place == half:
                lines.append(((f"  ... {len(body) - 2 * half} more", "dim"),))
            if half <= place < len(body) - half:
                continue
        lines += _row(cells, widths, numeric, width)
    return lines


def _row(
    cells: Sequence[str], widths: Sequence[int], numeric: Sequence[bool], width: int
) -> list[Line]:
    """Return one row; the last column wraps if it is text."""
    aligned = [_aligned(*cell) for cell in zip(cells, widths, numeric, strict=True)]
    first = f"  {(' ' * _GAP).join(aligned[:-1])}{' ' * _GAP if len(aligned) > 1 else ''}"
    if numeric[-1]:
        return [((f"{first}{aligned[-1]}".rstrip(), ""),)]
    if width - len(first) < 24 and cells[-1]:  # too narrow a column: below the row
        return [
            ((first.rstrip(), ""),),
            *hanging(cells[-1], width=width, lead=((" " * 4, ""),)),
        ]
    return hanging(cells[-1], width=width, lead=((first, ""),))


def _aligned(text: str, width: int, is_number: bool) -> str:
    return text.rjust(width) if is_number else text.ljust(width)


def _cell(value: Cell) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else number(value)
