"""Some batches have no target that counts, and their loss is 0/0."""

from collections.abc import Iterator

import numpy as np

from holter.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.rules import rule
from holter.run import Run
from holter.signals import LOSS, TARGET_IGNORED_FRACTION


@rule(
    severity=Severity.ERROR,
    level=Level.DATA,
    needs=(TARGET_IGNORED_FRACTION,),
    explains=(
        "nonfinite-loss",
        "nonfinite-gradient",
        "nonfinite-weights",
        "exploding-gradients",
        "skipped-steps",
        "collapsing-loss-scale",
        "diverging-loss",
        "hidden-nonfinite",
        "motionless-weights",
        "flat-loss",
        "validation-mismatch",
    ),
)
def empty_targets(run: Run) -> Iterator[Verdict]:
    """Some batches have no target that counts, and their loss is 0/0.

    ## What it does
    Looks for steps on which the loss function was told to ignore all targets of the batch, and the
    loss was not finite. Where the loss stayed finite it is noted as normal.

    ## Why it matters
    The mean over nothing is 0/0, which is NaN. One such batch, cut off before its answer or made of
    padding only, spoils all weights at the next update.

    ## What to do
    Leave such batches out: `if (labels != -100).any()`, or divide a sum by `max(count, 1)`.

    ## When it is wrong
    Only sampled steps are seen: an empty batch may go by unseen, and the NaN is then found without
    its cause.

    ## How to confirm
    - Count batches with `(labels == -100).all()` over one epoch.
    """
    for owner, ignored in run[TARGET_IGNORED_FRACTION].items():
        if not len(ignored):
            continue
        empty = ignored.steps[ignored.values >= 1]
        if not len(empty):
            yield empty_targets.clear(
                f"{owner} ignores {ignored.values.max():.0%} of a batch at most"
            )
            continue
        lost = _lost(run)
        first = next((int(step) for step in empty if step in lost), None)
        said = f"{owner} ignores all targets on {len(empty)} of {len(ignored)} sampled steps"
        if first is None:
            yield empty_targets.normal(f"{said}; the loss stays finite")
            yield empty_targets.clear(f"{said}; the loss stays finite")
            continue
        yield empty_targets.finding(
            f"all targets of the batch are ignored at step {first}, and its loss is 0/0",
            confidence=Confidence.CERTAIN,
            onset=first,
            evidence=(
                Evidence(TARGET_IGNORED_FRACTION, (first, ignored.last), said, owner),
                Evidence(LOSS, (first, first), "not finite"),
            ),
            fix="leave out batches without a target, or divide the summed loss by max(count, 1)",
        )


def _lost(run: Run) -> set[int]:
    """The steps whose loss is not finite."""
    return {
        int(step)
        for series in (run[LOSS].values() if LOSS in run else ())
        for step in series.steps[~np.isfinite(series.values)]
    }
