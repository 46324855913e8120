"""The loss is a sum over the batch, but the learning rate suits a mean."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.baseline import readings, root_shares
from holter.diagnosis.facts.handwritten import loss_name
from holter.diagnosis.facts.progress import median_update, steps_follow_gradients
from holter.diagnosis.facts.reduction import summed_elements
from holter.diagnosis.facts.robust import Values
from holter.diagnosis.rule import exception, rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import LOSS_SUMMED, TARGET_COUNT, UPDATE_RATIO


@exception
def rescaling_optimizer(facts: Facts, function: str) -> str | None:
    """Adam and similar optimizers normalise gradients: a sum and a mean give the same steps."""
    if steps_follow_gradients(facts):
        return None
    return f"{function} sums over the batch, and the optimizer rescales its steps"


@rule(
    severity=Severity.WARNING,
    level=Level.HYPERPARAMETER,
    needs=(LOSS_SUMMED,),
    exceptions=(rescaling_optimizer,),
)
def summed_loss(
    facts: Facts,
    *,
    min_steps: Annotated[int, "sampled steps needed"] = 5,
    min_share: Annotated[float, "share of the steps that sum"] = 0.9,
    small: Annotated[float, "median relative update that is not too large"] = 3e-3,
    rise: Annotated[float, "early rise of the loss, in units of the first loss"] = 1.5,
    leap: Annotated[float, "relative update in the first steps that is far too large"] = 0.1,
    varies: Annotated[
        float, "ratio of large to small batches from which a rise is not judged"
    ] = 1.2,
) -> Iterator[Verdict]:
    """The loss is a sum over the batch, but the learning rate suits a mean.

    ## What it does
    Reports a loss function with `reduction="sum"` if relative updates are not small and the loss
    did not fall or is no longer finite. It also reports one whose first steps increased the loss or
    overwrote a large part of the weights.

    ## Why it matters
    The gradient of a sum, and with it each SGD step, is larger than that of a mean by the number of
    targets in a batch, and it depends on the batch size.

    ## Example
    ```python
    loss = F.cross_entropy(model(x), y, reduction="sum")    # bad
    loss = F.cross_entropy(model(x), y, reduction="mean")   # good
    ```

    ## What to do
    Use `reduction="mean"`, or divide the learning rate by the number of targets in a batch.

    ## When it is wrong
    A loss that does not fall for another reason looks the same if steps are large.

    ## How to confirm
    - Divide the loss by the number of targets in the batch and repeat the first 100 steps.
    """
    for function, summed in facts.run[LOSS_SUMMED].items():
        if len(summed) < min_steps:
            yield summed_loss.not_examined(f"{len(summed)} of the {min_steps} steps needed")
            continue
        if float(np.mean(summed.values)) < min_share:
            yield summed_loss.clear(f"{function} does not sum over the batch")
            continue
        if root_shares(facts) is not None and summed_elements(facts) is None:
            yield summed_loss.clear(f"the sum that {function} returns is divided before backward()")
            continue
        excuse, outcome = summed_loss.excused(facts, function), facts.outcome
        if excuse is not None:
            yield excuse
            continue
        if outcome is None:
            yield summed_loss.not_examined(
                f"{function} sums over the batch; whether the loss fell is unknown"
            )
            continue
        update = median_update(facts, 0, facts.run.steps)
        counts = readings(facts, TARGET_COUNT, function)
        moderate = outcome.finite and update is not None and update < small
        damage = _early_rise(facts, counts, rise, varies)
        if not damage and not moderate:
            damage = _early_leap(facts, leap) or (outcome.says if outcome.bad else "")
        measured = f"{function} sums over the batch"
        if update is not None:
            measured += f", median relative update {update:.2g}"
        if not damage:
            measured += f"; {outcome.says}"
            yield summed_loss.clear(measured) if outcome.bad else summed_loss.harmless(measured)
            continue
        times = f"{np.median(counts):.0f} times" if len(counts) else "batch-size times"
        yield summed_loss.finding(
            f"{loss_name(facts, function)} sums over the batch, so gradients are {times} those of"
            f" a mean; {damage}",
            confidence=Confidence.LIKELY,
            onset=summed.first,
            evidence=(
                Evidence(LOSS_SUMMED, (summed.first, summed.last), 'reduction="sum"', function),
                outcome.evidence,
            ),
            fix='use `reduction="mean"`, or divide the learning rate by the batch size',
        )


def _early_rise(facts: Facts, counts: Values, rise: float, varies: float) -> str:
    """Return how the first steps raised the loss, in words; empty if they did not.

    A sum over a varying number of targets rises and falls with that number.
    """
    curve = facts.signed_curve
    varying = len(counts) > 0 and np.quantile(counts, 0.9) > varies * np.quantile(counts, 0.1)
    if isinstance(curve, str) or len(curve) < 3 or curve.values[0] <= 0 or varying:
        return ""
    early = curve.values[: max(10, curve.place(0.1))]
    if early.max() < rise * curve.values[0]:
        return ""
    return f"the loss rose from {curve.values[0]:.3g} to {early.max():.3g} within the first steps"


def _early_leap(facts: Facts, leap: float) -> str:
    """Return how much of the weights the first steps replaced, in words; empty if little."""
    if UPDATE_RATIO not in facts.run:
        return ""
    ratios = facts.sample(UPDATE_RATIO, [layer.name for layer in facts.layers] or None)
    first = ratios.typical()[:5]
    largest = float(np.max(first[np.isfinite(first)], initial=0))
    if largest <= leap:
        return ""
    return f"the median relative update reached {largest:.2g} in the first steps"
