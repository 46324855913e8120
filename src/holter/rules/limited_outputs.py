"""The outputs end where the targets go on."""

from collections.abc import Iterator

import numpy as np

from holter.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.rules import rule
from holter.rules._anchors import last, readings
from holter.rules._robust import Values
from holter.run import Run
from holter.run.format import Floats
from holter.signals import OUTPUT_MAX, OUTPUT_MIN, TARGET_MAX, TARGET_MIN, TARGET_STD

_NUMERIC = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
_PRESSED = 0.02  # of a bound: outputs that are nearer press on it
_OFTEN = 0.5  # share of steps on which a ReLU has a zero among its outputs
_BEYOND = 0.5  # standard deviations of the targets


@rule(
    severity=Severity.WARNING,
    level=Level.ARCHITECTURE,
    needs=(
        OUTPUT_MIN,
        OUTPUT_MAX,
        TARGET_MIN,
        TARGET_MAX,
    ),
    explains=(
        "flat-loss",
        "loss-at-constant-predictor",
        "loss-plateau",
        "underfitting",
        "dead-units",
        "dead-gradients",
        "all-zero-gradients",
        "saturated-units",
        "vanishing-gradients",
        "validation-mismatch",
        "tiny-updates",
        "constant-validation",
        "motionless-weights",
    ),
)
def limited_outputs(run: Run, *, min_steps: int = 20) -> Iterator[Verdict]:
    """The outputs end where the targets go on.

    ## What it does
    For losses on numbers, compares the range of all outputs with the range of all targets. It
    speaks where the outputs press on a bound that an activation makes (0 for a ReLU, 0 and 1 for a
    sigmoid, -1 and 1 for a tanh), never pass it on at least `min_steps` sampled steps, and targets
    lie beyond it by more than half of their standard deviation.

    ## Why it matters
    A ReLU cannot answer a negative number, a sigmoid nothing above 1. The loss stops at the part of
    the targets that cannot be reached, and where outputs sit at the bound there is no gradient to
    move them.

    ## What to do
    Take the activation off the last layer, or scale the targets into its range.

    ## When it is wrong
    Targets that go beyond on purpose, to be clipped, as in some rewards.

    ## How to confirm
    - Compare the largest and smallest prediction over an epoch with those of the targets.
    """
    for owner, low in run[OUTPUT_MIN].items():
        if owner not in _NUMERIC or not len(low):
            continue
        high = readings(run, OUTPUT_MAX, owner)
        wanted = readings(run, TARGET_MIN, owner), readings(run, TARGET_MAX, owner)
        width = last(run, TARGET_STD, owner)
        if len(low) < min_steps or not len(high) or not len(wanted[0]) or not width:
            yield limited_outputs.not_examined(f"{len(low)} of the {min_steps} steps needed")
            continue
        given = float(np.nanmin(low.values)), float(high.max())
        least, most = float(np.median(wanted[0])), float(np.median(wanted[1]))
        said = (
            f"outputs go from {given[0]:.3g} to {given[1]:.3g},"
            f" targets from {least:.3g} to {most:.3g}"
        )
        name = _activation(given, low.values, high)
        beyond = name is not None and _beyond(name, least, most) > _BEYOND * width
        if name is None or not beyond:
            yield limited_outputs.clear(said)
            continue
        yield limited_outputs.finding(
            f"{said}: they end where a {name} ends",
            confidence=Confidence.LIKELY,
            onset=low.first,
            evidence=(
                Evidence(OUTPUT_MIN, (low.first, low.last), f"never under {given[0]:.3g}", owner),
                Evidence(OUTPUT_MAX, (low.first, low.last), f"never over {given[1]:.3g}", owner),
                Evidence(TARGET_MIN, (low.first, low.last), f"usually down to {least:.3g}", owner),
                Evidence(TARGET_MAX, (low.first, low.last), f"usually up to {most:.3g}", owner),
            ),
            fix="take the activation off the last layer, or scale the targets into its range",
        )


def _activation(given: tuple[float, float], low: Floats, high: Values) -> str | None:
    """Which activation outputs of this range press on the bounds of."""
    if given[0] >= 0 and given[1] <= 1 and (given[0] < _PRESSED or given[1] > 1 - _PRESSED):
        return "sigmoid"
    if given[0] >= -1 and given[1] <= 1 and max(-given[0], given[1]) > 1 - _PRESSED:
        return "tanh"
    if given[0] == 0 and np.mean(low == 0) > _OFTEN and high.max() > 0:
        return "ReLU"
    return None


def _beyond(name: str, least: float, most: float) -> float:
    """How far targets lie beyond the bounds of an activation."""
    lower = -1.0 if name == "tanh" else 0.0
    upper = np.inf if name == "ReLU" else 1.0
    return max(lower - least, most - upper)
