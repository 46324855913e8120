"""What the steps of a replay gave: losses, gradient norms, and what an update spoiled."""

import math
import statistics
from dataclasses import dataclass
from typing import Any, NamedTuple

from torch import Tensor

from holter.record.events import WindowMeasure

_WHOLE = 1e-6  # relative: closer to a whole number than that, a number is one


class StepOutcome(NamedTuple):
    """What one step of a replay gave."""

    loss: float  # the mean of its micro-batches
    norm: float  # of the gradient before the update
    spoiled: bool  # a weight, a buffer or a moment is not finite after the update
    total: float  # what a run records: the sum of all that backward was called on
    kind: int  # the phase that it ran, or -1 for all of them

    @property
    def is_finite(self) -> bool:
        """Whether everything is finite: loss, gradient, and what the update left."""
        return math.isfinite(self.loss) and math.isfinite(self.norm) and not self.spoiled


@dataclass(frozen=True, slots=True)
class ReplayTrial:
    """One pass through a window: a loss and a gradient norm for each step."""

    steps: tuple[int, ...]
    outcomes: tuple[StepOutcome, ...]
    error: str = ""  # what ended it early, if something did

    @property
    def losses(self) -> tuple[float, ...]:
        """The loss of each step."""
        return tuple(outcome.loss for outcome in self.outcomes)

    @property
    def norms(self) -> tuple[float, ...]:
        """The gradient norm of each step."""
        return tuple(outcome.norm for outcome in self.outcomes)

    @property
    def first_bad(self) -> int | None:
        """The first step with a loss, gradient, weight or moment that is not finite."""
        for step, outcome in zip(self.steps, self.outcomes, strict=True):
            if not outcome.is_finite:
                return step
        return None

    def like(self, step: int) -> "ReplayTrial":
        """Return the part of it that ran the phase of a step."""
        kinds = dict(zip(self.steps, (each.kind for each in self.outcomes), strict=True))
        rows = zip(self.steps, self.outcomes, strict=True)
        kept = [row for row in rows if row[1].kind == kinds.get(step, row[1].kind)]
        steps, outcomes = zip(*kept, strict=True) if kept else ((), ())
        return ReplayTrial(steps, outcomes, self.error)

    def measure(self, failing: int) -> WindowMeasure:
        """Summarise it around the failing step."""
        alike = self.like(failing)
        rows = zip(alike.steps, alike.losses, strict=True)
        after = [loss for step, loss in rows if step >= failing]
        return WindowMeasure(
            statistics.median(after) if after else None, self.first_bad, self.error
        )


def divisor(loss: Tensor) -> float:
    """Return the whole number by which a script divided a loss last, as for accumulation, or 1."""
    function = loss.grad_fn
    name = type(function).__name__
    if function is None or name not in ("DivBackward0", "MulBackward0"):
        return 1.0
    node: Any = function
    other = node._saved_other  # noqa: SLF001
    if not isinstance(other, Tensor) or other.numel() != 1 or not float(other):
        return 1.0
    number = float(other) if name == "DivBackward0" else 1 / float(other)
    return round(number) if abs(number - round(number)) < _WHOLE * number else 1.0
