"""Targets of a binary cross-entropy are not probabilities."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.baseline import readings
from holter.diagnosis.facts.handwritten import loss_name
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import LOSS, TARGET_MAX, TARGET_MIN

_BINARY = ("binary_cross_entropy", "binary_cross_entropy_with_logits")


@rule(
    severity=Severity.ERROR,
    level=Level.DATA,
    needs=(TARGET_MIN, TARGET_MAX),
)
def improper_probabilities(
    facts: Facts,
    *,
    min_steps: Annotated[int, "sampled steps with such targets"] = 3,
    tolerance: Annotated[float, "distance beyond 0 and 1 that rounding may leave"] = 0.01,
) -> Iterator[Verdict]:
    """Targets of a binary cross-entropy are not probabilities.

    ## What it does
    Reads the smallest and the largest target of `F.binary_cross_entropy` and
    `F.binary_cross_entropy_with_logits` on each sampled step, and reports targets below 0 or
    above 1.

    ## Why it matters
    The cross-entropy is bounded below only for targets from 0 to 1. Outside that range it falls
    without bound: the model learns to return ever larger numbers, and the curve looks like progress
    until the loss becomes non-finite.

    ## Example
    ```python
    loss = F.binary_cross_entropy_with_logits(model(x), pixels.float())   # bad
    loss = F.binary_cross_entropy_with_logits(model(x), pixels / 255)     # good
    ```

    ## What to do
    Use 0 and 1 for no and yes, not -1 and 1 or 1 and 2. Divide pixels by 255. Use a squared error
    for targets that are not probabilities.

    ## When it is wrong
    Targets outside the range on purpose, to weight some outputs more than others.

    ## How to confirm
    - Print `y.min()` and `y.max()` of a batch right before the loss.
    """
    for function in _BINARY:
        low, high = readings(facts, TARGET_MIN, function), readings(facts, TARGET_MAX, function)
        if not len(low) or len(low) != len(high):
            continue
        least, most = float(low.min()), float(high.max())
        outside = int(np.sum((low < -tolerance) | (high > 1 + tolerance)))
        measured = (
            f"targets of {loss_name(facts, function)} range from {least:.3g} to {most:.3g} on"
            f" {len(low)} sampled steps"
        )
        if len(low) < min_steps:
            yield improper_probabilities.not_examined(f"{len(low)} of the {min_steps} steps needed")
            continue
        if outside < (1 if _falls_below_zero(facts) else min_steps):
            yield improper_probabilities.clear(measured)
            continue
        series = facts.run[TARGET_MIN][function]
        span = (series.first, series.last)
        yield improper_probabilities.finding(
            f"{measured}: they are not probabilities, and the loss has no lower bound",
            confidence=Confidence.CERTAIN,
            onset=span[0],
            evidence=(
                Evidence(TARGET_MIN, span, f"down to {least:.3g}", function),
                Evidence(TARGET_MAX, span, f"up to {most:.3g}", function),
            ),
            fix="scale the targets to the range from 0 to 1, or use another loss",
        )


def _falls_below_zero(facts: Facts) -> bool:
    """Whether a loss that cannot be negative for probabilities is."""
    losses = facts.run[LOSS].values() if LOSS in facts.run else ()
    return any(bool((series.values < 0).any()) for series in losses)
