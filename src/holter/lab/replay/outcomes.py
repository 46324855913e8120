"""What the steps of a replay gave: losses, gradient norms, and what an update spoiled."""

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor, nn

from holter.record.events import WindowMeasure


class StepOutcome(NamedTuple):
    """What one step of a replay gave."""

    loss: float  # as a run records it: the mean of its micro-batches
    norm: float  # of the gradient before the update
    spoiled: bool  # a weight, a buffer or a moment is not finite after the update
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

    def measure(self, failing: int, onset: int) -> WindowMeasure:
        """Summarise it around the failing step, and the one with which the failure began."""
        alike = self.like(failing)
        losses = dict(zip(alike.steps, alike.losses, strict=True))
        after = [loss for step, loss in losses.items() if step >= failing]
        return WindowMeasure(
            statistics.median(after) if after else None,
            self.first_bad,
            self.error,
            losses.get(onset),
        )


def gradient_norm(gradients: Sequence[Tensor]) -> float:
    """Return the total norm; it is finite if every element is, however large these are."""
    norm = float(nn.utils.get_total_norm(gradients)) if gradients else 0.0
    if math.isfinite(norm) or not all(bool(each.isfinite().all()) for each in gradients):
        return norm
    largest = max(float(each.abs().max()) for each in gradients if each.numel())
    return largest * math.sqrt(sum(float((each / largest).square().sum()) for each in gradients))


def pieces(steps: Sequence[int], values: Sequence[float]) -> Iterator[tuple[int, list[float]]]:
    """Yield pieces whose steps follow each other, with the first step of each."""
    piece: list[float] = []
    for place, (step, value) in enumerate(zip(steps, values, strict=True)):
        if piece and step != steps[place - 1] + 1:
            yield steps[place - 1] + 1 - len(piece), piece
            piece = []
        piece.append(value)
    if piece:
        yield steps[-1] + 1 - len(piece), piece
