"""Inputs of validation beside the inputs of training."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from holter.diagnosis.facts.baseline import readings
from holter.diagnosis.facts.robust import Values
from holter.record.signals import INPUT_MEAN, INPUT_STD, VAL_INPUT_MEAN, VAL_INPUT_STD

if TYPE_CHECKING:
    from holter.diagnosis.facts import Facts

FAR_RATIO = 3.0  # of the standard deviations
FAR_SHIFT = 1.5  # of the means, in standard deviations of the training inputs
FAR_SCORE = 8.0  # standard deviations between batches, which are not normally distributed
_MIN_PASSES, _MIN_BATCHES = 2, 8  # readings needed
_SIGMA_PER_MAD = 1.4826


@dataclass(frozen=True, slots=True)
class Inputs:
    """Means and standard deviations of what a model is given in training and in validation."""

    mean: float
    std: float
    validation_mean: float
    validation_std: float
    mean_score: float  # difference of the means, in standard deviations between batches
    std_score: float

    @property
    def ratio(self) -> float:
        """Standard deviation in validation over that in training."""
        return self.validation_std / self.std

    @property
    def shift(self) -> float:
        """Difference of the means in standard deviations of the training inputs."""
        return abs(self.validation_mean - self.mean) / self.std

    def differ(self, max_ratio: float, max_shift: float, min_score: float) -> bool:
        """Whether they are far apart, and farther than training batches are from one another."""
        spread = not 1 / max_ratio < self.ratio < max_ratio and self.std_score > min_score
        moved = self.shift > max_shift and self.mean_score > min_score
        return spread or moved


def inputs(facts: "Facts", model: str) -> Inputs | None:
    """Return the inputs of a model in the second half of training and validation, or None."""
    needed = (INPUT_MEAN, INPUT_STD, VAL_INPUT_MEAN, VAL_INPUT_STD)
    recorded = [readings(facts, signal, model) for signal in needed]
    counts = [len(values) for values in recorded]
    if min(counts) < _MIN_PASSES or min(counts[:2]) < _MIN_BATCHES:
        return None
    halves = [values[len(values) // 2 :] for values in recorded]
    mean, std, val_mean, val_std = (float(np.median(values)) for values in halves)
    if std <= 0:
        return None
    return Inputs(
        mean=mean,
        std=std,
        validation_mean=val_mean,
        validation_std=val_std,
        mean_score=abs(val_mean - mean) / max(_spread(halves[0]), 1e-6 * std),
        std_score=abs(val_std - std) / max(_spread(halves[1]), 1e-6 * std),
    )


def has_other_inputs(facts: "Facts") -> bool:
    """Whether a model is given inputs in validation that are far from those of training."""
    if VAL_INPUT_MEAN not in facts.run:
        return False
    compared = [inputs(facts, model) for model in facts.run[VAL_INPUT_MEAN]]
    return any(
        model_inputs is not None and model_inputs.differ(FAR_RATIO, FAR_SHIFT, FAR_SCORE)
        for model_inputs in compared
    )


def _spread(values: Values) -> float:
    return _SIGMA_PER_MAD * float(np.median(np.abs(values - np.median(values))))
