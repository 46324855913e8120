"""Metrics of an evaluation pass, from what was counted of it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from holter.record.events import (
    OCTAVE_BINS,
    OCTAVES,
    ClassCount,
    NumberSums,
    PassMeasured,
    ReliabilityBin,
    ScoreCounts,
)

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)

Values = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ClassMetrics:
    """Precision, recall and F1 of one class."""

    label: int
    support: int
    predicted: int
    right: int
    loss: float

    @property
    def precision(self) -> float:
        """Share of its predictions that are right; 0 if it is never predicted."""
        return self.right / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        """Share of its targets that are predicted; 0 if there are none."""
        return self.right / self.support if self.support else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        total = self.predicted + self.support
        return 2 * self.right / total if total else 0.0


@dataclass(frozen=True, slots=True)
class Classification:
    """How good the predictions of one class among several are."""

    targets: int
    classes: int  # with a target
    right: int
    largest: int  # targets of the most frequent class
    balanced: float  # mean recall
    each: tuple[ClassMetrics, ...]

    @property
    def accuracy(self) -> float:
        """Share of the targets that are predicted."""
        return self.right / self.targets

    @property
    def majority(self) -> float:
        """Accuracy of always predicting the most frequent class."""
        return self.largest / self.targets

    @property
    def chance(self) -> float:
        """Balanced accuracy of any prediction that ignores the inputs."""
        return 1 / self.classes

    @property
    def macro_f1(self) -> float:
        """Mean F1 of the classes that occur as target or prediction."""
        return float(np.mean([metrics.f1 for metrics in self.each]))

    @property
    def weighted_f1(self) -> float:
        """Mean F1 of the classes, weighted by their targets."""
        total = sum(metrics.f1 * metrics.support for metrics in self.each)
        return total / max(sum(metrics.support for metrics in self.each), 1)

    def worst(self, most: int) -> list[ClassMetrics]:
        """Return the classes with the lowest F1 among those with targets."""
        present = [metrics for metrics in self.each if metrics.support]
        return sorted(present, key=lambda metrics: (metrics.f1, -metrics.support))[:most]


@dataclass(frozen=True, slots=True)
class Calibration:
    """How far the confidence of predictions is from the share of them that is right."""

    error: float  # expected calibration error
    noise: float  # what a calibrated model would show for lack of samples
    overconfidence: float  # mean confidence minus accuracy


@dataclass(frozen=True, slots=True)
class Regression:
    """How good the predictions of numbers are."""

    r2: float  # NaN where the targets do not vary
    rmse: float
    mae: float
    bias: float
    spread: float  # standard deviation of the predictions over that of the targets
    quantiles: tuple[float, ...]  # of the residuals, at QUANTILES


def classification(what: PassMeasured) -> Classification | None:
    """Return the metrics of classes, or of yes and no; None for other targets."""
    if what.classes is not None:
        counts = what.classes
        each = tuple(ClassMetrics(*count) for count in counts.each)
        return Classification(
            what.targets, counts.present, counts.right, counts.largest, counts.recall, each
        )
    if what.scores is None or what.scores.units != 1:
        return None
    classes = [ClassMetrics(*count) for count in yes_and_no(what.scores, what.targets)]
    present = [metrics for metrics in classes if metrics.support]
    return Classification(
        targets=what.targets,
        classes=len(present),
        right=sum(metrics.right for metrics in classes),
        largest=max(metrics.support for metrics in classes),
        balanced=float(np.mean([metrics.recall for metrics in present])),
        each=tuple(metrics for metrics in classes if metrics.support or metrics.predicted),
    )


def yes_and_no(scores: ScoreCounts, targets: int) -> tuple[ClassCount, ClassCount]:
    """Return the only unit as two classes, 0 and 1."""
    (unit,) = scores.each
    no, denied = targets - unit.yes, targets - unit.predicted
    wrong = unit.predicted - unit.right  # predicted yes, and it was no
    return (
        ClassCount(0, no, denied, no - wrong, float("nan")),
        ClassCount(1, unit.yes, unit.predicted, unit.right, float("nan")),
    )


def unit_metrics(scores: ScoreCounts) -> tuple[ClassMetrics, ...]:
    """Return precision, recall and F1 of each unit that answers yes or no."""
    return tuple(
        ClassMetrics(unit.unit, unit.yes, unit.predicted, unit.right, float("nan"))
        for unit in scores.each
    )


def auroc(scores: ScoreCounts) -> float | None:
    """Return the area under the ROC curve; scores of one bin count as ties."""
    yes, no = np.asarray(scores.yes, float), np.asarray(scores.no, float)
    pairs = yes.sum() * no.sum()
    if not pairs:
        return None
    return float((yes * (no.cumsum() - no / 2)).sum() / pairs)


def average_precision(scores: ScoreCounts) -> float | None:
    """Return the mean precision over the recall, from the highest score down."""
    yes, no = np.asarray(scores.yes, float)[::-1], np.asarray(scores.no, float)[::-1]
    if not yes.sum():
        return None
    found, all_found = yes.cumsum(), (yes + no).cumsum()
    return float((yes * found / np.maximum(all_found, 1)).sum() / yes.sum())


def calibration(bins: Sequence[ReliabilityBin]) -> Calibration | None:
    """Return the calibration error and what chance alone would make of it."""
    count, confidence, right = np.asarray(bins, float).reshape(-1, 3).T
    total = count.sum()
    if not total or not np.isfinite(confidence).all():
        return None
    share = np.clip(confidence / np.maximum(count, 1), 0, 1)
    noise = np.sqrt(2 / np.pi * count * share * (1 - share)).sum() / total
    return Calibration(
        error=float(np.abs(confidence - right).sum() / total),
        noise=float(noise),
        overconfidence=float((confidence - right).sum() / total),
    )


def regression(sums: NumberSums) -> Regression:
    """Return how much of the variance is explained, and how large the residuals are."""
    varies = sums.variance > 0
    return Regression(
        r2=1 - sums.square / sums.variance if varies else float("nan"),
        rmse=float(np.sqrt(sums.square)),
        mae=sums.absolute,
        bias=sums.bias,
        spread=float(np.sqrt(sums.spread / sums.variance)) if varies else float("nan"),
        quantiles=tuple(_quantiles(sums).tolist()),
    )


def _quantiles(sums: NumberSums) -> Values:
    """Return quantiles of the residuals to within a tenth of their size."""
    below, above = np.asarray(sums.below, float), np.asarray(sums.above, float)
    sizes = 2.0 ** ((np.arange(len(above)) + 0.5) / OCTAVE_BINS - OCTAVES)
    counts = np.concatenate([below[::-1], [sums.exact], above])
    values = np.concatenate([-sizes[::-1], [0.0], sizes])
    share = counts.cumsum() / counts.sum()
    found: Values = values[np.searchsorted(share, QUANTILES).clip(0, len(values) - 1)]
    return found
