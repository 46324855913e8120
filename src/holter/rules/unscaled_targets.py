"""The targets are far larger than anything the model puts out."""

from collections.abc import Iterator

import numpy as np

from holter.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.rules import rule
from holter.rules._anchors import last, readings
from holter.rules._outcome import outcome
from holter.run import Run
from holter.signals import OUTPUT_SIZE, TARGET_MEAN, TARGET_STD

_FEWEST = 10  # sampled steps
_TINY = 0.01  # outputs of a head that begins at zero


@rule(
    severity=Severity.WARNING,
    level=Level.DATA,
    needs=(
        TARGET_STD,
        TARGET_MEAN,
        OUTPUT_SIZE,
    ),
    explains=(
        "diverging-loss",
        "oscillating-loss",
        "loss-spike",
        "exploding-gradients",
        "exploding-weights",
        "nonfinite-loss",
        "nonfinite-gradient",
        "nonfinite-weights",
        "flat-loss",
        "loss-at-constant-predictor",
        "loss-plateau",
        "underfitting",
        "huge-updates",
        "tiny-updates",
        "dead-units",
        "dead-gradients",
        "all-zero-gradients",
        "large-initial-loss",
        "validation-mismatch",
        "constant-validation",
        "limited-outputs",
        "constant-clipping",
        "saturated-units",
        "dominating-gradient",
        "skipped-steps",
        "collapsing-loss-scale",
    ),
)
def unscaled_targets(run: Run, *, factor: float = 30.0) -> Iterator[Verdict]:
    """The targets are far larger than anything the model puts out.

    ## What it does
    Compares the size of numeric targets (the larger of mean and standard deviation) with that of
    the first outputs. It speaks where targets are more than `factor` times as large, and by the end
    of the run the loss is not finite, did not fall, or is still above half of what a constant
    answer gives.

    ## Why it matters
    Errors of thousands make gradients of thousands: either the first steps throw the weights far
    away, or a careful learning rate needs ages to get the outputs to where the targets are.

    ## What to do
    Standardise the targets with the mean and standard deviation of the training set, and undo it
    when predicting. Logarithms help where they span orders of magnitude.

    ## When it is wrong
    Models that scale their output themselves get there soon and the loss falls: then this rule is
    silent.

    ## How to confirm
    - Train on `(y - y.mean()) / y.std()`: the loss should fall under 1 within an epoch.
    """
    for owner, spread in run[TARGET_STD].items():
        sizes, mean = readings(run, OUTPUT_SIZE, owner), last(run, TARGET_MEAN, owner)
        if len(sizes) < _FEWEST or not len(spread) or mean is None:
            yield unscaled_targets.not_examined(f"{len(sizes)} of the {_FEWEST} steps needed")
            continue
        width, first = float(spread.values[-1]), float(np.median(sizes[:3]))
        scale = max(abs(mean), width)
        said = f"targets of {owner} are {mean:.3g} +- {width:.3g}, the first outputs {first:.2g}"
        if not scale > factor * max(first, _TINY):
            yield unscaled_targets.clear(said)
            continue
        result = outcome(run)
        if result is None:
            yield unscaled_targets.not_examined(f"{said}; what came of it cannot be told")
            continue
        short = float(np.median(sizes[-_FEWEST:])) < 0.5 * scale  # outputs never got there
        if not (result.bad or short):
            yield unscaled_targets.clear(f"{said}; {result.says}")
            continue
        yield unscaled_targets.finding(
            f"{said}: {scale / max(first, _TINY):.0f} times as large; {result.says}",
            confidence=Confidence.LIKELY,
            onset=spread.first,
            evidence=(
                Evidence(
                    TARGET_STD, (spread.first, spread.last), f"{mean:.3g} +- {width:.3g}", owner
                ),
                Evidence(OUTPUT_SIZE, (spread.first, spread.last), f"{first:.3g} at first", owner),
                result.evidence,
            ),
            fix="standardise the targets with the mean and deviation of the training set",
        )
