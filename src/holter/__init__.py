"""Record a training run, then ask what is wrong with it."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holter.differential import Diagnosis, diagnose
    from holter.errors import HolterError
    from holter.experiments.setup import Setup
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
    from holter.rates import one_cycle, warmup_cosine
    from holter.rules import Checkup, Rule, check, rule
    from holter.run import Run, Series
    from holter.watching import Watch, watch

__version__ = "0.1.0"

# Where each public name lives. Nothing is imported before it is used: reading a run never imports
# torch, and `import holter` costs a training script nothing.
_HOMES = {
    "Checkup": "rules",
    "Clear": "findings",
    "Confidence": "findings",
    "Diagnosis": "differential",
    "Evidence": "findings",
    "Finding": "findings",
    "HolterError": "errors",
    "Level": "findings",
    "Normal": "findings",
    "NotExamined": "findings",
    "Rule": "rules",
    "Run": "run",
    "Series": "run",
    "Setup": "experiments.setup",
    "Severity": "findings",
    "Watch": "watching",
    "check": "rules",
    "diagnose": "differential",
    "one_cycle": "rates",
    "rule": "rules",
    "warmup_cosine": "rates",
    "watch": "watching",
}

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
    "Setup",
    "Severity",
    "Watch",
    "check",
    "diagnose",
    "one_cycle",
    "rule",
    "warmup_cosine",
    "watch",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'holter' has no attribute {name!r}")
    try:
        home = import_module(f"holter.{_HOMES[name]}")
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        from holter.errors import NEEDS_TORCH, HolterError

        raise HolterError(NEEDS_TORCH) from None
    return getattr(home, name)


def __dir__() -> list[str]:
    return [*globals(), *_HOMES]
