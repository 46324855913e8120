"""Validation passes beside the training loss of the same time."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from holter.diagnosis.facts.baseline import (
    CROSS_ENTROPIES,
    last,
    readings,
    root_shares,
    scale,
    trained_functions,
)
from holter.diagnosis.facts.evaluations import SPARSE
from holter.diagnosis.facts.robust import Values, midmean
from holter.diagnosis.facts.trained import trained_loss
from holter.record import Series
from holter.record.evaluations import parts_of
from holter.record.signals import (
    ACCURACY,
    INPUT_FINGERPRINT,
    LOSS_MEAN,
    LOSS_SUMMED,
    TARGET_ENTROPY,
    TARGET_LARGEST_CLASS_FRACTION,
    TARGET_STD,
    VAL_ACCURACY,
    VAL_INPUT_FINGERPRINT,
    Signal,
)

if TYPE_CHECKING:
    from holter.diagnosis.facts import Facts

_MOST_PASSES = 40  # more passes than this are averaged in groups
_SIGMA_PER_MAD = 1.4826
_TREND = 2.0  # standard deviations of the Mann-Kendall score that make a trend
_EXACT = 1e-3  # deviation of a scale from 1 that is rounding
_STEADY = 0.1  # spread of the scale of a loss that is the same at all steps, over its median


@dataclass(frozen=True, slots=True)
class Curves:
    """A validation loss and the level of the training loss at the same passes.

    Both are means over elements, whatever the script sums; if that is not possible, `incomparable`
    says why. `accuracy` is NaN where it was not recorded.
    """

    owner: str  # of the validation loss
    function: str  # that was evaluated; empty if the script logged the validation loss
    trained: str  # the owner of the training loss
    steps: npt.NDArray[np.int64]  # the last training step before each pass
    validation: Values
    training: Values
    accuracy: Values
    incomparable: str  # why the levels of both mean different things; empty if they do not
    constant: float | None  # the loss of the best constant prediction

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def is_comparable(self) -> bool:
        """Whether the levels of both losses can be compared."""
        return not self.incomparable

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
    trained_by = _training_loss(facts)
    if isinstance(trained_by, str):
        return trained_by
    trained, loss = trained_by
    evaluation = facts.evaluation
    if isinstance(evaluation, str):
        return evaluation
    function = evaluation.function
    passes = _finite(evaluation.losses)
    if not len(passes):
        return "no validation loss is finite"
    mean = mean_loss(facts, function, loss)
    if not isinstance(mean, str):
        loss = mean
    if min(passes.values.min(), loss.values.min()) < 0:
        return "a loss becomes negative, so ratios of losses are meaningless"
    groups = np.array_split(np.arange(len(passes)), min(len(passes), _MOST_PASSES))
    steps = np.array([passes.steps[group[-1]] for group in groups], np.int64)
    validation = np.array([midmean(passes.values[group].astype(np.float64)) for group in groups])
    training = _levels(loss, steps)
    accuracy = _accuracies(facts, evaluation.owner, passes, groups)
    read = np.isfinite(training)
    if not read.any():
        return "no training loss was read between validation passes"
    return Curves(
        owner=evaluation.owner,
        function=function,
        trained=trained,
        steps=steps[read],
        validation=validation[read],
        training=training[read],
        accuracy=accuracy[read],
        incomparable=mean if isinstance(mean, str) else "",
        constant=constant_level(facts, function or next(iter(trained_functions(facts)), "")),
    )


def mean_loss(facts: "Facts", function: str, loss: Series) -> Series | str:
    """Return the training loss as a mean over elements, or why it has no such mean.

    That is the loss over its scale if the scale is steady, else the mean of the function alone,
    which leaves out all other terms.
    """
    shares, functions = root_shares(facts), trained_functions(facts)
    factor = scale(facts)
    if not function:
        if shares is None and any(last(facts, LOSS_SUMMED, name) for name in functions):
            return "not comparable: the training loss is a sum over the batch"
        return _divided(loss, factor)
    if shares is not None and len(functions) <= 1:
        low, median, high = np.quantile(shares, (0.1, 0.5, 0.9))
        if high - low <= _STEADY * median:
            return _divided(loss, factor)
        if 0.9 < factor < 1.1:
            return loss
    means = facts.run[LOSS_MEAN].get(function) if LOSS_MEAN in facts.run else None
    if means is not None and len(kept := _finite(means)):
        return kept
    if last(facts, LOSS_SUMMED, function):
        return f"not comparable: {function} sums over an unknown number of elements in training"
    return f"not comparable: the training loss is more than a single mean of {function}"


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


def constant_level(facts: "Facts", function: str) -> float | None:
    """Return the loss of the best constant prediction: label entropy, or variance of targets."""
    if function in CROSS_ENTROPIES:
        return last(facts, TARGET_ENTROPY, function) or None
    deviation = last(facts, TARGET_STD, function) if function == "mse_loss" else None
    return deviation**2 if deviation else None


def chance(facts: "Facts", function: str) -> float | None:
    """Return the accuracy of always predicting the most frequent class."""
    return last(
        facts, TARGET_LARGEST_CLASS_FRACTION, function or parts_of(_only(facts, VAL_ACCURACY))[0]
    )


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
    if len(steps) * SPARSE > facts.run.steps:
        return (
            "losses without a backward pass were computed after most steps, so they are not a"
            " validation"
        )
    for model, fingerprints in (
        facts.run[VAL_INPUT_FINGERPRINT].items() if VAL_INPUT_FINGERPRINT in facts.run else ()
    ):
        trained_on = readings(facts, INPUT_FINGERPRINT, model)
        if len(fingerprints) and np.isin(fingerprints.values, trained_on).mean() > 0.5:
            return "the losses without a backward pass are those of training batches"
    return None


def _training_loss(facts: "Facts") -> tuple[str, Series] | str:
    trained = trained_loss(facts)
    if isinstance(trained, str):
        return trained
    owner, loss = trained[0], _finite(trained[1])
    return (owner, loss) if len(loss) else "no training loss is finite"


def _divided(loss: Series, factor: float) -> Series:
    if abs(factor - 1) < _EXACT:
        return loss
    return Series(loss.steps, (loss.values / factor).astype(loss.values.dtype))


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
    facts: "Facts", owner: str, passes: Series, groups: list[npt.NDArray[np.intp]]
) -> Values:
    owner = owner or _only(facts, VAL_ACCURACY)
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
