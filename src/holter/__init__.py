"""Record a training run, then ask what is wrong with it."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from holter._version import __version__ as __version__

if TYPE_CHECKING:
    from holter.dashboard.notebook import show
    from holter.diagnosis.differential import Diagnosis, diagnose
    from holter.diagnosis.engine import Checkup, check
    from holter.diagnosis.facts.outcome import Outcome, OutcomeState
    from holter.diagnosis.rule import Rule, rule
    from holter.imports import import_log
    from holter.lab.determinism import Determinism, deterministic
    from holter.lab.preprocessing import compare_preprocessing
    from holter.lab.schedules import one_cycle, warmup_cosine
    from holter.lab.setup import Setup
    from holter.record import Run, Series
    from holter.record.errors import HolterError
    from holter.record.findings import (
        Clear,
        Confidence,
        Evidence,
        Finding,
        Level,
        Normal,
        NotExamined,
        Severity,
    )
    from holter.watching.watch import Watch, watch

# Where each public name lives. Nothing is imported before it is used: reading a run never imports
# torch, and `import holter` costs a training script nothing.
_HOMES = {
    "Checkup": "diagnosis.engine",
    "Clear": "record.findings",
    "Confidence": "record.findings",
    "Determinism": "lab.determinism",
    "Diagnosis": "diagnosis.differential",
    "Evidence": "record.findings",
    "Finding": "record.findings",
    "HolterError": "record.errors",
    "Level": "record.findings",
    "Normal": "record.findings",
    "NotExamined": "record.findings",
    "Outcome": "diagnosis.facts.outcome",
    "OutcomeState": "diagnosis.facts.outcome",
    "Rule": "diagnosis.rule",
    "Run": "record",
    "Series": "record",
    "Setup": "lab.setup",
    "Severity": "record.findings",
    "Watch": "watching.watch",
    "check": "diagnosis.engine",
    "compare_preprocessing": "lab.preprocessing",
    "deterministic": "lab.determinism",
    "diagnose": "diagnosis.differential",
    "import_log": "imports",
    "load_ipython_extension": "integrations.notebook",  # by which `%load_ext holter` works
    "one_cycle": "lab.schedules",
    "rule": "diagnosis.rule",
    "show": "dashboard.notebook",
    "warmup_cosine": "lab.schedules",
    "watch": "watching.watch",
}

__all__ = [
    "Checkup",
    "Clear",
    "Confidence",
    "Determinism",
    "Diagnosis",
    "Evidence",
    "Finding",
    "HolterError",
    "Level",
    "Normal",
    "NotExamined",
    "Outcome",
    "OutcomeState",
    "Rule",
    "Run",
    "Series",
    "Setup",
    "Severity",
    "Watch",
    "check",
    "compare_preprocessing",
    "deterministic",
    "diagnose",
    "import_log",
    "one_cycle",
    "rule",
    "show",
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
        from holter.record.errors import NEEDS_TORCH, HolterError

        raise HolterError(NEEDS_TORCH) from None
    return getattr(home, name)


def __dir__() -> list[str]:
    return [*globals(), *_HOMES]
