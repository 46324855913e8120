"""The loss of the best constant prediction, and how far below it a training came."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from holter.diagnosis.facts.reduction import per_batch
from holter.diagnosis.facts.robust import Values, midmean
from holter.record.signals import (
    ACCURACY,
    BACKWARD_CALLS,
    LOSS_FACTOR,
    LOSS_ROOT_SHARE,
    LOSS_SUMMED,
    OUTPUT_SIZE,
    OUTPUT_SPREAD,
    OUTPUT_UNITS,
    TARGET_COUNT,
    TARGET_ENTROPY,
    TARGET_LARGEST_CLASS_FRACTION,
    TARGET_MAX,
    TARGET_MIN,
    TARGET_STD,
    Signal,
)

if TYPE_CHECKING:
    from holter.diagnosis.facts import Facts

CROSS_ENTROPIES = (
    "cross_entropy",
    "linear_cross_entropy",
    "nll_loss",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
)

_OF_TRAINING = (OUTPUT_SIZE, OUTPUT_UNITS, TARGET_COUNT, TARGET_STD, ACCURACY, LOSS_SUMMED)
_OTHER_TARGETS = 0.02  # change of the baseline, as a share, that other targets explain
_ROUNDING = 1e-6  # of the largest target: spread that is none
_STEADY = 0.5  # largest spread of a loss function's share in the loss, over the median share


@dataclass(frozen=True, slots=True)
class Baseline:
    """The loss of the best constant prediction, for the run's only loss function."""

    function: str
    signal: Signal  # from which it was read
    level: float
    drift: float  # its last reading over an early one: targets may change
    scale: float  # the recorded loss over the mean that the loss function returns

    @property
    def says(self) -> str:
        """What the best constant prediction amounts to."""
        if self.signal is TARGET_ENTROPY:
            return "entropy of the labels"
        return "variance of the targets"


def only_function(facts: "Facts") -> str | None:
    """Return the only loss function in training, or None where there are none or several."""
    owners = {
        owner
        for signal in (OUTPUT_SIZE, OUTPUT_SPREAD, TARGET_ENTROPY, TARGET_STD)
        if signal in facts.run
        for owner, series in facts.run[signal].items()
        if len(series) and series.last >= facts.stage_start
    }
    return owners.pop() if len(owners) == 1 else None


def baseline_of(facts: "Facts") -> Baseline | str:
    """Return the loss of the best constant prediction, or the reason why it is unknown."""
    function = facts.loss_function
    if function is None:
        return "no single loss function was seen: the best constant prediction is unknown"
    if root_shares(facts) is None and last(facts, LOSS_SUMMED, function):
        return f"{function} sums over the batch, over an unknown number of elements"
    if _has_more_terms(facts, function):
        return f"the loss is more than a single mean of {function}"
    return constant_of(facts, function, scale(facts))


def constant_of(facts: "Facts", function: str, scale: float) -> Baseline | str:
    """Return the loss of the best constant prediction by one loss function, or why it is unknown.

    Statistics of targets go back to the first step: they must not mix the targets of two stages.
    """
    signal = TARGET_ENTROPY if function in CROSS_ENTROPIES else TARGET_STD
    values = readings(facts, signal, function, facts.stage_start)
    if not len(values) or (signal is TARGET_STD and function != "mse_loss"):
        return f"the best constant prediction for {function} is unknown"
    power = 1 if signal is TARGET_ENTROPY else 2
    level, early = float(values[-1]) ** power, float(values[len(values) // 10]) ** power
    if level <= 0 or (signal is TARGET_STD and values[-1] <= _rounding(facts, function)):
        return "the targets do not vary"
    before = readings(facts, signal, function)[: -len(values)]
    if len(before) and abs(float(before[-1]) ** power / level - 1) > _OTHER_TARGETS:
        return f"the targets of {function} changed at step {facts.stage_start}"
    return Baseline(function, signal, level, level / early if early > 0 else np.inf, scale)


def _rounding(facts: "Facts", function: str) -> float:
    """Return the spread that rounding gives targets which are the same for every sample."""
    ends = [last(facts, signal, function) or 0.0 for signal in (TARGET_MIN, TARGET_MAX)]
    return _ROUNDING * max(map(abs, ends))


def trained_functions(facts: "Facts") -> tuple[str, ...]:
    """Return the loss functions that training called."""
    return tuple(
        dict.fromkeys(
            owner
            for signal in _OF_TRAINING
            if signal in facts.run
            for owner, series in facts.run[signal].items()
            if len(series) and series.last >= facts.stage_start
        )
    )


def root_shares(facts: "Facts") -> Values | None:
    """Return the loss of each backward() over the mean of its loss function; None if unknown.

    Where backward() is called on a sum, batches of different sizes do not make a difference.
    """
    if LOSS_ROOT_SHARE not in facts.run or (recorded := facts.run[LOSS_ROOT_SHARE].get("")) is None:
        return None
    recorded = per_batch(facts, recorded)
    shares = recorded.values[recorded.steps >= facts.stage_start].astype(np.float64)
    shares = shares[np.isfinite(shares)]
    return shares if len(shares) else None


def _has_more_terms(facts: "Facts", function: str) -> bool:
    """Return whether the loss is anything but one mean of the function, or a fixed part of it."""
    shares = root_shares(facts)
    if shares is None:  # several calls before a backward, or none that can be divided
        return len(readings(facts, LOSS_SUMMED, function)) > 0
    low, median, high = np.quantile(shares, (0.1, 0.5, 0.9))
    return bool(median <= 0 or high - low > _STEADY * median)


def scale(facts: "Facts") -> float:
    """Return the recorded loss over the mean of the loss function: sums and accumulation."""
    if (shares := root_shares(facts)) is None:
        return 1.0
    product = float(np.median(shares))
    for signal in (BACKWARD_CALLS, LOSS_FACTOR):
        recorded = readings(facts, signal, "")
        product *= float(np.median(recorded)) if len(recorded) else 1.0
    return product if np.isfinite(product) and product > 0 else 1.0


@dataclass(frozen=True, slots=True)
class Learned:
    """How much better than the best constant prediction the model is, by loss and by accuracy."""

    by_loss: float  # share by which the loss is below that of the best constant prediction
    by_accuracy: float | None  # share by which errors are below those of the most frequent class

    @property
    def most(self) -> float:
        """The larger of the two."""
        return max(self.by_loss, self.by_accuracy if self.by_accuracy is not None else -np.inf)

    def __str__(self) -> str:
        loss = f"the loss is {_compared(self.by_loss)} the best constant prediction"
        if self.by_accuracy is None:
            return loss
        return (
            f"{loss}, the error rate {_compared(self.by_accuracy)} that of always predicting the"
            " most frequent class"
        )


def _compared(share: float) -> str:
    if abs(share) < 0.005:
        return "within 1 % of"
    return f"{100 * abs(share):.0f} % {'below' if share >= 0 else 'above'}"


def learned(facts: "Facts", baseline: Baseline, level: float) -> Learned:
    """Return how much was learned, by a loss at `level` and by the last quarter of accuracies."""
    accuracy = readings(facts, ACCURACY, baseline.function)
    prior = most_frequent(facts, baseline.function)
    by_accuracy = None
    if len(accuracy) and prior is not None and prior < 1:
        by_accuracy = (midmean(accuracy[-max(len(accuracy) // 4, 1) :]) - prior) / (1 - prior)
    return Learned(1 - level / baseline.scale / baseline.level, by_accuracy)


def most_frequent(facts: "Facts", function: str) -> float | None:
    """Return the share of the most frequent class, or None for several binary outputs."""
    units = last(facts, OUTPUT_UNITS, function)
    if function.startswith("binary") and units is not None and units > 1:
        return None
    return last(facts, TARGET_LARGEST_CLASS_FRACTION, function)


def last(facts: "Facts", signal: Signal, owner: str) -> float | None:
    """Return the last finite reading of a signal, or None."""
    values = readings(facts, signal, owner)
    return float(values[-1]) if len(values) else None


def readings(facts: "Facts", signal: Signal, owner: str, since: int = 0) -> Values:
    """Return the finite readings of a signal from step `since` on; none if not recorded."""
    if signal not in facts.run or (series := facts.run[signal].get(owner)) is None:
        return np.empty(0)
    values = series.values[series.steps >= since].astype(np.float64)
    return values[np.isfinite(values)]
