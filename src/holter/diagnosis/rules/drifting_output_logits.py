"""The logits of the output drift away, all of them together."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import OUTPUT_LOG_NORMALISER, OUTPUT_SIZE, OUTPUT_SPREAD, Signal

_FEWEST = 20  # sampled steps
_RISING = 1.1  # times, from the third quarter of the readings to their end
_TOGETHER = 0.7  # size of the logits over log Z: not only the largest of each sample is far off


@rule(
    severity=Severity.WARNING,
    level=Level.NUMERICS,
    needs=(OUTPUT_LOG_NORMALISER, OUTPUT_SPREAD, OUTPUT_SIZE),
    preview=True,
)
def drifting_output_logits(
    facts: Facts, *, far: float = 50.0, share: float = 3.0
) -> Iterator[Verdict]:
    """The logits of the output drift away, all of them together.

    ## What it does
    A softmax does not change when all logits grow by the same number, so nothing holds them. Takes
    the log of the softmax's normaliser (log Z). It speaks where that has drifted further than
    `far` from zero, is more than `share` times as large as the logits differ between samples, the
    logits are as large as it, all together, and it still grows at the end of the readings.

    ## Why it matters
    Low precision has no room for small differences of large numbers: in bfloat16 two logits near
    256 that differ by less than 1 are the same.

    ## What to do
    Add a small penalty on log Z squared (z-loss, 1e-4), or take the bias out of the head.

    ## When it is wrong
    In float32 a drift is harmless for long. Very confident classifiers, and heads of scaled
    cosines, have a large log Z that is no drift: their logits differ as much between samples, or
    only the largest of each sample is large, and this rule is silent.

    ## How to confirm
    - Subtract the mean over the classes from the logits: if the loss is the same and the numbers
      are small, it was a drift.
    """
    normaliser = facts.sample(OUTPUT_LOG_NORMALISER)
    if len(normaliser) < _FEWEST:
        yield drifting_output_logits.not_examined(
            f"{len(normaliser)} of the {_FEWEST} sampled steps needed"
        )
        return
    middle = np.abs(normaliser.between(0.5, 0.75).medians())
    last = np.abs(normaliser.between(0.85, 1).medians())
    span = (int(normaliser.steps[0]), int(normaliser.steps[-1]))
    for column, owner in enumerate(normaliser.owners):
        now, then = float(last[column]), float(middle[column])
        apart, size = _last(facts, OUTPUT_SPREAD, owner), _last(facts, OUTPUT_SIZE, owner)
        said = f"log Z of {owner} is {now:.3g} at last; logits differ by {apart:.3g} across samples"
        if not np.isfinite(now):
            yield drifting_output_logits.not_examined(f"log Z of {owner} is not finite at last")
            continue
        drifts = now > far and now > share * apart and size > _TOGETHER * now
        if not drifts or not now > _RISING * then:
            yield drifting_output_logits.clear(said)
            continue
        beyond = np.abs(normaliser.values[:, column]) > far
        yield drifting_output_logits.finding(
            f"{said}: all of them drift, from {then:.3g} half-way",
            confidence=Confidence.HINT,
            onset=int(normaliser.steps[int(beyond.argmax())]),
            evidence=(
                Evidence(
                    OUTPUT_LOG_NORMALISER,
                    span,
                    f"{then:.3g} half-way, {now:.3g} at last",
                    owner,
                ),
                Evidence(OUTPUT_SPREAD, span, f"{apart:.3g} at last", owner),
                Evidence(OUTPUT_SIZE, span, f"{size:.3g} at last", owner),
            ),
            fix="add a z-loss (1e-4 times log Z squared), or take the bias out of the head",
        )


def _last(facts: Facts, signal: Signal, owner: str) -> float:
    """The level of a signal over the last readings; NaN where there are none."""
    found = facts.sample(signal, [owner])
    return float(found.between(0.85, 1).medians()[0]) if len(found) else np.nan
