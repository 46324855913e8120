"""The model is given NaN or infinity."""

from collections.abc import Iterator

import numpy as np

from holter.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.rules import rule
from holter.run import Run
from holter.signals import GRAD_TOTAL_NORM, INPUT_NONFINITE, LOSS, Signal

_SOON = 20  # steps: a loss may be read only every 16th


@rule(
    severity=Severity.ERROR,
    level=Level.DATA,
    needs=(INPUT_NONFINITE,),
    explains=(
        "nonfinite-loss",
        "nonfinite-gradient",
        "nonfinite-weights",
        "exploding-gradients",
        "exploding-weights",
        "hidden-nonfinite",
        "skipped-steps",
        "collapsing-loss-scale",
        "diverging-loss",
        "loss-spike",
        "validation-mismatch",
        "motionless-weights",
        "flat-loss",
    ),
)
def nonfinite_inputs(run: Run) -> Iterator[Verdict]:
    """The model is given NaN or infinity.

    ## What it does
    Looks at the first floating-point tensor that the model is called with in training. NaN or
    infinity there is a finding if the loss or the gradients were not finite at that step either; if
    they were, the model can take it, and it is noted as normal.

    ## Why it matters
    One such value makes the loss NaN, the gradients with it, and after the next update all weights:
    nothing after that step was learned.

    ## What to do
    Find the rows by `torch.isfinite`, and mend, mask or drop them where the data is read.
    Standardising a column that is constant divides by zero: add a small number to the standard
    deviation.

    ## When it is wrong
    Models that mask missing values themselves; then nothing becomes non-finite after it and this
    rule only notes it. Only sampled steps are seen: a bad batch may go by unseen.

    ## How to confirm
    - Run `assert torch.isfinite(x).all()` on every batch of one epoch, and print the rows that
      fail.
    """
    for owner, count in run[INPUT_NONFINITE].items():
        if not len(count):
            continue
        bad = count.values > 0
        if not bad.any():
            yield nonfinite_inputs.clear(f"the inputs of {owner} are finite on {len(count)} steps")
            continue
        first = int(count.steps[bad.argmax()])
        values = float(count.values[bad.argmax()])
        spoiled = _spoiled(run, first)
        said = f"{owner} is given {values:.0f} values that are not finite at step {first}"
        if spoiled is None:
            yield nonfinite_inputs.normal(f"{said}; loss and gradients stay finite")
            yield nonfinite_inputs.clear(f"{said}; loss and gradients stay finite")
            continue
        yield nonfinite_inputs.finding(
            f"{said}, and {spoiled} is not finite from there",
            confidence=Confidence.CERTAIN,
            onset=first,
            evidence=(
                Evidence(
                    INPUT_NONFINITE,
                    (first, count.last),
                    f"{values:.0f} values at step {first}; {int(bad.sum())} of {len(count)} sampled"
                    " steps have such",
                    owner,
                ),
            ),
            fix="mend or drop the rows with NaN or infinity where the data is read",
        )


def _spoiled(run: Run, step: int) -> Signal | None:
    """Which of loss and gradients was not finite soon after `step`, and not before."""
    for signal in (LOSS, GRAD_TOTAL_NORM):
        for series in run[signal].values() if signal in run else ():
            lost = series.steps[~np.isfinite(series.values)]
            if len(lost) and step <= lost[0] <= step + _SOON:
                return signal
    return None
