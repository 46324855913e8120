"""The experiments: active tests of a training, one file each; each writes an ordinary run."""

import inspect
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from typing import Any

from holter.record.errors import HolterError
from holter.record.signals import Signal

ExperimentFunction = Callable[..., None]  # of a Setup and a Lab, and its own options


@dataclass(frozen=True, slots=True)
class Experiment:
    """An experiment function together with what is known of it without running it."""

    name: str
    emits: tuple[Signal, ...]
    preflight: bool
    function: ExperimentFunction

    @property
    def doc(self) -> str:
        """What it does, in Markdown: its docstring."""
        return inspect.cleandoc(self.function.__doc__ or "")

    @property
    def title(self) -> str:
        """The question it answers, in one line."""
        return self.doc.partition("\n")[0]

    @property
    def options(self) -> dict[str, Any]:
        """What a user may set: the function's keyword-only parameters."""
        parameters = inspect.signature(self.function).parameters.values()
        return {
            parameter.name: parameter.default
            for parameter in parameters
            if parameter.kind is parameter.KEYWORD_ONLY
        }


def experiment(
    *, emits: tuple[Signal, ...], preflight: bool = False
) -> Callable[[ExperimentFunction], Experiment]:
    """Turn a function into an experiment named after it: `lr_range` becomes `lr-range`.

    It is given a `Setup` and a `Lab`; what it measures it writes to the lab, as readings of the
    signals it `emits`, and concludes nothing: that is done by rules that need those signals. One
    marked `preflight` is quick, and part of `holter try preflight`.
    """

    def make(function: ExperimentFunction) -> Experiment:
        return Experiment(function.__name__.replace("_", "-"), emits, preflight, function)

    return make


@cache
def all_experiments() -> Mapping[str, Experiment]:
    """Every experiment by name: the object named like its module, in each module that has one."""
    found = {}
    for module in sorted(each.name for each in pkgutil.iter_modules(__path__) if not each.ispkg):
        made = getattr(import_module(f"{__name__}.{module}"), module, None)
        if isinstance(made, Experiment):
            found[made.name] = made
    return found


def named_experiment(name: str) -> Experiment:
    """The experiment of that name, or a sentence with the nearest one."""
    known = all_experiments()
    if name not in known:
        near = get_close_matches(name, list(known), n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}."
        raise HolterError(f"There is no experiment {name!r}; {hint}")
    return known[name]
