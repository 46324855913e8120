"""The results of experiments as tables, those aside that have a panel of their own."""

from holter.reports.experiments import Chart, all_results
from holter.reports.html._markup import joined
from holter.reports.html._tables import table
from holter.reports.html._view import Drawing, Panel, View

TITLE = "Experiments"
_ELSEWHERE = frozenset({"cures"})
_DRAWN = frozenset({"lr-range", "sharpness"})  # their charts are in their own panels


def panel(view: View) -> Panel | None:
    """Return every table of results, and the charts that belong to them."""
    tables = [found for found in all_results(view.run) if found.experiment not in _ELSEWHERE]
    if not tables:
        return None
    drawings = [
        _drawing(found.title, found.chart)
        for found in tables
        if found.chart is not None and found.experiment not in _DRAWN
    ]
    return Panel(tuple(drawings), below=joined(*map(table, tables)))


def _drawing(title: str, chart: Chart) -> Drawing:
    series = {"name": chart.y_label, "steps": list(chart.x), "values": list(chart.y)}
    data = {
        "series": [series],
        "xLabel": chart.x_label,
        "unit": chart.y_label,
        "label": title,
        "own": True,
    }
    return Drawing("lines", data, title)
