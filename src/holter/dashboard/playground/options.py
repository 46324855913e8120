"""What may be chosen in the playground, and what a query chose."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holter.record.errors import HolterError

Value = str | float | int


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several words."""

    name: str
    label: str
    words: tuple[str, ...]
    default: str
    help: str = ""

    def read(self, given: str) -> str:
        """Return the word, or raise a sentence that lists them."""
        if given not in self.words:
            raise HolterError(f"{self.label} is one of {', '.join(self.words)}.")
        return given

    def fields(self) -> dict[str, Any]:
        """Return the control for the page."""
        return {
            "kind": "choice",
            "name": self.name,
            "label": self.label,
            "words": list(self.words),
            "default": self.default,
            "help": self.help,
        }


@dataclass(frozen=True, slots=True)
class Number:
    """A number within bounds; `log` where it is chosen on a log scale."""

    name: str
    label: str
    low: float
    high: float
    default: float
    whole: bool = False
    log: bool = False
    help: str = ""

    def read(self, given: str) -> float | int:
        """Return the number, or raise a sentence that states the bounds."""
        try:
            value = int(given) if self.whole else float(given)
        except ValueError:
            value = math.nan
        if not self.low <= value <= self.high:
            raise HolterError(f"{self.label} is a number from {self.low:g} to {self.high:g}.")
        return value

    def fields(self) -> dict[str, Any]:
        """Return the control for the page."""
        return {
            "kind": "number",
            "name": self.name,
            "label": self.label,
            "low": self.low,
            "high": self.high,
            "default": self.default,
            "whole": self.whole,
            "log": self.log,
            "help": self.help,
        }


Option = Choice | Number


def read(options: Sequence[Option], query: Mapping[str, str]) -> dict[str, Value]:
    """Return a value for every option, from the query or by default; ignore anything else."""
    return {
        option.name: option.read(query[option.name]) if option.name in query else option.default
        for option in options
    }


NETWORK: tuple[Option, ...] = (
    Choice(
        "activation",
        "Activation",
        ("relu", "leaky-relu", "gelu", "tanh", "sigmoid", "linear"),
        "relu",
    ),
    Choice(
        "init",
        "Initialisation",
        ("he", "xavier", "pytorch", "orthogonal", "small", "large", "zeros"),
        "he",
        "pytorch: the default of nn.Linear; small: standard deviation 0.01; large: 3 times He",
    ),
    Number("depth", "Hidden layers", 1, 40, 8, whole=True),
    Choice("norm", "Normalisation", ("none", "batch", "layer"), "none"),
    Choice("residual", "Residual connections", ("no", "yes"), "no"),
    Choice("optimizer", "Optimizer", ("sgd", "momentum", "adam", "adamw"), "sgd"),
    Number("lr", "Learning rate", 1e-5, 100, 0.05, log=True),
    Number("decay", "Weight decay", 0, 2, 0),
    Number("bias", "Initial bias", -3, 3, 0, help="below 0, ReLUs are born dead"),
    Number("steps", "Steps", 20, 200, 100, whole=True),
)

SCHEDULE: tuple[Option, ...] = (
    Choice("kind", "Schedule", ("warmup-cosine", "one-cycle"), "warmup-cosine"),
    Number("peak", "Peak learning rate", 1e-6, 10, 3e-4, log=True),
    Number("steps", "Steps", 10, 100_000, 10_000, whole=True, log=True),
    Number("warmup", "Warm-up, % of the steps", 0, 90, 5),
    Number("floor", "Final rate, % of the peak", 0, 100, 0, help="of warmup-cosine"),
)
