"""The range of the logits is too small for any class to get a high probability."""

from collections.abc import Iterator
from math import exp, inf, log
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.baseline import last, readings
from holter.diagnosis.facts.robust import midmean
from holter.diagnosis.rule import exception, rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    ACCURACY,
    LOSS_MEAN,
    OUTPUT_MAX,
    OUTPUT_MIN,
    OUTPUT_PROBABILITY_FRACTION,
    OUTPUT_UNITS,
)

_FUNCTION = "cross_entropy"
_STEADY = 0.3  # share of its whole fall by which the loss falls from the middle on


@exception
def still_falling(facts: Facts, measured: str) -> str | None:
    """The loss falls as fast at the end as before: the outputs had no time to grow yet."""
    curve = facts.curve
    if isinstance(curve, str) or len(curve) < 10:
        return None
    start, middle, end = (midmean(curve.part(*span)) for span in ((0, 0.1), (0.4, 0.6), (0.9, 1)))
    if middle - end < _STEADY * (start - end):
        return None
    return f"{measured}, and the loss still falls: {start:.3g}, {middle:.3g}, {end:.3g}"


@rule(
    severity=Severity.WARNING,
    level=Level.ARCHITECTURE,
    needs=(OUTPUT_MIN, OUTPUT_MAX, OUTPUT_UNITS, ACCURACY),
    exceptions=(still_falling,),
    preview=True,
)
def narrow_logits(
    facts: Facts,
    *,
    min_steps: Annotated[int, "sampled steps needed"] = 20,
    min_floor: Annotated[float, "lowest possible loss over that of equal probabilities"] = 0.5,
    min_excess: Annotated[float, "accuracy beyond the largest possible probability"] = 0.2,
    max_growth: Annotated[float, "span of the outputs at the end over that in the middle"] = 1.15,
) -> Iterator[Verdict]:
    """The range of the logits is too small for any class to get a high probability.

    ## What it does
    For cross-entropies, computes the distance between the largest and smallest output of a batch,
    which bounds the probability of any class from above and the loss from below. Reports outputs
    whose accuracy is far above this maximum probability, if the bound keeps the loss near that of
    equal probabilities and the outputs do not grow.

    ## Why it matters
    The loss cannot fall below the bound even for perfect predictions, and the gradient hardly
    depends on whether a prediction is right: training is slow and stops early.

    ## Example
    ```python
    logits = (normalize(a) @ normalize(b).T) * 0.1    # bad
    logits = (normalize(a) @ normalize(b).T) / 0.1    # good
    ```

    ## What to do
    Divide similarities by the temperature instead of multiplying by it. Cosine similarities need a
    factor of 10 to 30 before a softmax, or a learned one. Look for a `tanh`, a normalisation or a
    mean between the last layer and the loss.

    ## When it is wrong
    The outputs should stay close together, for example because of a confidence penalty.

    ## How to confirm
    - Multiply the outputs by 10 before the loss and compare the first 100 losses.
    """
    for function, series in facts.run[OUTPUT_MIN].items():
        if not function.startswith(_FUNCTION) or not len(series):
            continue
        low, high = (readings(facts, each, function) for each in (OUTPUT_MIN, OUTPUT_MAX))
        count = min(len(low), len(high))
        units, shares = last(facts, OUTPUT_UNITS, function), readings(facts, ACCURACY, function)
        if count < min_steps:
            yield narrow_logits.not_examined(f"{count} of the {min_steps} steps needed")
            continue
        if units is None or units < 2 or not len(shares):
            yield narrow_logits.not_examined("the accuracy of this loss is unknown")
            continue
        spans = high[:count] - low[:count]
        span = float(np.median(spans[-max(count // 4, 1) :]))
        middle = float(np.median(spans[count // 4 : count // 2]))
        accuracy = float(np.mean(shares[-max(len(shares) // 4, 1) :]))
        floor, equal = log(1 + (units - 1) * exp(-span)), log(units)
        measured = (
            f"the outputs span {span:.3g}, which keeps the loss above {floor:.3g} (equal"
            f" probabilities: {equal:.3g})"
        )
        probabilities = last(facts, OUTPUT_PROBABILITY_FRACTION, function) or 0.0
        is_narrow = floor >= min_floor * equal and span <= max_growth * middle
        if is_narrow and (lowest := _level(facts, function)) < floor:
            yield narrow_logits.clear(
                f"the loss is {lowest:.3g}, below what the outputs read allow"
            )
            continue
        if not is_narrow or accuracy < exp(-floor) + min_excess or probabilities >= 1:
            yield narrow_logits.clear(f"{measured}; accuracy {accuracy:.0%}")
            continue
        if (excuse := narrow_logits.excused(facts, measured)) is not None:
            yield excuse
            continue
        steps = series.first, series.last
        yield narrow_logits.finding(
            f"{measured}: no class gets more than {exp(-floor):.0%}, although {accuracy:.0%} of the"
            " predictions are right",
            confidence=Confidence.LIKELY,
            onset=series.first,
            evidence=(
                Evidence(OUTPUT_MAX, steps, f"{span:.3g} above the smallest output", function),
                Evidence(ACCURACY, steps, f"{accuracy:.0%} at the end", function),
            ),
            fix="divide the outputs by a temperature, or multiply them by 10 to 30, before the"
            " loss: `cross_entropy(similarity / 0.1, labels)`",
        )


def _level(facts: Facts, function: str) -> float:
    """Return the loss at the end, which is read more often than outputs; infinite if unknown."""
    losses = readings(facts, LOSS_MEAN, function) if LOSS_MEAN in facts.run else np.empty(0)
    return float(np.median(losses[-max(len(losses) // 20, 1) :])) if len(losses) else inf
