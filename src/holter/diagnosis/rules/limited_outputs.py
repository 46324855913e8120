"""The outputs end where the targets go on."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.baseline import last, readings
from holter.diagnosis.facts.robust import Values
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import OUTPUT_MAX, OUTPUT_MIN, TARGET_MAX, TARGET_MIN, TARGET_STD

_NUMERIC = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
_PRESSED = 0.02  # of a bound: outputs that are nearer press on it
_OFTEN = 0.5  # share of the later steps on which outputs press on a bound
_BEYOND = 0.5  # standard deviations of the targets
_SWAPPED = 0.4  # change of the targets' range over that of the outputs', as a logarithm
_BOUNDS = {"sigmoid": (0.0, 1.0), "tanh": (-1.0, 1.0), "ReLU": (0.0, np.inf)}


@rule(
    severity=Severity.WARNING,
    level=Level.ARCHITECTURE,
    needs=(
        OUTPUT_MIN,
        OUTPUT_MAX,
        TARGET_MIN,
        TARGET_MAX,
    ),
)
def limited_outputs(facts: Facts, *, min_steps: int = 20) -> Iterator[Verdict]:
    """The outputs end where the targets go on.

    ## What it does
    For losses on numbers, compares the range of all outputs with the range of all targets. It
    speaks where targets lie beyond a bound that an activation makes (0 for a ReLU, 0 and 1 for a
    sigmoid, -1 and 1 for a tanh) by more than half of their standard deviation, and outputs press
    on that bound at most of the later steps and never pass it, on at least `min_steps` sampled
    steps.

    ## Why it matters
    A ReLU cannot answer a negative number, a sigmoid nothing above 1. The loss stops at the part of
    the targets that cannot be reached, and where outputs sit at the bound there is no gradient to
    move them.

    ## What to do
    Take the activation off the last layer, or scale the targets into its range.

    ## When it is wrong
    Targets that go beyond on purpose, to be clipped, as in some rewards. Where target and
    prediction are given in the wrong order the range of what is learned changes and that of what
    is predicted does not: then this rule is silent.

    ## How to confirm
    - Compare the largest and smallest prediction over an epoch with those of the targets.
    """
    for owner, series in facts.run[OUTPUT_MIN].items():
        if owner not in _NUMERIC or not len(series):
            continue
        low, high = readings(facts, OUTPUT_MIN, owner), readings(facts, OUTPUT_MAX, owner)
        wanted = readings(facts, TARGET_MIN, owner), readings(facts, TARGET_MAX, owner)
        width = last(facts, TARGET_STD, owner)
        if min(len(low), len(high), len(wanted[0]), len(wanted[1])) < min_steps or width is None:
            yield limited_outputs.not_examined(f"{len(low)} of the {min_steps} steps needed")
            continue
        given = float(low.min()), float(high.max())
        least, most = float(np.median(wanted[0])), float(np.median(wanted[1]))
        said = (
            f"outputs go from {given[0]:.3g} to {given[1]:.3g},"
            f" targets from {least:.3g} to {most:.3g}"
        )
        name = _activation(low, high, least, most, _BEYOND * width)
        if name is None:
            yield limited_outputs.clear(said)
            continue
        if _change(*wanted) > _change(low, high) + _SWAPPED:
            yield limited_outputs.clear(f"{said}; they seem to be given in the wrong order")
            continue
        span = (series.first, series.last)
        yield limited_outputs.finding(
            f"{said}: they end where a {name} ends",
            confidence=Confidence.LIKELY,
            onset=series.first,
            evidence=(
                Evidence(OUTPUT_MIN, span, f"never under {given[0]:.3g}", owner),
                Evidence(OUTPUT_MAX, span, f"never over {given[1]:.3g}", owner),
                Evidence(TARGET_MIN, span, f"usually down to {least:.3g}", owner),
                Evidence(TARGET_MAX, span, f"usually up to {most:.3g}", owner),
            ),
            fix="take the activation off the last layer, or scale the targets into its range",
        )


def _activation(low: Values, high: Values, least: float, most: float, far: float) -> str | None:
    """Whose bound outputs press on, with targets far beyond it."""
    later = slice(len(low) // 2, None)
    for name, (bottom, top) in _BOUNDS.items():
        if low.min() < bottom or high.max() > top:
            continue
        near = 0.0 if name == "ReLU" else _PRESSED  # a ReLU is at its bound, others get near
        under = np.mean(low[later] <= bottom + near) > _OFTEN and bottom - least > far
        over = np.mean(high[later] >= top - near) > _OFTEN and most - top > far
        if (under or over) and high.max() > low.min():
            return name
    return None


def _change(low: Values, high: Values) -> float:
    """By how much a range changes over the run, as a logarithm.

    What a model puts out changes as it learns; what it is asked for does not.
    """
    both = min(len(low), len(high))
    widths = high[:both] - low[:both]
    few = max(both // 10, 1)
    first, last = np.median(widths[:few]), np.median(widths[-few:])
    return abs(float(np.log(max(last, 1e-30) / max(first, 1e-30))))
