"""Values that a script printed for held-out data, and which computation gives exactly these."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from holter.diagnosis.facts.evaluations import Evaluation, evaluations
from holter.record import Series
from holter.record.events import PassMeasured
from holter.record.signals import VAL_LOSS_OF_BATCHES

if TYPE_CHECKING:
    from holter.diagnosis.facts import Facts

_ROUNDED = 6e-4  # absolute and relative: prints have three or four digits
_SUMMED = 3  # passes that tell a sum from a loss
_COARSE = 6e-3  # a value that is rounded to two digits


@dataclass(frozen=True, slots=True)
class Match:
    """What a printed value is, on every step on which it was printed."""

    metric: str
    data: str
    steps: tuple[int, ...]
    printed: float  # the last
    proper: float  # what it should be; NaN if nothing says so


def of_training(
    facts: "Facts",
    printed: Mapping[int, float],
    of: Callable[[PassMeasured], Mapping[str, float]],
    *,
    min_passes: int,
) -> Match | None:
    """Return a metric of the training data that was printed as that of others, or None.

    Only where no other data were evaluated in these steps.
    """
    others = {
        event.step
        for measured in facts.measured
        if measured.split != "train"
        for event in measured.passes
    }
    for measured in facts.measured:
        if measured.split != "train":
            continue
        computed = {event.step: of(event.what) for event in measured.passes}
        steps = [step for step in printed if step in computed]
        if len(steps) < min_passes or not others.isdisjoint(steps):
            continue
        for metric in computed[steps[-1]]:
            pairs = [(printed[step], computed[step].get(metric, float("nan"))) for step in steps]
            if all(_equal(one, other) for one, other in pairs) and _varies(pairs):
                last = printed[steps[-1]]
                return Match(metric, measured.data, tuple(steps), last, float("nan"))
    return None


def of_batches(
    facts: "Facts", printed: Mapping[int, float], *, min_passes: int, min_gap: float
) -> Match | None:
    """Return a validation loss that was printed as the mean of unequal batches, or None."""
    for evaluation, proper in _losses(facts):
        batches = _by_step(facts.run[VAL_LOSS_OF_BATCHES].get(evaluation.owner))
        steps = [step for step in printed if step in batches and step in proper]
        if len(steps) < min_passes:
            continue
        same = all(_equal(printed[step], batches[step]) for step in steps)
        highest = max(proper[step] for step in steps)  # beside it, a loss near 0 hardly differs
        far = [
            abs(printed[step] - proper[step]) > min_gap * max(highest, 1e-12)
            and not _equal(printed[step], proper[step])  # a loss of 1e-5 is printed as 0.0000
            for step in steps
        ]
        if same and 2 * sum(far) > len(far):
            last = steps[-1]
            return Match("loss", evaluation.data, tuple(steps), printed[last], proper[last])
    return None


def of_all_passes(facts: "Facts", printed: Mapping[int, float], *, min_passes: int) -> Match | None:
    """Return a validation loss that was printed as the sum of all passes so far, or None."""
    for evaluation, proper in _losses(facts):
        steps = [step for step in printed if step in proper]
        if len(steps) < max(min_passes, _SUMMED) or steps != list(proper):
            continue
        if _equal(printed[steps[-1]], proper[steps[-1]]):  # what was printed is right
            continue
        for losses in (proper, _by_step(facts.run[VAL_LOSS_OF_BATCHES].get(evaluation.owner))):
            sums = np.cumsum([losses.get(step, float("nan")) for step in steps])
            if all(_equal(printed[step], total) for step, total in zip(steps, sums, strict=True)):
                last = steps[-1]
                return Match("loss", evaluation.data, tuple(steps), printed[last], proper[last])
    return None


def _losses(facts: "Facts") -> Iterator[tuple[Evaluation, dict[int, float]]]:
    """Yield the passes over data that are not trained on, with the loss by step."""
    if VAL_LOSS_OF_BATCHES in facts.run:
        for evaluation in evaluations(facts):
            if evaluation.split != "train" and evaluation.owner in facts.run[VAL_LOSS_OF_BATCHES]:
                yield evaluation, _by_step(evaluation.losses)


def _by_step(series: Series | None) -> dict[int, float]:
    if series is None:
        return {}
    return dict(zip(series.steps.tolist(), series.values.tolist(), strict=True))


def _equal(printed: float, computed: float) -> bool:
    """Whether two values are one up to the digits that are printed; percentages count, too."""
    return any(
        abs(printed - value) <= min(_ROUNDED * (1 + abs(value)), _COARSE)
        for value in (computed, 100 * computed)
    )


def _varies(pairs: list[tuple[float, float]]) -> bool:
    """Whether agreement says something: a value that stays the same may be anything."""
    return max(one for one, _ in pairs) - min(one for one, _ in pairs) > 2 * _ROUNDED
