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
    VAL_LOSS,
    Signal,
)

if TYPE_CHECKING:
    from holter.diagnosis.facts import Facts

_MOST_PASSES = 40  # more passes than this are averaged in groups
_OF_TRAINING = (OUTPUT_SIZE, OUTPUT_UNITS, TARGET_COUNT, TARGET_STD, ACCURACY, LOSS_SUMMED)
_SIGMA_PER_MAD = 1.4826
_TREND = 2.0  # standard deviations of the Mann-Kendall score that make a trend
_SPARSE = 3  # training steps per pass: losses without gradients at more steps may be anything


@dataclass(frozen=True, slots=True)
class Curves:
    """A validation loss and the level of the training loss at the same passes.

    `is_comparable` unless training optimises another loss, or the same loss on another scale.
    `accuracy` is NaN where it was not recorded.
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

    @property
    def third(self) -> int:
        """A third of the passes, at least one."""
        return max(len(self) // 3, 1)

    @property
    def final_validation(self) -> float:
        """The level of the validation loss over the last third."""
        return midmean(self.validation[-self.third :])

    @property
    def final_training(self) -> float:
        """The level of the training loss over the last third."""
        return midmean(self.training[-self.third :])


def curves(facts: "Facts") -> Curves | str:
    """Return the validation loss that belongs to the training loss, or why there is none."""
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
        return "a loss becomes negative, so ratios of losses mean nothing"
    groups = np.array_split(np.arange(len(passes)), min(len(passes), _MOST_PASSES))
    steps = np.array([passes.steps[group[-1]] for group in groups], np.int64)
    validation = np.array([midmean(passes.values[group].astype(np.float64)) for group in groups])
    training = _levels(loss, steps)
    accuracy = _accuracies(facts, function, passes, groups)
    read = np.isfinite(training)
    if not read.any():
        return "no training loss was read between validation passes"
    return Curves(
        function=function,
        trained=trained,
        steps=steps[read],
        validation=validation[read],
        training=training[read],
        accuracy=accuracy[read],
        is_comparable=_is_comparable(facts, function, functions),
        constant=constant_level(facts, function or next(iter(functions), "")),
    )


def enough_passes(facts: "Facts", min_passes: int) -> Curves | str:
    """Return the validation curves if they have `min_passes` passes, else what is missing."""
    curves = facts.validation
    if isinstance(curves, str) or len(curves) >= min_passes:
        return curves
    return f"{len(curves)} of the {min_passes} validation passes needed"


def smooth(values: Values) -> Values:
    """Return the running median of three, so that one odd pass makes no minimum."""
    padded = np.pad(values, 1, mode="edge")
    return np.median([padded[:-2], padded[1:-1], padded[2:]], axis=0)


def scatter(values: Values) -> float:
    """Return the standard deviation from pass to pass without the trend, by second differences."""
    if len(values) < 4:
        return float("inf")
    bends = np.abs(np.diff(values, 2)) / np.sqrt(6)
    return _SIGMA_PER_MAD * float(np.median(bends)) or float(np.sqrt(np.mean(bends**2)))


def rise_score(values: Values) -> float:
    """Return the Mann-Kendall score: the excess of rising pairs, in standard deviations."""
    n = len(values)
    if n < 2:
        return 0.0
    signs = np.sign(values[None, :] - values[:, None])[np.triu_indices(n, 1)]
    return float(signs.sum() / np.sqrt(n * (n - 1) * (2 * n + 5) / 18))


def rises(values: Values) -> bool:
    """Whether the values have a rising trend that chance would rarely give."""
    return rise_score(values) > _TREND


def trained_functions(facts: "Facts") -> tuple[str, ...]:
    """Return the loss functions that training called."""
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
    """Return the loss of the best constant prediction: label entropy, or variance of targets."""
    if function in CROSS_ENTROPIES:
        return last(facts, TARGET_ENTROPY, function) or None
    deviation = last(facts, TARGET_STD, function) if function == "mse_loss" else None
    return deviation**2 if deviation else None


def chance(facts: "Facts", function: str) -> float | None:
    """Return the accuracy of always predicting the most frequent class."""
    return last(facts, TARGET_LARGEST_CLASS_FRACTION, function or _only(facts, VAL_ACCURACY))


def training_accuracy(facts: "Facts", function: str, since: int = 0) -> float | None:
    """Return the latest accuracy on training batches after step `since`, or None."""
    accuracies = readings(facts, ACCURACY, function or _only(facts, ACCURACY), since)
    if len(accuracies) < 4:
        return None
    return float(accuracies[-max(len(accuracies) // 10, 4) :].mean())


def fitted_accuracy(facts: "Facts", curves: Curves) -> float | None:
    """Return a lower bound on the final training accuracy, or None.

    Earlier accuracies count, because they grow. A wrong prediction has a cross-entropy of at least
    ln 2, so a small loss bounds the accuracy as well.
    """
    recorded = training_accuracy(facts, curves.function)
    function = curves.function or next(iter(trained_functions(facts)), "")
    if not curves.is_comparable or function not in CROSS_ENTROPIES:
        return recorded
    return max(recorded or 0.0, 1 - curves.final_training / float(np.log(2)))


def no_validation(facts: "Facts", steps: npt.NDArray[np.int64]) -> str | None:
    """Return why losses without a backward pass after `steps` are no validation, or None.

    The loss of a training batch, of a teacher or of a target network is computed without gradients
    as well: after most steps, or on training batches.
    """
    if len(steps) * _SPARSE > facts.run.steps:
        return "losses without a backward pass were computed after most steps: no validation"
    for model, fingerprints in (
        facts.run[VAL_INPUT_FINGERPRINT].items() if VAL_INPUT_FINGERPRINT in facts.run else ()
    ):
        trained_on = readings(facts, INPUT_FINGERPRINT, model)
        if len(fingerprints) and np.isin(fingerprints.values, trained_on).mean() > 0.5:
            return "the losses without a backward pass are those of training batches"
    return None


def _training_losses(facts: "Facts") -> tuple[str, Series] | str:
    losses = {
        owner: loss for owner, series in facts.run[LOSS].items() if len(loss := _finite(series))
    }
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
    """Return the owner of the validation loss: the logged one, else the training function."""
    owners = [owner for owner, series in facts.run[VAL_LOSS].items() if len(series)]
    if "" in owners:
        return ""
    if functions:
        owners = [owner for owner in owners if owner in functions]
    return owners[0] if len(owners) == 1 else None


def _is_comparable(facts: "Facts", function: str, functions: tuple[str, ...]) -> bool:
    """Whether `backward()` is called on the function that validation averages, unscaled."""
    if len(functions) > 1 or last(facts, LOSS_SUMMED, function):
        return False
    if function and not len(readings(facts, LOSS_ROOT_SHARE, "")):
        return False
    return 0.9 < scale(facts) < 1.1


def _levels(loss: Series, steps: npt.NDArray[np.int64]) -> Values:
    """Return the midmean of the losses since the pass before, or NaN where none was read."""
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
    if VAL_ACCURACY not in facts.run or owner not in facts.run[VAL_ACCURACY]:
        return np.full(len(groups), np.nan)
    accuracy = facts.run[VAL_ACCURACY][owner]
    _, of_passes, of_accuracy = np.intersect1d(passes.steps, accuracy.steps, return_indices=True)
    values = np.full(len(passes), np.nan)
    values[of_passes] = accuracy.values[of_accuracy]
    return np.array([values[group].mean() for group in groups])  # NaN if one of them is


def _only(facts: "Facts", signal: Signal) -> str:
    owners = list(facts.run[signal]) if signal in facts.run else []
    return owners[0] if len(owners) == 1 else ""


def _finite(series: Series) -> Series:
    kept = np.isfinite(series.values)
    return Series(series.steps[kept], series.values[kept])
