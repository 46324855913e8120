"""Record a training run, then ask what is wrong with it."""

from typing import TYPE_CHECKING, Any

from holter.differential import Diagnosis, diagnose
from holter.errors import HolterError
from holter.findings import (
    Clear,
    Confidence,
    Evidence,
    Finding,
    Level,
    Normal,
    NotExamined,
    Severity,
)
from holter.rules import Checkup, Rule, check, rule
from holter.run import Run, Series

if TYPE_CHECKING:
    from holter.watching import Watch, watch

__version__ = "0.1.0"

__all__ = [
    "Checkup",
    "Clear",
    "Confidence",
    "Diagnosis",
    "Evidence",
    "Finding",
    "HolterError",
    "Level",
    "Normal",
    "NotExamined",
    "Rule",
    "Run",
    "Series",
    "Severity",
    "Watch",
    "check",
    "diagnose",
    "rule",
    "watch",
]


def __getattr__(name: str) -> Any:
    # `watch` needs torch: it is imported on first use.
    if name in ("Watch", "watch"):
        try:
            from holter import watching
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            raise HolterError(NEEDS_TORCH) from None
        return getattr(watching, name)
    raise AttributeError(f"module 'holter' has no attribute {name!r}")


NEEDS_TORCH = "Watching a training needs PyTorch: install it with `pip install 'holter[torch]'`."
