"""The loss that is minimised has no floor."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.baseline import readings
from holter.diagnosis.facts.curve import Curve, growth
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import LOSS, LOSS_ROOT_SHARE, OUTPUT_SIZE, WEIGHT_TOTAL_NORM, Signal

_WORDS = {OUTPUT_SIZE: "outputs", WEIGHT_TOTAL_NORM: "weights"}
_WITHOUT_A_FLOOR = ("nll_loss", "gaussian_nll_loss", "poisson_nll_loss", "kl_div")


@rule(
    severity=Severity.ERROR,
    level=Level.PROCEDURE,
    needs=(LOSS,),
)
def unbounded_loss(
    facts: Facts,
    *,
    min_steps: Annotated[int, "losses needed"] = 5,
    min_share: Annotated[float, "share of the steps with the same negative factor"] = 0.9,
    tolerance: Annotated[float, "relative deviation from the median factor"] = 0.01,
    far: Annotated[float, "fall below zero, in units of the first loss"] = 1000.0,
    grown: Annotated[float, "growth of outputs or weights beside such a fall"] = 10.0,
) -> Iterator[Verdict]:
    """The loss that is minimised has no floor.

    ## What it does
    Compares the value that `backward()` is called on with what the loss function returned, and
    reports if the one is the negative of the other or a fixed negative part of it. It also reports
    a loss that has fallen very far below zero while outputs or weights grew.

    ## Why it matters
    Minimising the negative of a loss makes predictions worse without end: the number falls, which
    looks like progress, and has no floor.

    ## Example
    ```python
    (-criterion(model(x), y)).backward()   # bad
    criterion(model(x), y).backward()      # good
    ```

    ## What to do
    Call `backward()` on the loss itself. To maximise a likelihood, minimise its negative once.

    ## When it is wrong
    Unlearning maximises a loss on purpose. So does adversarial training; it is not examined if
    each side has its own loss. Negative log-likelihoods of densities fall below zero, but not that
    far.

    ## How to confirm
    - Look at predictions, or at the accuracy: it falls below that of guessing.
    """
    curve = facts.signed_curve
    if isinstance(curve, str):
        yield unbounded_loss.not_examined(curve)
        return
    if len(curve) < min_steps:
        yield unbounded_loss.not_examined(f"{len(curve)} of the {min_steps} losses needed")
        return
    first, end = _levels(curve)
    course = f"the loss went from {first:.3g} to {end:.3g}"
    loss = Evidence(LOSS, curve.span, course, curve.owner)
    factor = _factor(facts, min_steps, min_share, tolerance)
    below = curve.values < -far * abs(first)
    growing = _growing(facts, curve, grown) if end < -far * abs(first) else None
    if factor is not None and factor < 0:
        series = facts.run[LOSS_ROOT_SHARE][""]
        confidence = Confidence.CERTAIN
        if facts.loss_function in _WITHOUT_A_FLOOR:
            confidence = Confidence.HINT if growing is None else Confidence.LIKELY
        yield unbounded_loss.finding(
            f"backward() is called on {factor:.3g} times what the loss function returned: training"
            " makes the predictions worse",
            confidence=confidence,
            onset=series.first,
            evidence=(
                Evidence(LOSS_ROOT_SHARE, (series.first, series.last), f"median {factor:.3g}"),
                loss,
            ),
            fix="remove the minus sign: call `backward()` on the loss itself",
        )
    elif growing is not None:
        yield unbounded_loss.finding(
            f"{course}: it has no floor, and {_WORDS[growing]} grow with it",
            confidence=Confidence.LIKELY,
            onset=int(curve.steps[int(below.argmax())]),
            evidence=(loss,),
            fix="look for a term with the wrong sign: a loss must have a floor",
        )
    elif factor is not None:
        yield unbounded_loss.clear(
            f"backward() is called on {factor:.3g} times what the loss function returned; {course}"
        )
    else:
        yield unbounded_loss.clear(course)


def _factor(facts: Facts, min_steps: int, min_share: float, tolerance: float) -> float | None:
    """Return the fixed factor between the loss function's value and the loss, or None."""
    shares = readings(facts, LOSS_ROOT_SHARE, "")
    if len(shares) < min_steps:
        return None
    median = float(np.median(shares))
    same = np.abs(shares - median) <= tolerance * abs(median)
    return median if float(np.mean(same)) >= min_share else None


def _levels(curve: Curve) -> tuple[float, float]:
    """Return the largest of the first losses by absolute value, and the final loss."""
    early = curve.values[:10]
    return float(early[np.abs(early).argmax()]), float(np.median(curve.part(0.75)))


def _growing(facts: Facts, curve: Curve, times: float) -> Signal | None:
    """Return the signal, of outputs and weights, that has grown by this factor, or None."""
    first, last = curve.span
    half = (first + last) // 2
    for signal in _WORDS:
        for owner, series in facts.run[signal].items() if signal in facts.run else ():
            start = series.first if len(series) else 0
            grew = growth(facts, signal, owner, (start, start + 2), (half, last))
            if grew is not None and grew > times:
                return signal
    return None
