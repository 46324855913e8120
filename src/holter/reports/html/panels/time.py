"""Time per step: waiting for data, and holter itself."""

from holter.record.signals import TIME_DATA_WAIT, WATCH_TIME
from holter.reports._facts import cost
from holter.reports.html._drawings import present, signal_curves
from holter.reports.html._view import Panel, View

TITLE = "Time"


def panel(view: View) -> Panel | None:
    """Return the time that the loop waited for batches, and the cost of watching."""
    drawings = present(
        signal_curves(view, TIME_DATA_WAIT, title="Waiting for data", unit="seconds per step"),
        signal_curves(view, WATCH_TIME, title="Cost of watching", unit="seconds per step"),
    )
    return Panel(drawings, f"{cost(view.run).says}.") if drawings else None
