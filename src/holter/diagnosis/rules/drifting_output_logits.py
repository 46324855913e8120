"""All output logits drift away from zero together."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import OUTPUT_LOG_NORMALISER, OUTPUT_SIZE, OUTPUT_SPREAD, Signal


@rule(
    severity=Severity.WARNING,
    level=Level.NUMERICS,
    needs=(OUTPUT_LOG_NORMALISER, OUTPUT_SPREAD, OUTPUT_SIZE),
    preview=True,
)
def drifting_output_logits(
    facts: Facts,
    *,
    min_samples: Annotated[int, "sampled steps needed"] = 20,
    far: Annotated[float, "distance of log Z from zero"] = 50.0,
    share: Annotated[float, "times log Z exceeds the spread of logits across samples"] = 3.0,
    together: Annotated[float, "size of all logits over log Z above which all of them drift"] = 0.7,
    rising: Annotated[float, "times by which log Z still grows in the last half of the run"] = 1.1,
) -> Iterator[Verdict]:
    """All output logits drift away from zero together.

    ## What it does
    Follows the logarithm of the softmax's normaliser (log Z): a softmax is invariant to a shift of
    all logits, so nothing limits them. Reports a log Z that is far from zero, much larger than the
    spread of logits across samples, and still growing.

    ## Why it matters
    Low precision cannot represent small differences of large numbers: in bfloat16 two logits near
    256 that differ by less than 1 are equal.

    ## Example
    ```python
    loss = cross_entropy(logits, y)                                            # bad
    loss = cross_entropy(logits, y) + 1e-4 * logits.logsumexp(-1).square().mean()  # good
    ```

    ## What to do
    Add a small penalty on log Z squared (z-loss, 1e-4), or remove the bias of the head.

    ## When it is wrong
    In float32 a drift has no effect for a long time. Very confident classifiers and scaled-cosine
    heads have a large log Z that does not drift; they are recognised by logits that vary as much
    between samples, or by samples with a single large logit.

    ## How to confirm
    - Subtract the mean over the classes from the logits: if the loss is unchanged and the logits
      are small, they had drifted.
    """
    normaliser = facts.sample(OUTPUT_LOG_NORMALISER)
    if len(normaliser) < min_samples:
        yield drifting_output_logits.not_examined(
            f"{len(normaliser)} of the {min_samples} sampled steps needed"
        )
        return
    middles = np.abs(normaliser.between(0.5, 0.75).medians())
    lasts = np.abs(normaliser.between(0.85, 1).medians())
    span = (int(normaliser.steps[0]), int(normaliser.steps[-1]))
    for column, owner in enumerate(normaliser.owners):
        last, middle = float(lasts[column]), float(middles[column])
        if not np.isfinite(last):
            yield drifting_output_logits.not_examined(f"log Z of {owner} is not finite at the end")
            continue
        spread, size = _last(facts, OUTPUT_SPREAD, owner), _last(facts, OUTPUT_SIZE, owner)
        if not (np.isfinite(spread) and np.isfinite(size)):
            yield drifting_output_logits.not_examined(f"few logits of {owner} were read at the end")
            continue
        symptom = (
            f"|log Z| of {owner} is {last:.3g} at the end; the logits spread by {spread:.3g} across"
            " samples"
        )
        drifts = last > far and last > share * spread and size > together * last
        if not drifts or not last > rising * middle:
            yield drifting_output_logits.clear(symptom)
            continue
        beyond = np.abs(normaliser.values[:, column]) > far
        yield drifting_output_logits.finding(
            f"{symptom}; it was {middle:.3g} midway and is still growing",
            confidence=Confidence.HINT,
            onset=int(normaliser.steps[int(beyond.argmax())]),
            evidence=(
                Evidence(
                    OUTPUT_LOG_NORMALISER,
                    span,
                    f"{middle:.3g} midway, {last:.3g} at the end",
                    owner,
                ),
                Evidence(OUTPUT_SPREAD, span, f"{spread:.3g} at the end", owner),
                Evidence(OUTPUT_SIZE, span, f"{size:.3g} at the end", owner),
            ),
            fix="add a z-loss: `loss + 1e-4 * logits.logsumexp(-1).square().mean()`, or remove the"
            " bias of the head",
        )


def _last(facts: Facts, signal: Signal, owner: str) -> float:
    """Return the median of the last readings of a signal, or NaN."""
    sample = facts.sample(signal, [owner])
    return float(sample.between(0.85, 1).medians()[0]) if len(sample) else np.nan
