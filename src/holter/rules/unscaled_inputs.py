"""The inputs are far too large or far too small."""

from collections.abc import Iterator

import numpy as np

from holter.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.rules import rule
from holter.rules._anchors import anchor, readings
from holter.rules._curves import training_curve
from holter.rules._outcome import outcome
from holter.run import Run
from holter.signals import ACTIVATION_STD, INPUT_ABSMAX, INPUT_STD, LOSS

_FEWEST = 5  # sampled steps
_USUAL = 3.0  # standard deviation of what a first layer returns, at most
_FAR = 3.0  # times the loss of a constant answer


@rule(
    severity=Severity.WARNING,
    level=Level.DATA,
    needs=(
        INPUT_STD,
        INPUT_ABSMAX,
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
        "large-initial-loss",
        "dead-units",
        "dead-gradients",
        "saturated-units",
        "growing-activations",
        "fading-activations",
        "vanishing-gradients",
        "validation-mismatch",
        "erratic-validation",
        "dominating-gradient",
        "oscillating-gradients",
        "all-zero-gradients",
        "constant-clipping",
        "skipped-steps",
        "collapsing-loss-scale",
        "overflow-headroom",
    ),
)
def unscaled_inputs(run: Run, *, large: float = 20.0, small: float = 0.02) -> Iterator[Verdict]:
    """The inputs are far too large or far too small.

    ## What it does
    Looks at the numbers that the model is called with. They are far too large where their standard
    deviation is over `large`, such as pixels from 0 to 255 or a column in its own unit; far too
    small where it is under `small`, such as pixels divided by 255 twice. That is a finding where
    the loss was bad, or began above three times what a constant answer gives; else it is silent.
    Where the first layer of the model brings them to a usual size it is silent, too.

    ## Why it matters
    Weights are initialised for inputs of about 1. With inputs of 100 the first outputs are of that
    size, the first gradients are larger still, and the first steps kill units or saturate them;
    with inputs of 0.004 the first layer hardly learns.

    ## What to do
    Standardise inputs with the mean and standard deviation of the training set: `(x - mean) / std`;
    divide pixels by 255, once.

    ## When it is wrong
    Models that normalise their input in a way that is not a module of its own. Token ids are
    integers and not looked at.

    ## How to confirm
    - Divide the inputs by their standard deviation and repeat the first 100 steps.
    """
    for owner, spread in run[INPUT_STD].items():
        peak = readings(run, INPUT_ABSMAX, owner)
        known = spread.values[np.isfinite(spread.values)]
        if len(known) < _FEWEST or not len(peak):
            yield unscaled_inputs.not_examined(f"{len(known)} of the {_FEWEST} steps needed")
            continue
        usual, top = float(np.median(known)), float(np.median(peak))
        said = f"inputs of {owner} have a standard deviation of {usual:.3g} and reach {top:.3g}"
        if small <= usual <= large or top == 0:
            yield unscaled_inputs.clear(said)
            continue
        inside = _first_layer(run)
        if usual > large and inside is not None and inside < _USUAL:
            yield unscaled_inputs.clear(f"{said}; behind the first layer it is {inside:.2g}")
            continue
        harm = _harm(run)
        if harm is None:
            yield unscaled_inputs.clear(f"{said}; the loss fell all the same")
            continue
        yield unscaled_inputs.finding(
            f"{said}: far too {'large' if usual > large else 'small'}; {harm.says}",
            confidence=Confidence.LIKELY,
            onset=spread.first,
            evidence=(
                Evidence(INPUT_STD, (spread.first, spread.last), f"median {usual:.3g}", owner),
                Evidence(INPUT_ABSMAX, (spread.first, spread.last), f"median {top:.3g}", owner),
                harm,
            ),
            fix="standardise the inputs: (x - mean) / std of the training set",
        )


def _first_layer(run: Run) -> float | None:
    """The size of what the first module returns at first."""
    if ACTIVATION_STD not in run:
        return None
    first = next((each for each in run[ACTIVATION_STD].values() if len(each)), None)
    return float(first.values[0]) if first is not None else None


def _harm(run: Run) -> Evidence | None:
    """What speaks for a bad effect: the outcome, or a first loss far above a constant answer's."""
    result = outcome(run)
    if result is not None and result.bad:
        return result.evidence
    curve, constant = training_curve(run, may_change_sign=True), anchor(run)
    if isinstance(curve, str) or isinstance(constant, str) or not len(curve):
        return None
    level = constant.level * constant.scale
    highest = float(curve.values[:10].max())
    if highest < _FAR * level:
        return None
    return Evidence(
        LOSS,
        (int(curve.steps[0]), int(curve.steps[min(9, len(curve) - 1)])),
        f"the loss began at {highest:.3g}; a constant answer has {level:.3g}",
        curve.owner,
    )
