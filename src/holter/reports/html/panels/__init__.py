"""Panels of the page, one module each: `TITLE`, and `panel(view)`, None if nothing was recorded."""

from dataclasses import dataclass
from importlib import import_module

from holter.reports.html._view import Panel, View

# In the order of the page: what was learned, how, then the experiments.
ORDER = (
    "preflight",
    "losses",
    "evaluation",
    "gradients",
    "updates",
    "weights",
    "activations",
    "histograms",
    "learning_rate",
    "data",
    "time",
    "memory",
    "cures",
    "birth",
    "lr_range",
    "sharpness",
    "results",
    "samples",
)


@dataclass(frozen=True, slots=True)
class Titled:
    """A panel with its place in the page; `panel` is None if nothing of it was recorded."""

    name: str
    title: str
    panel: Panel | None


def all_panels(view: View) -> list[Titled]:
    """Return every panel in the order of the page."""
    modules = [(name, import_module(f"{__name__}.{name}")) for name in ORDER]
    return [Titled(name, module.TITLE, module.panel(view)) for name, module in modules]
