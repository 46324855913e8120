"""Targets of a binary cross entropy are no probabilities."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.baseline import readings
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import TARGET_MAX, TARGET_MIN

_BINARY = ("binary_cross_entropy", "binary_cross_entropy_with_logits")
_ROUNDED = 0.01  # that smoothing and mixing may go beyond


@rule(
    severity=Severity.ERROR,
    level=Level.DATA,
    needs=(TARGET_MIN, TARGET_MAX),
)
def improper_probabilities(facts: Facts, *, min_steps: int = 3) -> Iterator[Verdict]:
    """Targets of a binary cross entropy are no probabilities.

    ## What it does
    Looks at the smallest and the largest target of `F.binary_cross_entropy` and
    `F.binary_cross_entropy_with_logits` on each sampled step. It speaks where they go under 0 or
    over 1 on at least `min_steps` of them.

    ## Why it matters
    The cross entropy has a floor for targets from 0 to 1 only. Beyond, it falls without end: the
    model learns to answer with ever larger numbers, and the curve looks like progress until it
    breaks.

    ## What to do
    Give 0 and 1 for no and yes, not -1 and 1 or 1 and 2. Divide pixels by 255. Take a squared
    error for targets that are no probabilities.

    ## When it is wrong
    Targets that go beyond on purpose, to push some outputs harder than others.

    ## How to confirm
    - Print `y.min()` and `y.max()` of a batch, right before the loss.
    """
    for owner in _BINARY:
        low, high = readings(facts, TARGET_MIN, owner), readings(facts, TARGET_MAX, owner)
        if not len(low) or len(low) != len(high):
            continue
        outside = int(np.sum((low < -_ROUNDED) | (high > 1 + _ROUNDED)))
        said = f"targets of {owner} go from {np.nanmin(low):.3g} to {np.nanmax(high):.3g}"
        if len(low) < min_steps:
            yield improper_probabilities.not_examined(f"{len(low)} of the {min_steps} steps needed")
        elif outside < min_steps:
            yield improper_probabilities.clear(f"{said} on {len(low)} sampled steps")
        else:
            span = (facts.run[TARGET_MIN][owner].first, facts.run[TARGET_MIN][owner].last)
            yield improper_probabilities.finding(
                f"{said}: they are no probabilities, and the loss has no floor",
                confidence=Confidence.CERTAIN,
                onset=span[0],
                evidence=(
                    Evidence(TARGET_MIN, span, f"down to {np.nanmin(low):.3g}", owner),
                    Evidence(TARGET_MAX, span, f"up to {np.nanmax(high):.3g}", owner),
                ),
                fix="give targets from 0 to 1, or take another loss",
            )
