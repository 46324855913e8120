"""Validation passes beside the training loss of the same time."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from holter.diagnosis.facts.baseline import CROSS_ENTROPIES, last, readings, scale
from holter.diagnosis.facts.robust import Values, midmean
from holter.record import Series
from holter.record.signals import (
    ACCURACY,
    INPUT_FINGERPRINT,
    INPUT_MEAN,
    INPUT_STD,
    LOSS,
    LOSS_ROOT_SHARE,
    LOSS_SUMMED,
    OUTPUT_SIZE,
    OUTPUT_UNITS,
    TARGET_COUNT,
    TARGET_ENTROPY,
    TARGET_LARGEST_CLASS_FRACTION,
    TARGET_STD,
    VAL_ACCURACY,
    VAL_INPUT_FINGERPRINT,
    VAL_INPUT_MEAN,
    VAL_INPUT_STD,
    VAL_LOSS,
    Signal,
)

if TYPE_CHECKING:
    from holter.diagnosis.facts import Facts

_MOST_PASSES = 40  # more of them are taken together
_OF_TRAINING = (OUTPUT_SIZE, OUTPUT_UNITS, TARGET_COUNT, TARGET_STD, ACCURACY, LOSS_SUMMED)
_SIGMA_PER_MAD = 1.4826
_FEW_PASSES, _FEW_BATCHES = 2, 8  # whose readings are needed at least
_SURE = 8.0  # standard deviations from batch to batch: of structured data they are not normal
FAR_RATIO, FAR_SHIFT = 3.0, 1.5  # of inputs: in scale, and in standard deviations
_SPARSE = 3  # training steps a pass: losses without gradients at more steps may be anything


@dataclass(frozen=True, slots=True)
class Curves:
    """A validation loss and the level of the training loss at the same passes.

    `is_comparable` unless training is known to have optimised something else, or the same on
    another scale. `accuracy` is NaN where it is not known.
    """

    function: str  # the owner of the validation loss
    trained: str  # the owner of the training loss
    steps: npt.NDArray[np.int64]  # the last training step before each pass
    validation: Values
    training: Values
    accuracy: Values
    is_comparable: bool
    constant: float | None  # the loss of the best constant prediction

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def span(self) -> tuple[int, int]:
        """The first and the last step."""
        return int(self.steps[0]), int(self.steps[-1])


def curves(facts: "Facts") -> Curves | str:
    """The validation loss that belongs to the training loss; or why there is none to compare."""
    losses = _training_losses(facts)
    if isinstance(losses, str):
        return losses
    trained, loss = losses
    functions = trained_functions(facts)
    function = _function(facts, functions)
    if function is None:
        return "validation is measured by other loss functions than training"
    passes = _finite(facts.run[VAL_LOSS][function])
    if not len(passes):
        return "no validation loss is finite"
    if min(passes.values.min(), loss.values.min()) < 0:
        return "a loss that gets negative has no scale to compare on"
    groups = np.array_split(np.arange(len(passes)), min(len(passes), _MOST_PASSES))
    steps = np.array([passes.steps[group[-1]] for group in groups], np.int64)
    validation = np.array([midmean(passes.values[group].astype(np.float64)) for group in groups])
    training = _levels(loss, steps)
    accuracy = _accuracies(facts, function, passes, groups)
    known = np.isfinite(training)
    if not known.any():
        return "no training loss was read between validation passes"
    return Curves(
        function=function,
        trained=trained,
        steps=steps[known],
        validation=validation[known],
        training=training[known],
        accuracy=accuracy[known],
        is_comparable=_is_comparable(facts, function, functions),
        constant=constant_level(facts, function or next(iter(functions), "")),
    )


def smooth(values: Values) -> Values:
    """The running median of three: one odd pass makes no minimum."""
    padded = np.pad(values, 1, mode="edge")
    return np.median([padded[:-2], padded[1:-1], padded[2:]], axis=0)


def scatter(values: Values) -> float:
    """Standard deviation from pass to pass, whatever the trend: from second differences."""
    if len(values) < 4:
        return float("inf")
    bends = np.abs(np.diff(values, 2)) / np.sqrt(6)
    return _SIGMA_PER_MAD * float(np.median(bends)) or float(np.sqrt(np.mean(bends**2)))


def rise_score(values: Values) -> float:
    """Mann-Kendall: how many standard deviations more pairs of passes rise than chance has it."""
    n = len(values)
    if n < 2:
        return 0.0
    signs = np.sign(values[None, :] - values[:, None])[np.triu_indices(n, 1)]
    return float(signs.sum() / np.sqrt(n * (n - 1) * (2 * n + 5) / 18))


def trained_functions(facts: "Facts") -> tuple[str, ...]:
    """The loss functions that training was seen to call."""
    return tuple(
        dict.fromkeys(
            owner
            for signal in _OF_TRAINING
            if signal in facts.run
            for owner, series in facts.run[signal].items()
            if len(series)
        )
    )


def constant_level(facts: "Facts", function: str) -> float | None:
    """What a model that ignores its input can reach: label entropy, or variance of the targets."""
    if function in CROSS_ENTROPIES:
        return last(facts, TARGET_ENTROPY, function) or None
    deviation = last(facts, TARGET_STD, function) if function == "mse_loss" else None
    return deviation**2 if deviation else None


def chance(facts: "Facts", function: str) -> float | None:
    """The accuracy of always naming the most frequent class."""
    return last(facts, TARGET_LARGEST_CLASS_FRACTION, function or _only(facts, VAL_ACCURACY))


def training_accuracy(facts: "Facts", function: str, since: int = 0) -> float | None:
    """The last known accuracy on training batches, from a step on; None where it is not known."""
    known = readings(facts, ACCURACY, function or _only(facts, ACCURACY), since)
    return float(known[-max(len(known) // 10, 4) :].mean()) if len(known) >= 4 else None


def fitted_accuracy(facts: "Facts", found: Curves) -> float | None:
    """At least how often training is right at last, as far as it is known.

    Accuracies of before count, for they grow. A wrong answer costs a cross-entropy ln 2 or more:
    so a small loss tells as well.
    """
    known = training_accuracy(facts, found.function)
    function = found.function or next(iter(trained_functions(facts)), "")
    if not found.is_comparable or function not in CROSS_ENTROPIES:
        return known
    third = max(len(found) // 3, 1)
    return max(known or 0.0, 1 - midmean(found.training[-third:]) / float(np.log(2)))


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a model is given in training and in validation: means and standard deviations."""

    mean: float
    std: float
    validation_mean: float
    validation_std: float
    mean_score: float  # difference of the means, in standard deviations from batch to batch
    std_score: float

    @property
    def ratio(self) -> float:
        """Standard deviation in validation over that in training."""
        return self.validation_std / self.std

    @property
    def shift(self) -> float:
        """Difference of the means in standard deviations of the training inputs."""
        return abs(self.validation_mean - self.mean) / self.std

    def differ(self, max_ratio: float, max_shift: float) -> bool:
        """Whether they lie far apart, and farther than batches do from one another."""
        spread = not 1 / max_ratio < self.ratio < max_ratio and self.std_score > _SURE
        moved = self.shift > max_shift and self.mean_score > _SURE
        return spread or moved


def inputs(facts: "Facts", model: str) -> Inputs | None:
    """The inputs of a model in the last half of training and of the passes; None if unknown."""
    needed = (INPUT_MEAN, INPUT_STD, VAL_INPUT_MEAN, VAL_INPUT_STD)
    known = [readings(facts, signal, model) for signal in needed]
    if min(map(len, known)) < _FEW_PASSES or min(map(len, known[:2])) < _FEW_BATCHES:
        return None
    means, stds, val_means, val_stds = (each[len(each) // 2 :] for each in known)
    mean, std, val_mean, val_std = (
        float(np.median(each)) for each in (means, stds, val_means, val_stds)
    )
    if std <= 0:
        return None
    return Inputs(
        mean=mean,
        std=std,
        validation_mean=val_mean,
        validation_std=val_std,
        mean_score=abs(val_mean - mean) / max(_spread(means), 1e-6 * std),
        std_score=abs(val_std - std) / max(_spread(stds), 1e-6 * std),
    )


def has_other_inputs(facts: "Facts") -> bool:
    """Whether any model is given clearly other inputs in validation than in training."""
    if VAL_INPUT_MEAN not in facts.run:
        return False
    found = [inputs(facts, model) for model in facts.run[VAL_INPUT_MEAN]]
    return any(each is not None and each.differ(FAR_RATIO, FAR_SHIFT) for each in found)


def no_validation(facts: "Facts", steps: npt.NDArray[np.int64]) -> str | None:
    """Why losses without a backward after these steps may be no validation; None if they are one.

    The loss of a training batch, of a teacher or of a target network may be computed without
    gradients as well: after most steps, or on batches that training was given.
    """
    if len(steps) * _SPARSE > facts.run.steps:
        return "losses without a backward were computed after most steps: they may be no validation"
    for model, given in (
        facts.run[VAL_INPUT_FINGERPRINT].items() if VAL_INPUT_FINGERPRINT in facts.run else ()
    ):
        seen = readings(facts, INPUT_FINGERPRINT, model)
        if len(given) and np.isin(given.values, seen).mean() > 0.5:
            return "the losses without a backward are those of training batches"
    return None


def _training_losses(facts: "Facts") -> tuple[str, Series] | str:
    losses = {owner: loss for owner, each in facts.run[LOSS].items() if len(loss := _finite(each))}
    if not losses:
        return "no training loss is finite"
    (owner, loss), *others = losses.items()
    for _, other in others:  # optimizers that share a backward have the same loss
        if not np.array_equal(other.steps, loss.steps) or not np.array_equal(
            other.values, loss.values
        ):
            return f"the losses of {len(losses)} optimizers may compete: none has to fall"
    return owner, loss


def _function(facts: "Facts", functions: tuple[str, ...]) -> str | None:
    """The validation loss to look at: the one that was logged, else the one trained with."""
    known = [owner for owner, series in facts.run[VAL_LOSS].items() if len(series)]
    if "" in known:
        return ""
    if functions:
        known = [owner for owner in known if owner in functions]
    return known[0] if len(known) == 1 else None


def _is_comparable(facts: "Facts", function: str, functions: tuple[str, ...]) -> bool:
    """Whether `backward()` is called on the very function that validation averages."""
    if len(functions) > 1 or last(facts, LOSS_SUMMED, function):
        return False
    if function and not len(readings(facts, LOSS_ROOT_SHARE, "")):
        return False
    return 0.9 < scale(facts) < 1.1


def _levels(loss: Series, steps: npt.NDArray[np.int64]) -> Values:
    """The midmean of the losses from each pass back to the one before; NaN where none was read."""
    ends = np.searchsorted(loss.steps, steps, "right")
    starts = np.concatenate([[0], ends[:-1]])
    values = loss.values.astype(np.float64)
    return np.array(
        [
            midmean(values[start:end]) if end > start else np.nan
            for start, end in zip(starts, ends, strict=True)
        ]
    )


def _accuracies(
    facts: "Facts", function: str, passes: Series, groups: list[npt.NDArray[np.intp]]
) -> Values:
    owner = function or _only(facts, VAL_ACCURACY)
    unknown = np.full(len(groups), np.nan)
    if VAL_ACCURACY not in facts.run or owner not in facts.run[VAL_ACCURACY]:
        return unknown
    accuracy = facts.run[VAL_ACCURACY][owner]
    _, of_passes, of_accuracy = np.intersect1d(passes.steps, accuracy.steps, return_indices=True)
    known = np.full(len(passes), np.nan)
    known[of_passes] = accuracy.values[of_accuracy]
    return np.array(
        [np.nan if np.isnan(known[group]).any() else known[group].mean() for group in groups]
    )


def _only(facts: "Facts", signal: Signal) -> str:
    owners = list(facts.run[signal]) if signal in facts.run else []
    return owners[0] if len(owners) == 1 else ""


def _finite(series: Series) -> Series:
    kept = np.isfinite(series.values)
    return Series(series.steps[kept], series.values[kept])


def _spread(values: Values) -> float:
    return _SIGMA_PER_MAD * float(np.median(np.abs(values - np.median(values))))
