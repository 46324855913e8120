"""Inputs, targets and outputs of the model."""

from holter.record.signals import (
    INPUT_ABSMAX,
    INPUT_MEAN,
    INPUT_STD,
    OUTPUT_MAX,
    OUTPUT_MIN,
    OUTPUT_SPREAD,
    TARGET_BATCH_ENTROPY,
    TARGET_ENTROPY,
    TARGET_MAX,
    TARGET_MIN,
)
from holter.reports.html._drawings import present, signal_curves
from holter.reports.html._view import Panel, View

TITLE = "Inputs, targets and outputs"


def panel(view: View) -> Panel | None:
    """Return the range of inputs, of outputs beside targets, and the entropy of labels."""
    drawings = present(
        signal_curves(
            view, INPUT_MEAN, INPUT_STD, INPUT_ABSMAX, title="Inputs of the model", unit="value"
        ),
        signal_curves(
            view,
            OUTPUT_MIN,
            OUTPUT_MAX,
            TARGET_MIN,
            TARGET_MAX,
            title="Range of outputs and targets",
            unit="value",
        ),
        signal_curves(
            view, OUTPUT_SPREAD, title="Spread of outputs over the batch", unit="standard deviation"
        ),
        signal_curves(
            view,
            TARGET_ENTROPY,
            TARGET_BATCH_ENTROPY,
            title="Label entropy",
            unit="nats",
            log=False,
        ),
    )
    return Panel(drawings) if drawings else None
