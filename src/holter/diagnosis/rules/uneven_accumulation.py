"""Batches with different numbers of targets count alike when their gradients are accumulated."""

from collections.abc import Iterator

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
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
    facts: Facts, *, min_deviation: float = 0.1, max_residual: float = 0.01
) -> Iterator[Verdict]:
    """Batches with different numbers of targets count alike when their gradients are accumulated.

    ## What it does
    Reads the experiment accumulation: the gradient of one batch against those of its parts. Where
    the mean over parts misses it by more than `max_residual` of its norm, while the mean weighted
    by numbers of targets does not, the loss is a mean over targets. The rule speaks where the
    training accumulates several batches to a step, and these numbers differ so much that the
    accumulated gradient is off by `min_deviation` or more. Without accumulation it is noted as
    normal. So are losses that are sums, and losses that relate the samples of a batch, such as
    contrastive ones.

    ## Why it matters
    A batch with ten real tokens then counts as much as one with a thousand: each of the ten weighs
    a hundred times more. The training is not the one with large batches that was meant, and differs
    from the same settings on a larger GPU.

    ## What to do
    Sum the loss over targets (`reduction="sum"`), and divide by the number of targets of all
    batches of the step.

    ## When it is wrong
    That each batch, or each of its sequences, is to count alike is what was wanted.

    ## How to confirm
    - Compare the gradient of one step with that of one batch that holds all of its samples.
    """
    residuals = {name: float(s.values[-1]) for name, s in facts.run[ACCUMULATION_RESIDUAL].items()}
    parts = len(facts.run[ACCUMULATION_TARGETS]["parts of a batch"])
    batches = int(facts.run[ACCUMULATION_BATCHES][""].values[-1])
    scale = float(facts.run[ACCUMULATION_SCALE][""].values[-1])
    if residuals["mean"] <= max_residual:
        yield uneven_accumulation.clear(
            f"the gradient of a batch is the mean over its {parts} parts (to"
            f" {residuals['mean']:.1g})"
        )
    elif residuals["mean by targets"] <= max_residual:
        yield from _uneven(facts, batches, min_deviation)
    elif residuals["scaled mean"] <= max_residual and abs(scale - parts) <= 0.01 * parts:
        yield uneven_accumulation.normal(
            f"the loss is a sum: the gradient of a batch is {scale:.3g} times the mean over its"
            f" {parts} parts"
        )
    else:
        yield uneven_accumulation.normal(
            "the loss relates the samples of a batch: its gradient differs from the mean over its"
            f" {parts} parts by {residuals['mean']:.2g}"
        )


def _uneven(facts: Facts, batches: int, min_deviation: float) -> Iterator[Verdict]:
    """The loss is a mean over targets: what that means for this training."""
    if batches < 2 or ACCUMULATION_DEVIATION not in facts.run:
        missed = float(facts.run[ACCUMULATION_RESIDUAL]["mean"].values[-1])
        yield uneven_accumulation.normal(
            "the loss is a mean over targets, and parts of a batch hold different numbers of them:"
            f" if gradients were accumulated, they would be off by {missed:.1%}"
        )
        return
    deviation = float(facts.run[ACCUMULATION_DEVIATION][""].values[-1])
    counts = facts.run[ACCUMULATION_TARGETS]["batches of a step"]
    least, most = float(counts.values.min()), float(counts.values.max())
    said = (
        f"the {batches} batches of a step have {least:.4g} to {most:.4g} targets and count alike:"
        f" the accumulated gradient is {deviation:.1%} off that of one large batch"
    )
    if deviation < min_deviation:
        yield uneven_accumulation.normal(said)
        return
    yield uneven_accumulation.finding(
        said,
        confidence=Confidence.LIKELY,
        onset=0,
        evidence=(
            Evidence(ACCUMULATION_DEVIATION, (0, 0), f"{deviation:.1%}"),
            Evidence(
                ACCUMULATION_TARGETS,
                (counts.first, counts.last),
                f"{least:.4g} to {most:.4g}",
                "batches of a step",
            ),
        ),
        fix="sum the loss over targets, and divide by the targets of all batches of the step",
    )
