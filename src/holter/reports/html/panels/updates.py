"""Relative updates: how much of its norm each parameter changes in a step."""

from holter.record.signals import UPDATE_RATIO, UPDATE_UNCHANGED_FRACTION
from holter.reports.html._drawings import layers, present
from holter.reports.html._view import Panel, View

TITLE = "Relative updates"


def panel(view: View) -> Panel | None:
    """Return the relative update of every parameter over time."""
    drawings = present(
        layers(
            view,
            UPDATE_RATIO,
            title="Relative update per parameter",
            unit="update / weight",
            note="norm of the change over the norm of the parameter; about 1e-3 is typical",
        ),
        layers(
            view,
            UPDATE_UNCHANGED_FRACTION,
            title="Elements that a step left unchanged",
            unit="share",
            log=False,
            domain=(0.0, 1.0),
            is_folded=True,
        ),
    )
    return Panel(drawings) if drawings else None
