"""Gradient norms: of the whole model, and of every parameter over time."""

from holter.record.signals import GRAD_NORM, GRAD_TOTAL_NORM, GRAD_ZERO_FRACTION
from holter.reports.html._drawings import layers, present, signal_curves
from holter.reports.html._view import Panel, View

TITLE = "Gradient flow"


def panel(view: View) -> Panel | None:
    """Return the norm per parameter as a heat map, and the total norm as a curve."""
    drawings = present(
        layers(
            view,
            GRAD_NORM,
            title="Gradient norm per parameter",
            unit="L2 norm",
            note="from the first layer at the top to the last; before clipping",
        ),
        signal_curves(
            view,
            GRAD_TOTAL_NORM,
            title="Gradient norm of all parameters",
            unit="L2 norm",
            is_wide=True,
        ),
        layers(
            view,
            GRAD_ZERO_FRACTION,
            title="Gradient elements that are exactly zero",
            unit="share",
            log=False,
            domain=(0.0, 1.0),
            is_folded=True,
        ),
    )
    return Panel(drawings) if drawings else None
