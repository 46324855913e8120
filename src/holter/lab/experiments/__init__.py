"""Experiments: active tests of a training, one file each; each writes an ordinary run."""

import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from typing import Any

from holter.record.errors import HolterError
from holter.record.functions import options_of, page_of
from holter.record.signals import Signal

ExperimentFunction = Callable[..., None]  # of a Setup and a Lab, and its own options


@dataclass(frozen=True, slots=True)
class Experiment:
    """An experiment function and its properties."""

    name: str
    emits: tuple[Signal, ...]
    preflight: bool
    function: ExperimentFunction

    @property
    def doc(self) -> str:
        """Its docstring, in Markdown."""
        return page_of(self.function)

    @property
    def title(self) -> str:
        """The question it answers, in one line."""
        return self.doc.partition("\n")[0]

    @property
    def options(self) -> dict[str, Any]:
        """Its options: the function's keyword-only parameters with their defaults."""
        return options_of(self.function)


def experiment(
    *, emits: tuple[Signal, ...], preflight: bool = False
) -> Callable[[ExperimentFunction], Experiment]:
    """Turn a function into an experiment named after it: `lr_range` becomes `lr-range`.

    It gets a `Setup` and a `Lab`, and writes what it measures to the lab as readings of the signals
    that it `emits`. It concludes nothing: rules that need those signals do. A `preflight`
    experiment is quick, and part of `holter try preflight`.
    """

    def make(function: ExperimentFunction) -> Experiment:
        return Experiment(function.__name__.replace("_", "-"), emits, preflight, function)

    return make


@cache
def all_experiments() -> Mapping[str, Experiment]:
    """Return every experiment by name: the object named like its module."""
    found = {}
    for module in sorted(each.name for each in pkgutil.iter_modules(__path__) if not each.ispkg):
        made = getattr(import_module(f"{__name__}.{module}"), module, None)
        if isinstance(made, Experiment):
            found[made.name] = made
    return found


def named_experiment(name: str) -> Experiment:
    """Return the experiment of that name, or raise HolterError with the nearest name."""
    known = all_experiments()
    if name not in known:
        near = get_close_matches(name, list(known), n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"the experiments are {', '.join(known)}."
        raise HolterError(f"There is no experiment {name!r}; {hint}")
    return known[name]
