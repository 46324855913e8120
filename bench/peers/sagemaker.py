"""SageMaker Debugger's built-in training rules with their default limits, of a recorded run.

The service is closed to new customers and its rules were never published, so they are written here
after their documentation. They see every step that was recorded; at the service's default, every
500th step, they would see one or two of most runs of the zoo. Where a signal only approximates the
tensor that a rule reads, its function says so. Left out, for nothing can be said of a run with
defaults alone: Confusion and NLPSequenceRatio (need tensors of given names), TensorVariance (has no
default limits), SimilarAcrossRuns, StalledTrainingRule, and the rules for XGBoost.
"""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from bench.peers.peer import Alarm, Peer
from holter import Run
from holter.record import Series
from holter.record.signals import (
    ACTIVATION_ABSMAX,
    ACTIVATION_DEAD_FRACTION,
    ACTIVATION_SATURATED_FRACTION,
    ACTIVATION_STD,
    GRAD_HISTOGRAM,
    GRAD_NONFINITE,
    GRAD_NORM,
    GRAD_ZERO_FRACTION,
    INPUT_MEAN,
    INPUT_NONFINITE,
    LOSS,
    PARAMETER_TRAINABLE,
    TARGET_CLASSES,
    TARGET_LARGEST_CLASS_FRACTION,
    UPDATE_RATIO,
    VAL_LOSS,
    WEIGHT_NORM,
    Signal,
)
from holter.record.signals.histograms import EXPONENTS, LOWEST, ZERO_BIN

# An alarm counts for every rule that its documentation points to. A rule that fires for two
# opposite reasons counts as two alarms.
PEER = Peer(
    name="sagemaker",
    covers="loss curves, gradients, updates, weights, activations, image inputs, class balance",
    means={
        "VanishingGradient": (
            *("vanishing-gradients", "dead-gradients", "all-zero-gradients", "fading-activations"),
            *("saturated-units", "single-class-softmax", "step-without-backward"),
        ),
        "ExplodingTensor": (
            *("nonfinite-loss", "nonfinite-gradient", "nonfinite-weights", "nonfinite-inputs"),
            *("hidden-nonfinite", "empty-targets", "collapsing-loss-scale", "skipped-steps"),
            *("exploding-gradients", "growing-activations"),
        ),
        "DeadRelu": ("dead-units", "dead-gradients"),
        "SaturatedActivation": ("saturated-units",),
        "PoorWeightInitialization": (
            *("identical-rows", "large-initial-loss", "growing-activations", "fading-activations"),
            *("vanishing-gradients", "exploding-gradients", "saturated-units", "dead-units"),
            "dead-gradients",
        ),
        "WeightUpdateRatio: large": (
            *("huge-updates", "unusable-learning-rate", "missing-warmup", "summed-loss"),
            *("undivided-accumulation", "late-clipping"),
        ),
        "WeightUpdateRatio: small": (
            *("tiny-updates", "motionless-weights", "unusable-learning-rate"),
            *("rounded-away-updates", "decayed-learning-rate", "constant-clipping"),
            *("parameters-outside-optimizer", "parameters-outside-model", "unreached-parameters"),
            *("step-without-backward", "scaled-clipping"),
        ),
        "UnchangedTensor": (
            *("motionless-weights", "rounded-away-updates", "tiny-updates"),
            *("parameters-outside-optimizer", "parameters-outside-model", "unreached-parameters"),
            *("step-without-backward", "all-zero-gradients", "decayed-learning-rate"),
        ),
        "AllZero": (
            *("all-zero-gradients", "dead-gradients", "dead-units", "step-without-backward"),
            *("single-class-softmax", "identical-rows"),
        ),
        "LossNotDecreasing": (
            *("flat-loss", "loss-plateau", "diverging-loss", "oscillating-loss", "underfitting"),
            *("loss-at-constant-predictor", "constant-validation", "erratic-validation"),
        ),
        "Overfit": ("overfitting", "loss-accuracy-parting"),
        "Overtraining": ("overfitting", "loss-plateau", "loss-accuracy-parting"),
        "CheckInputImages": ("unscaled-inputs",),
        "ClassImbalance": (),
    },
)


def alarms(run: Run) -> list[Alarm]:
    """The rules that would have fired on a run."""
    fired = {
        "VanishingGradient": vanishing_gradient,
        "ExplodingTensor": exploding_tensor,
        "DeadRelu": dead_relu,
        "SaturatedActivation": saturated_activation,
        "PoorWeightInitialization": poor_weight_initialization,
        "WeightUpdateRatio: large": large_update,
        "WeightUpdateRatio: small": small_update,
        "UnchangedTensor": unchanged_tensor,
        "AllZero": all_zero,
        "LossNotDecreasing": loss_not_decreasing,
        "Overfit": overfit,
        "Overtraining": overtraining,
        "CheckInputImages": check_input_images,
        "ClassImbalance": class_imbalance,
    }
    return [Alarm(name) for name, rule in fired.items() if rule(run)]


def vanishing_gradient(run: Run, threshold: float = 1e-7) -> bool:
    """The mean absolute gradient of a tensor is below a limit; here its root mean square."""
    sizes = {name: np.prod(shape) for name, (shape, _) in run.meta.parameters.items()}
    return any(
        (each.values / np.sqrt(sizes[owner]) < threshold).any()
        for owner, each in _read(run, GRAD_NORM)
        if owner in sizes
    )


def exploding_tensor(run: Run) -> bool:
    """Any tensor holds NaN or infinity: losses, gradients, weights, activations, inputs."""
    counted = (GRAD_NONFINITE, INPUT_NONFINITE)
    measured = (LOSS, WEIGHT_NORM, ACTIVATION_ABSMAX)
    return any(
        (each.values > 0).any() for signal in counted for _, each in _read(run, signal)
    ) or any(
        not np.isfinite(each.values).all() for signal in measured for _, each in _read(run, signal)
    )


def dead_relu(run: Run, layer: float = 0.5) -> bool:
    """Over half of the units of a ReLU are dead; of modules alone, over some steps."""
    return any((each.values > layer).any() for _, each in _read(run, ACTIVATION_DEAD_FRACTION))


def saturated_activation(run: Run, layer: float = 0.5) -> bool:
    """Over half of a tanh or sigmoid is saturated; at milder limits than +-9.5 and -23 .. 17."""
    return any((each.values > layer).any() for _, each in _read(run, ACTIVATION_SATURATED_FRACTION))


def poor_weight_initialization(
    run: Run, threshold: float = 10.0, spread: float = 1e-3, patience: int = 5, steps: int = 10
) -> bool:
    """In the first steps: uneven variances before ReLUs, narrow gradients, or no falling loss.

    The input of a ReLU is taken to be the output of the module listed before it; the range of 5th
    to 95th percentile is twice the upper edge of the bin with the 90th percentile of magnitudes.
    """
    variances = _variances_before_relus(run, steps)
    if len(variances) > 1 and min(variances) * threshold < max(variances):
        return True
    if any(
        2.0 * _percentile(row, 0.9) < spread
        for _, each in _read(run, GRAD_HISTOGRAM)
        for row in each.values[each.steps < steps]
    ):
        return True
    return any(_stalls(each.values[each.steps < steps], patience) for _, each in _read(run, LOSS))


def large_update(run: Run, threshold: float = 10.0) -> bool:
    """A weight changed by more than ten times its own size in a step."""
    return any((each.values > threshold).any() for each in _weights(run))


def small_update(run: Run, threshold: float = 1e-8) -> bool:
    """A weight changed by less than 1e-8 of its own size in a step."""
    return any((each.values < threshold).any() for each in _weights(run))


def unchanged_tensor(run: Run, steps: int = 3, rtol: float = 1e-5) -> bool:
    """A weight was as good as equal at three steps; by its norm, where the rule looks at each."""
    return any(_longest(each.values <= rtol) >= steps - 1 for each in _weights(run))


def all_zero(run: Run) -> bool:
    """A gradient is all zeros; the rule needs to be told a collection, this one is the kindest."""
    return any((each.values >= 1).any() for _, each in _read(run, GRAD_ZERO_FRACTION))


def loss_not_decreasing(run: Run, steps: int = 10) -> bool:
    """A loss is not below the one ten steps before: of validation passes where there are any."""
    for _, each in _read(run, VAL_LOSS if VAL_LOSS in run else LOSS):
        at = 0
        for later in range(len(each)):
            if each.steps[later] - each.steps[at] >= steps:
                if not each.values[later] < each.values[at]:
                    return True
                at = later
    return False


def overfit(run: Run, ratio: float = 0.1) -> bool:
    """Validation loss is over training loss, the mean since the pass before, by a tenth of it."""
    if VAL_LOSS not in run or LOSS not in run:
        return False
    train = next(each for _, each in _read(run, LOSS))
    for _, validation in _read(run, VAL_LOSS):
        before = -1
        for step, value in zip(validation.steps, validation.values, strict=True):
            since = train.values[(train.steps > before) & (train.steps <= step)]
            before = step
            if len(since) and (value - since.mean()) / since.mean() > ratio:
                return True
    return False


def overtraining(run: Run, train: int = 5, validation: int = 10, delta: float = 0.1) -> bool:
    """Neither loss improves by 0.1 for some steps; a step of validation is a whole pass here."""
    return any(_stalls(each.values, train, delta) for _, each in _read(run, LOSS)) and any(
        _stalls(each.values, validation, delta) for _, each in _read(run, VAL_LOSS)
    )


def check_input_images(run: Run, threshold: float = 0.2, first: int = 8) -> bool:
    """The mean of images is far from 0; over all channels, of models with convolutions alone."""
    shapes = [shape for shape, _ in run.meta.parameters.values()]
    if not any(len(shape) == 4 for shape in shapes):
        return False
    return any(abs(np.mean(each.values[:first])) > threshold for _, each in _read(run, INPUT_MEAN))


def class_imbalance(run: Run, threshold: float = 10.0) -> bool:
    """The largest class is ten times the smallest: where that follows from the largest alone."""
    if TARGET_CLASSES not in run or TARGET_LARGEST_CLASS_FRACTION not in run:
        return False
    for owner, each in _read(run, TARGET_LARGEST_CLASS_FRACTION):
        share = float(each.values[-1])
        classes = run[TARGET_CLASSES]
        count = float(classes[owner].values[-1]) if owner in classes else 0.0
        if count > 1 and share * (count - 1) > threshold * (1 - share):
            return True
    return False


def _read(run: Run, signal: Signal) -> Iterator[tuple[str, Series]]:
    if signal in run:
        yield from ((owner, each) for owner, each in run[signal].items() if len(each))


def _weights(run: Run) -> Iterator[Series]:
    """The update ratios of trainable weights: a rule's default collection holds no biases."""
    frozen = {o for o, each in _read(run, PARAMETER_TRAINABLE) if not each.values[-1]}
    for owner, each in _read(run, UPDATE_RATIO):
        if "weight" in owner and owner not in frozen:
            yield each


def _variances_before_relus(run: Run, steps: int) -> list[float]:
    if ACTIVATION_STD not in run or ACTIVATION_DEAD_FRACTION not in run:
        return []
    table, relus = run[ACTIVATION_STD], run[ACTIVATION_DEAD_FRACTION]
    owners = list(table)
    found = []
    for before, owner in pairwise(owners):
        if owner in relus:
            values = table[before].values[table[before].steps < steps]
            found += [float(np.mean(values)) ** 2] if len(values) else []
    return found


def _percentile(shares: np.ndarray, share: float) -> float:
    """The upper edge of the bin of magnitudes below which a share of the elements lies."""
    below = shares[ZERO_BIN] + np.cumsum(shares[:EXPONENTS])
    if shares[ZERO_BIN] >= share:
        return 0.0
    return float(2.0 ** (LOWEST + 1 + int(np.argmax(below >= share))))


def _stalls(values: np.ndarray, patience: int, delta: float = 0.0) -> bool:
    """Whether there is a stretch of `patience` values none of which is a new best by `delta`."""
    best, waited = np.inf, 0
    for value in values:
        better = value < best - delta
        best, waited = (value, 0) if better else (best, waited + 1)
        if waited >= patience:
            return True
    return False


def _longest(flags: np.ndarray) -> int:
    longest = current = 0
    for flag in flags:
        current = current + 1 if flag else 0
        longest = max(longest, current)
    return longest
