"""The loss is a sum over the batch, with a learning rate for a mean."""

from collections.abc import Iterator

import numpy as np

from holter.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.rules import rule
from holter.rules._anchors import readings
from holter.rules._outcome import outcome
from holter.rules._progress import steps_follow_gradients
from holter.run import Run
from holter.signals import LOSS_SUMMED, TARGET_COUNT

_MOST = 0.9  # share of steps


@rule(
    severity=Severity.WARNING,
    level=Level.HYPERPARAMETER,
    needs=(LOSS_SUMMED,),
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
        "dead-units",
        "large-initial-loss",
        "validation-mismatch",
        "erratic-validation",
        "constant-clipping",
        "dead-gradients",
        "all-zero-gradients",
        "saturated-units",
        "dominating-gradient",
        "oscillating-gradients",
    ),
)
def summed_loss(run: Run, *, min_steps: int = 5) -> Iterator[Verdict]:
    """The loss is a sum over the batch, with a learning rate for a mean.

    ## What it does
    Looks whether the loss function was asked for `reduction="sum"`, and speaks where it was, on
    nearly all of at least `min_steps` sampled steps, and the loss did not fall or is no longer
    finite. A sum that trains well is no fault.

    ## Why it matters
    The gradient of a sum is as many times larger as there are targets in a batch, and so is each
    step of SGD. It changes with the batch size, too.

    ## What to do
    Use `reduction="mean"`, or divide the learning rate by the number of targets in a batch.

    ## When it is wrong
    A sum with a learning rate to match is right; then the loss falls. With Adam the scale hardly
    matters, and the cause lies elsewhere.

    ## How to confirm
    - Divide the loss by the number of targets in the batch and repeat the first 100 steps.
    """
    for owner, summed in run[LOSS_SUMMED].items():
        if len(summed) < min_steps:
            yield summed_loss.not_examined(f"{len(summed)} of the {min_steps} steps needed")
            continue
        if float(np.mean(summed.values)) < _MOST:
            yield summed_loss.clear(f"{owner} does not sum over the batch")
            continue
        result = outcome(run)
        count = readings(run, TARGET_COUNT, owner)
        times = f"{np.median(count):.0f}" if len(count) else "as many as a batch has targets"
        if result is None or not result.bad or not steps_follow_gradients(run):
            came = f"; {result.says}" if result is not None else ""
            yield summed_loss.clear(f"{owner} sums over the batch{came}")
            continue
        yield summed_loss.finding(
            f"{owner} sums over the batch: gradients are {times} times those of a mean, and"
            f" {result.says}",
            confidence=Confidence.LIKELY,
            onset=summed.first,
            evidence=(
                Evidence(LOSS_SUMMED, (summed.first, summed.last), "reduction is a sum", owner),
                result.evidence,
            ),
            fix='use reduction="mean", or divide the learning rate by the batch size',
        )
