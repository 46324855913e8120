"""Weight norms: of every parameter over time."""

from holter.record.signals import WEIGHT_NORM, WEIGHT_TOTAL_NORM
from holter.reports.html._drawings import layers, present, signal_curves
from holter.reports.html._view import Panel, View

TITLE = "Weights"


def panel(view: View) -> Panel | None:
    """Return the norm of every parameter, and of all of them."""
    drawings = present(
        layers(view, WEIGHT_NORM, title="Weight norm per parameter", unit="L2 norm"),
        signal_curves(
            view,
            WEIGHT_TOTAL_NORM,
            title="Weight norm of all parameters",
            unit="L2 norm",
            is_wide=True,
        ),
    )
    return Panel(drawings) if drawings else None
