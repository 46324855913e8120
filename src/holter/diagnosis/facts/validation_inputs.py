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
# For what is reported beside a bad validation alone.
NEAR_RATIO = 2.0  # of the standard deviations
NEAR_SHIFT = 1.0  # of the means, in the smaller standard deviation
NEAR_SCORE = 3.0  # standard deviations between batches
_BESIDE = 0.5  # of that shift, which is a second difference beside that of the scale
_AS_MASKED = 0.1  # deviation of the shares of mean and mean square that a mask leaves
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

    @property
    def small_shift(self) -> float:
        """Difference of the means in the smaller of the two standard deviations."""
        least = min(self.std, self.validation_std)
        return abs(self.validation_mean - self.mean) / least if least > 0 else np.inf

    def differ(self, max_ratio: float, max_shift: float, min_score: float) -> bool:
        """Whether they are far apart, and farther than training batches are from one another."""
        spread = not 1 / max_ratio < self.ratio < max_ratio and self.std_score > min_score
        moved = self.shift > max_shift and self.mean_score > min_score
        return spread or moved

    def are_apart(self, max_ratio: float, max_shift: float, min_score: float) -> tuple[bool, bool]:
        """Whether scale and mean differ by less than that, but in no way that training explains.

        Noise in training makes its scale larger and leaves the mean. Masks, erased parts and
        padding with zeros leave the same share of the mean and of the mean square.
        """
        if self.ratio <= 0 or self._is_masked:
            return False, False
        score = abs(np.log(self.ratio)) * self.std_score / max(abs(self.ratio - 1), 1e-9)
        scaled = not 1 / max_ratio < self.ratio < max_ratio and score > min_score
        is_shifted = self.mean_score > min_score
        moved = is_shifted and self.small_shift > (_BESIDE if scaled else 1) * max_shift
        if scaled and self.ratio < 1 and not moved:
            return False, False
        return scaled, moved

    @property
    def _is_masked(self) -> bool:
        """Whether one of the two is the other with a part of its values replaced by zeros."""
        squares = self.mean**2 + self.std**2, self.validation_mean**2 + self.validation_std**2
        if self.mean * self.validation_mean <= 0:
            return False
        left = self.validation_mean / self.mean
        return bool(abs(squares[1] / squares[0] / left - 1) < _AS_MASKED)


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
