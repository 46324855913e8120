"""Accumulated batches have different numbers of targets but equal weight."""

from collections.abc import Iterator
from typing import Annotated

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import percent
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    ACCUMULATION_BATCHES,
    ACCUMULATION_DEVIATION,
    ACCUMULATION_RESIDUAL,
    ACCUMULATION_SCALE,
    ACCUMULATION_TARGETS,
)


@rule(
    severity=Severity.WARNING,
    level=Level.PROCEDURE,
    needs=(ACCUMULATION_RESIDUAL, ACCUMULATION_SCALE, ACCUMULATION_TARGETS, ACCUMULATION_BATCHES),
)
def uneven_accumulation(
    facts: Facts,
    *,
    min_deviation: Annotated[float, "relative error of the accumulated gradient"] = 0.1,
    max_residual: Annotated[float, "relative error up to which two gradients are equal"] = 0.01,
) -> Iterator[Verdict]:
    """Accumulated batches have different numbers of targets but equal weight.

    ## What it does
    Uses the experiment `accumulation`, which compares the gradient of one batch with those of its
    parts. If only the mean weighted by the number of targets matches, the loss is a mean over
    targets, and accumulating batches with different numbers of targets distorts the gradient.

    ## Why it matters
    A batch with ten tokens has the same weight as one with a thousand, so each of its tokens counts
    a hundred times more. The result differs from training with one large batch.

    ## Example
    ```python
    (cross_entropy(logits, targets) / batches).backward()  # bad
    (cross_entropy(logits, targets, reduction="sum") / targets_of_step).backward()  # good
    ```

    ## What to do
    Sum the loss over targets (`reduction="sum"`) and divide by the number of targets of all batches
    of the step.

    ## When it is wrong
    Each batch, or each sequence, should have equal weight.

    ## How to confirm
    - Compare the gradient of one step with that of one batch that holds all of its samples.
    """
    residuals = {name: float(s.values[-1]) for name, s in facts.run[ACCUMULATION_RESIDUAL].items()}
    parts = len(facts.run[ACCUMULATION_TARGETS]["parts of a batch"])
    batches = int(facts.run[ACCUMULATION_BATCHES][""].values[-1])
    scale = float(facts.run[ACCUMULATION_SCALE][""].values[-1])
    if residuals["mean"] <= max_residual:
        yield uneven_accumulation.clear(
            f"the gradient of a batch is the mean over its {parts} parts (relative error"
            f" {residuals['mean']:.1g})"
        )
    elif residuals["mean by targets"] <= max_residual:
        yield from _mean_over_targets(facts, batches, min_deviation)
    elif residuals["scaled mean"] <= max_residual and abs(scale - parts) <= 0.01 * parts:
        yield uneven_accumulation.normal(
            f"the loss is a sum: the gradient of a batch is {scale:.3g} times the mean over its"
            f" {parts} parts"
        )
    else:
        yield uneven_accumulation.normal(
            "the loss relates the samples of a batch to one another: its gradient differs by"
            f" {percent(residuals['mean'])} from the mean over its {parts} parts"
        )


def _mean_over_targets(facts: Facts, batches: int, min_deviation: float) -> Iterator[Verdict]:
    """The loss is a mean over targets: what that means for this training."""
    if batches < 2 or ACCUMULATION_DEVIATION not in facts.run:
        error = float(facts.run[ACCUMULATION_RESIDUAL]["mean"].values[-1])
        yield uneven_accumulation.normal(
            "the loss is a mean over targets, and parts of a batch have different numbers of them:"
            f" accumulated gradients would have a relative error of {percent(error)}"
        )
        return
    deviation = float(facts.run[ACCUMULATION_DEVIATION][""].values[-1])
    counts = facts.run[ACCUMULATION_TARGETS]["batches of a step"]
    fewest, most = float(counts.values.min()), float(counts.values.max())
    summary = (
        f"the {batches} batches of a step have {fewest:.3g} to {most:.3g} targets and equal weight:"
        f" the accumulated gradient has a relative error of {percent(deviation)}"
    )
    if deviation < min_deviation:
        yield uneven_accumulation.harmless(summary)
        return
    yield uneven_accumulation.finding(
        summary,
        confidence=Confidence.LIKELY,
        onset=0,
        evidence=(
            Evidence(ACCUMULATION_DEVIATION, (0, 0), f"{percent(deviation)}"),
            Evidence(
                ACCUMULATION_TARGETS,
                (counts.first, counts.last),
                f"{fewest:.3g} to {most:.3g}",
                "batches of a step",
            ),
        ),
        fix='use `reduction="sum"` and divide by the number of targets of all batches of the step',
    )
