"""The learning-rate range test on a network of the playground; in the worker process."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import nn

from holter.dashboard.encoding import numbers
from holter.dashboard.playground.networks import build, loader, optimizer_for
from holter.lab.running import run as conduct
from holter.lab.setup import Setup
from holter.reports.experiments import all_results

_QUICK: Mapping[str, Any] = {"points": 60, "repeats": 2, "confirm": 3, "steps": 60}  # a few seconds


def test_rates(options: Mapping[str, Any]) -> dict[str, Any]:
    """Run the experiment `lr-range`; return its curve and its tables."""
    model = build(options)
    setup = Setup.of(model, optimizer_for(model, options), nn.CrossEntropyLoss(), loader())
    with tempfile.TemporaryDirectory() as folder:
        run = conduct("lr-range", setup, Path(folder) / "range", **_QUICK)
        tables = all_results(run)
    chart = next((table.chart for table in tables if table.chart is not None), None)
    return {
        "curve": None
        if chart is None
        else {
            "rates": numbers([10**place for place in chart.x]),
            "losses": numbers(chart.y),
            "interval": None
            if chart.interval is None
            else numbers([10**place for place in chart.interval]),
        },
        "tables": [
            {
                "title": table.title,
                "columns": list(table.columns),
                "rows": [[_cell(cell) for cell in row] for row in table.rows],
                "notes": list(table.notes),
            }
            for table in tables
        ],
    }


def _cell(cell: object) -> str:
    if cell is None:
        return ""
    return f"{cell:.3g}" if isinstance(cell, float) else str(cell)
