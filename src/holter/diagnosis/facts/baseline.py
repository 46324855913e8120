"""What a loss has to be compared with: the loss of a model that answers all inputs alike."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from holter.diagnosis.facts.robust import Values, midmean
from holter.record.signals import (
    ACCURACY,
    BACKWARD_CALLS,
    LOSS_ROOT_SHARE,
    LOSS_SUMMED,
    OUTPUT_SIZE,
    OUTPUT_SPREAD,
    OUTPUT_UNITS,
    TARGET_ENTROPY,
    TARGET_LARGEST_CLASS_FRACTION,
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


_STEADY = 0.5  # of what it usually is, that the share of a function in the loss may vary


@dataclass(frozen=True, slots=True)
class Baseline:
    """The loss of the best constant answer, for the run's only loss function."""

    function: str
    signal: Signal  # from which it was read
    level: float
    drift: float  # its last reading over an early one: targets may change
    scale: float  # what the recorded loss is of the loss function's own mean

    @property
    def says(self) -> str:
        """What the anchor is."""
        return "entropy of the labels" if self.signal is TARGET_ENTROPY else "targets' variance"


def only_function(facts: "Facts") -> str | None:
    """The loss function that the model trains by; None where none or several were seen."""
    owners = {
        owner
        for signal in (OUTPUT_SIZE, OUTPUT_SPREAD, TARGET_ENTROPY, TARGET_STD)
        if signal in facts.run
        for owner, series in facts.run[signal].items()
        if len(series)
    }
    return owners.pop() if len(owners) == 1 else None


def baseline_of(facts: "Facts") -> Baseline | str:
    """The loss of a constant answer, or why it cannot be told."""
    function = facts.loss_function
    if function is None:
        return "no single loss function was seen: what a constant answer would give is unknown"
    if (summed := last(facts, LOSS_SUMMED, function)) is not None and summed > 0:
        return f"{function} sums over the batch"
    if _has_more_terms(facts, function):
        return f"the loss is more than one mean of {function}"
    signal = TARGET_ENTROPY if function in CROSS_ENTROPIES else TARGET_STD
    found = readings(facts, signal, function)
    if not len(found) or (signal is TARGET_STD and function != "mse_loss"):
        return f"what a constant answer would give {function} is unknown"
    power = 1 if signal is TARGET_ENTROPY else 2
    level, early = float(found[-1]) ** power, float(found[len(found) // 10]) ** power
    if level <= 0:
        return "the targets do not vary"
    return Baseline(function, signal, level, level / early if early > 0 else np.inf, scale(facts))


def _has_more_terms(facts: "Facts", function: str) -> bool:
    """Whether the loss was seen not to be one mean of the function, or a fixed part of that."""
    shares = readings(facts, LOSS_ROOT_SHARE, "")
    if not len(shares):  # several calls before a backward, or none that was a mean
        return len(readings(facts, LOSS_SUMMED, function)) > 0
    low, usual, high = np.quantile(shares, (0.1, 0.5, 0.9))
    return bool(usual <= 0 or high - low > _STEADY * usual)


def scale(facts: "Facts") -> float:
    """What a recorded loss is of what the loss function returned: accumulation sums or divides."""
    if not len(shares := readings(facts, LOSS_ROOT_SHARE, "")):
        return 1.0
    calls = readings(facts, BACKWARD_CALLS, "")
    product = float(np.median(shares)) * (float(np.median(calls)) if len(calls) else 1.0)
    return product if np.isfinite(product) and product > 0 else 1.0


@dataclass(frozen=True, slots=True)
class Learned:
    """How much better than a constant answer the model has become, by loss and by accuracy."""

    by_loss: float  # share of the anchor that is gone
    by_accuracy: float | None  # share of the errors of the most frequent class that is gone

    @property
    def most(self) -> float:
        """The larger of both."""
        return max(self.by_loss, self.by_accuracy if self.by_accuracy is not None else -np.inf)

    def __str__(self) -> str:
        accuracy = (
            f", {max(self.by_accuracy, 0):.0%} of the errors of the most frequent class as answer"
            if self.by_accuracy is not None
            else ""
        )
        return f"{max(self.by_loss, 0):.0%} of what a constant answer loses is gone{accuracy}"


def learned(facts: "Facts", anchor: Baseline, level: float) -> Learned:
    """What a loss at `level` and the accuracy of the last readings say of the model."""
    accuracy = readings(facts, ACCURACY, anchor.function)
    prior = most_frequent(facts, anchor.function)
    by_accuracy = None
    if len(accuracy) and prior is not None and prior < 1:
        by_accuracy = (midmean(accuracy[-max(len(accuracy) // 4, 1) :]) - prior) / (1 - prior)
    return Learned(1 - level / anchor.scale / anchor.level, by_accuracy)


def most_frequent(facts: "Facts", function: str) -> float | None:
    """Share of the most frequent class; None where many single logits have a share each."""
    units = last(facts, OUTPUT_UNITS, function)
    if function.startswith("binary") and units is not None and units > 1:
        return None
    return last(facts, TARGET_LARGEST_CLASS_FRACTION, function)


def last(facts: "Facts", signal: Signal, owner: str) -> float | None:
    """The last finite reading of a signal; None where there is none."""
    values = readings(facts, signal, owner)
    return float(values[-1]) if len(values) else None


def readings(facts: "Facts", signal: Signal, owner: str, since: int = 0) -> Values:
    """The finite readings of a signal from a step on; none where it was not recorded."""
    if signal not in facts.run or (series := facts.run[signal].get(owner)) is None:
        return np.empty(0)
    values = series.values[series.steps >= since].astype(np.float64)
    return values[np.isfinite(values)]
