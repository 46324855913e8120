"""The end of the training loss beside the loss of the best constant prediction.

Three things look like learning and are none: a transient of the first steps, predictions that vary
without being right, and a few memorised samples. The first is left out by reading the end of the
curve alone, the second by what predictions are worth, the third by the validation loss.
"""

from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import TYPE_CHECKING

import numpy as np

from holter.diagnosis.facts.baseline import Baseline, most_frequent
from holter.diagnosis.facts.curve import Curve, levels, warmed_up
from holter.diagnosis.facts.predictions import (
    Predictions,
    has_like_classes,
    predictions_since,
)
from holter.diagnosis.facts.robust import clipped_mean
from holter.diagnosis.facts.validation import Curves, rises
from holter.record.findings import Evidence
from holter.record.signals import LOSS, TARGET_ENTROPY, VAL_LOSS, VAL_R2, Signal

if TYPE_CHECKING:
    from holter.diagnosis.facts import Facts

MIN_STEPS = 50
NEAR = 0.02
MAX_NOISE = 0.05
WORTH = 0.01
PATIENCE = 200

_FEWEST = 20  # losses whose mean has a known error, however skewed they are
_FAR = 2.0  # times the constant prediction from which correct predictions make up for no loss
_BEYOND = 100.0  # times the constant prediction at which a fall of the loss means nothing
_MEMORISED = 0.2  # gain in training, as a share, that memorised samples give without learning
_CLOSE = 0.05  # gain in validation, as a share, that other targets may explain
_FALLS = 0.005  # fall from the first validation to the last, as a share, that is a trend
_FITTED = 0.99  # share of explained variance above which the rest tells little about the whole
_NO_GAIN = 0.002  # gain in validation, as a share of the loss, that counts as none
_NO_MORE_CORRECT = 0.05  # the same, as a share of the errors


class Standing(Enum):
    """How the end of a loss compares with the best constant prediction."""

    BETTER = auto()
    FALLING = auto()  # not better yet, but on its way
    VARIED = auto()  # the loss cannot tell, and predictions vary enough to be better
    YOUNG = auto()  # no better after few steps, while predictions vary more and more
    NOISY = auto()  # noise would hide a gain
    AT_CHANCE = auto()


@dataclass(frozen=True, slots=True)
class Chance:
    """The end of a loss curve beside the best constant prediction, both per element."""

    baseline: Baseline
    curve: Curve  # after warm-up
    level: float  # mean of the last third
    error: float  # its standard error
    latest: float  # mean of the last tenth
    latest_error: float
    fall: float  # within the last third, from one half to the other
    earlier_fall: float  # from the middle third to the last
    onset: int  # the step since which the loss is near the constant prediction, or above it
    predictions: Predictions | None
    standing: Standing = Standing.AT_CHANCE
    validation: Evidence | None = None  # if it is no better, however low the loss
    signal: Signal = LOSS  # of the curve

    @property
    def constant(self) -> float:
        """The loss of the best constant prediction."""
        return self.baseline.level

    @property
    def gain(self) -> float:
        """How far the loss is surely below the best constant prediction; 0 if it is not."""
        ends = [(self.level, self.error)]
        if len(self.curve.part(0.9)) >= _FEWEST:
            ends.append((self.latest, self.latest_error))
        return max(
            (self.constant - mean for mean, error in ends if self.constant - mean > 3 * error),
            default=0.0,
        )

    @property
    def is_above(self) -> bool:
        """Whether the loss is surely above the best constant prediction."""
        return self.level - 3 * self.error > self.constant

    def falls_by(self, least: float) -> bool:
        """Whether the loss falls at the end by `least` or more, and by more than its noise.

        A loss that comes back from an explosion, or is far from any prediction, is not on its way.
        """
        first = self.curve.values[0] / self.baseline.scale
        if self.latest >= min(first, _BEYOND * self.constant):
            return False
        slow = max(4 * np.sqrt(2) * self.error, least)
        is_steady = self.fall > self.earlier_fall / 4  # half of it if the trend is a line
        return self.fall > max(4 * self.error, least) or (self.earlier_fall > slow and is_steady)

    @property
    def lasts(self) -> int:
        """The number of steps since the onset."""
        return self.curve.span[1] - self.onset

    def __str__(self) -> str:
        trend = {
            Standing.FALLING: f" and still falling, by {self.fall:.2g} within the last third",
            Standing.NOISY: f", too noisy to judge (± {self.error:.2g})",
            Standing.YOUNG: f" after {self.lasts} steps, while predictions vary more and more",
        }.get(self.standing, "")
        name = "the loss" if self.signal is LOSS else f"the term {self.baseline.function}"
        return (
            f"{name} is {self.latest:.3g} at the end{trend}; the best constant prediction gives"
            f" {self.constant:.3g}"
        )


def chance_of(
    facts: "Facts",
    *,
    min_steps: int = MIN_STEPS,
    near: float = NEAR,
    max_noise: float = MAX_NOISE,
    worth: float = WORTH,
    patience: int = PATIENCE,
) -> Chance | str:
    """Compare the end of the loss with the best constant prediction, or say what is missing.

    The loss is better if it is below by three standard errors and by a share of `near`, or if more
    predictions are correct than by chance. A small gain is that of memorised samples if no
    validation is better than the best constant prediction.
    """
    curve, baseline = facts.signed_curve, facts.baseline
    if isinstance(curve, str):
        return curve
    if isinstance(baseline, str):
        return baseline
    limits = Limits(min_steps, near, max_noise, worth, patience)
    chance = compared(facts, curve, baseline, limits)
    if isinstance(chance, str) or chance.gain >= _MEMORISED * chance.constant:
        return chance
    chance = replace(chance, validation=validation_at_chance(facts, baseline))
    return replace(chance, standing=_standing(chance, limits))


@dataclass(frozen=True, slots=True)
class Limits:
    """The options of the comparison."""

    min_steps: int = MIN_STEPS
    near: float = NEAR
    max_noise: float = MAX_NOISE
    worth: float = WORTH
    patience: int = PATIENCE


def compared(
    facts: "Facts", curve: Curve, baseline: Baseline, limits: Limits, signal: Signal = LOSS
) -> Chance | str:
    """Compare the end of a curve of `signal` with a baseline, without regard to validation."""
    warm = warmed_up(facts, curve)
    if warm is None:
        return "the learning rate is still warming up"
    curve = curve.since(warm)
    if len(curve) < limits.min_steps:
        return f"{len(curve)} of the {limits.min_steps} losses needed after warm-up"
    chance = replace(_measure(facts, curve, baseline, limits.near), signal=signal)
    return replace(chance, standing=_standing(chance, limits))


def validation_at_chance(facts: "Facts", baseline: Baseline) -> Evidence | None:
    """Return the validation losses if they are no better than the best constant prediction.

    Either none ever was, and they do not fall; or they were close to it at best, and rose back.
    The variance is that of the validation targets where it is known. Class frequencies are those
    of the training targets: the return value is None if some class is frequent in training, because
    it may be rare in validation.
    """
    curves = facts.validation if VAL_LOSS in facts.run and LOSS in facts.run else ""
    if isinstance(curves, str) or not curves.is_comparable or len(curves) < 2:
        return None
    final, level = curves.final_validation, _validation_level(facts, curves, baseline)
    lowest, highest = float(curves.validation.min()), float(curves.validation.max())
    is_never_better = (
        lowest >= (1 - _NO_GAIN) * level
        and curves.validation[-1] >= (1 - _FALLS) * curves.validation[0]
    )
    is_lost = (
        lowest >= (1 - _CLOSE) * level and final >= (1 - NEAR) * level and rises(curves.validation)
    )
    if not is_never_better and not is_lost:
        return None
    if baseline.signal is TARGET_ENTROPY:
        prior = most_frequent(facts, baseline.function)
        if prior is None or not has_like_classes(facts, baseline, prior):
            return None
        correct = float(np.nanmax(curves.accuracy)) if np.isfinite(curves.accuracy).any() else 0.0
        if correct > prior + _NO_MORE_CORRECT * (1 - prior):
            return None
    return Evidence(
        VAL_LOSS,
        curves.span,
        f"{final:.3g} at the end, {lowest:.3g} to {highest:.3g} in {len(curves)} passes; the best"
        f" constant prediction gives {level:.3g}",
        curves.function,
    )


def _validation_level(facts: "Facts", curves: Curves, baseline: Baseline) -> float:
    """Return the loss of the best constant prediction in validation, if it is known there."""
    if VAL_R2 not in facts.run or curves.function != "mse_loss":
        return baseline.level
    explained = facts.run[VAL_R2].get(curves.owner)
    if explained is None or len(explained) != len(curves):
        return baseline.level
    with np.errstate(divide="ignore", invalid="ignore"):
        levels = curves.validation / (1 - explained.values)
    known = levels[np.isfinite(levels) & (explained.values < _FITTED)]
    return float(np.median(known)) if len(known) else baseline.level


def _measure(facts: "Facts", curve: Curve, baseline: Baseline, near: float) -> Chance:
    parts = ((2 / 3, 1), (0.9, 1), (1 / 3, 2 / 3), (2 / 3, 5 / 6), (5 / 6, 1))
    means = [clipped_mean(curve.part(*part) / baseline.scale) for part in parts]
    (level, error), (latest, latest_error), (middle, _), (early, _), (late, _) = means
    is_above = level - 3 * error > baseline.level
    onset = _onset(curve, baseline, near, is_above=is_above)
    return Chance(
        baseline,
        curve,
        level,
        error,
        latest,
        latest_error,
        fall=early - late,
        earlier_fall=middle - level,
        onset=onset,
        predictions=predictions_since(facts, baseline, onset),
    )


def _standing(chance: Chance, limits: Limits) -> Standing:
    near, worth = limits.near, limits.worth
    read, is_stuck = chance.predictions, chance.lasts >= limits.patience
    falls = chance.falls_by(near / 4 * chance.constant)
    grows = read is not None and read.grows and worth / 100 < read.worth <= worth
    if chance.validation is not None:
        if falls and chance.latest > chance.constant:
            return Standing.FALLING
        return Standing.YOUNG if grows and not is_stuck else Standing.AT_CHANCE
    is_helpful = read is not None and read.are_helpful and chance.level < _FAR * chance.constant
    if chance.gain > near * chance.constant or is_helpful:
        return Standing.BETTER
    if falls:
        return Standing.FALLING
    if chance.error > limits.max_noise * chance.constant and not chance.is_above:
        return Standing.NOISY
    if grows and not is_stuck:
        return Standing.YOUNG
    if read is None or read.worth <= worth or read.is_telling or chance.is_above:
        return Standing.AT_CHANCE
    if is_stuck and chance.level > chance.constant - chance.error:
        return Standing.AT_CHANCE
    return Standing.BETTER if chance.gain > 0 else Standing.VARIED


def _onset(curve: Curve, baseline: Baseline, near: float, *, is_above: bool) -> int:
    """Return the step since which the loss is near the best constant prediction, or above it."""
    cut = levels(curve, 20)
    allowed = np.maximum(5 * cut.errors / baseline.scale, 2 * near * baseline.level)
    distance = baseline.level - cut.values / baseline.scale
    away = np.flatnonzero((distance if is_above else np.abs(distance)) > allowed)
    return int(cut.steps[min(int(away[-1]) + 1 if len(away) else 0, len(cut.steps) - 1)])
