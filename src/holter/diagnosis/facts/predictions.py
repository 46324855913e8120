"""How predictions differ between samples, and how often they are correct."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from holter.diagnosis.facts.baseline import Baseline, last, most_frequent, readings
from holter.diagnosis.facts.robust import clipped_mean
from holter.record.signals import ACCURACY, OUTPUT_SPREAD, TARGET_CLASSES, TARGET_ENTROPY

if TYPE_CHECKING:
    from holter.diagnosis.facts import Facts

_FEW = 3  # readings
_COLLAPSED = 1e-3  # of the initial spread that predictions keep which no longer differ
_NOTHING = 1e-3  # share of the baseline that predictions explain which hardly differ
_GROWS = 1.25  # times the earlier spread of predictions, once they tell inputs apart


@dataclass(frozen=True, slots=True)
class Predictions:
    """The later half of the readings of predictions since some step."""

    spread: float  # between samples
    worth: float  # share of the baseline that this spread could explain, if all of it were right
    last: int  # the step of the last reading
    grows: bool  # whether they differ more and more
    accuracy: float | None = None
    chance: float = 0.0  # the largest accuracy that may still be chance
    prior: float = 0.0  # accuracy of always predicting the most frequent class
    is_telling: bool = False  # whether an accuracy at chance means that nothing was learned
    initial: float = 0.0  # spread of the first predictions of the training
    collapsed: bool = False  # whether they differed initially and no longer do

    @property
    def are_helpful(self) -> bool:
        """Whether more of them are correct than chance gives."""
        return self.accuracy is not None and self.accuracy > self.chance


def predictions_since(facts: "Facts", baseline: Baseline, onset: int) -> Predictions | None:
    """Return what predictions were like since step `onset`, or None if too few were read."""
    series = facts.run[OUTPUT_SPREAD].get(baseline.function) if OUTPUT_SPREAD in facts.run else None
    if series is None or len(steps := series.steps[series.steps >= onset]) < _FEW:
        return None
    begin, last_read = int(steps[len(steps) // 2]), int(steps[-1])
    if not len(spreads := readings(facts, OUTPUT_SPREAD, baseline.function, begin)):
        return None
    spread = float(np.median(spreads))
    initial = float(np.median(readings(facts, OUTPUT_SPREAD, baseline.function)[:_FEW]))
    before, latest = np.array_split(spreads, 2)
    grows = bool(len(spreads) >= 2 * _FEW and np.median(latest) > _GROWS * np.median(before))
    largest_class, prior, scale = None, 0.0, 1 / baseline.level
    if baseline.signal is TARGET_ENTROPY:
        largest_class = most_frequent(facts, baseline.function)
        prior = 0.5 if largest_class is None else largest_class
        scale *= 1 - prior
        if baseline.function == "binary_cross_entropy":  # predictions are probabilities there
            scale /= max(prior * (1 - prior), 1e-6) ** 2
    worth, initial_worth = scale * spread**2, scale * initial**2
    read = Predictions(
        spread,
        worth,
        last_read,
        grows,
        initial=initial,
        collapsed=spread < _COLLAPSED * initial and worth < _NOTHING < initial_worth,
    )
    accuracies = readings(facts, ACCURACY, baseline.function, begin)
    if largest_class is None or len(accuracies) < _FEW:
        return read
    accuracy, error = clipped_mean(accuracies)
    return replace(
        read,
        accuracy=accuracy,
        chance=prior + max(3 * error, 0.02 * (1 - prior)),
        prior=prior,
        is_telling=has_like_classes(facts, baseline, prior) and error < 0.03 * (1 - prior),
    )


def has_like_classes(facts: "Facts", baseline: Baseline, prior: float) -> bool:
    """Whether no class is so frequent that always predicting it is often correct."""
    classes = last(facts, TARGET_CLASSES, baseline.function) or 2
    return prior <= 2 / classes and prior < 0.6
