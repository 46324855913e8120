"""Learning rates, clipping and the loss scale of mixed precision."""

from holter.record.signals import AMP_SCALE, CLIP_COEFFICIENT, CLIP_LIMIT, CLIP_NORM, LR
from holter.reports.html._drawings import present, signal_curves
from holter.reports.html._view import Panel, View

TITLE = "Learning rate and clipping"


def panel(view: View) -> Panel | None:
    """Return the learning rate of each group, what clipping did, and the loss scale."""
    drawings = present(
        signal_curves(view, LR, title="Learning rate", unit="learning rate", log=False),
        signal_curves(
            view, CLIP_NORM, CLIP_LIMIT, title="Gradient norm and clipping limit", unit="L2 norm"
        ),
        signal_curves(
            view, CLIP_COEFFICIENT, title="Clipping coefficient", unit="factor", log=False
        ),
        signal_curves(view, AMP_SCALE, title="Loss scale", unit="factor"),
    )
    return Panel(drawings) if drawings else None
