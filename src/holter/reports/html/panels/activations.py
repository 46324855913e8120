"""Activations of modules: spread, dead and saturated share, attention."""

from holter.record.signals import (
    ACTIVATION_DEAD_FRACTION,
    ACTIVATION_SATURATED_FRACTION,
    ACTIVATION_STD,
    ATTENTION_ENTROPY,
    ATTENTION_LOGIT_ABSMAX,
    NORMALISATION_INPUT_RMS,
    Signal,
)
from holter.reports.html._drawings import layers, present
from holter.reports.html._view import Drawing, Panel, View

TITLE = "Activations"


def panel(view: View) -> Panel | None:
    """Return what was recorded of the modules' outputs as heat maps."""
    drawings = present(
        _of_modules(view, ACTIVATION_STD, "Standard deviation of activations", "std"),
        _shares(view, ACTIVATION_DEAD_FRACTION, "Dead units"),
        _shares(view, ACTIVATION_SATURATED_FRACTION, "Saturated outputs"),
        _of_modules(view, NORMALISATION_INPUT_RMS, "Residual stream before normalisation", "RMS"),
        _of_modules(view, ATTENTION_LOGIT_ABSMAX, "Largest attention logit", "logit"),
        _shares(view, ATTENTION_ENTROPY, "Attention entropy, as a share of the largest possible"),
    )
    return Panel(drawings) if drawings else None


def _of_modules(view: View, signal: Signal, title: str, unit: str) -> Drawing | None:
    return layers(view, signal, title=title, unit=unit, row="module")


def _shares(view: View, signal: Signal, title: str) -> Drawing | None:
    return layers(
        view, signal, title=title, unit="share", log=False, domain=(0.0, 1.0), row="module"
    )
