"""The targets are far larger than the outputs of the model."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.baseline import last, readings
from holter.diagnosis.facts.handwritten import loss_name
from holter.diagnosis.facts.robust import midmean
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import OUTPUT_SIZE, TARGET_MEAN, TARGET_STD

_INITIAL = 1.0  # scale of the outputs of a fresh model: many begin smaller, zero heads at 0


@rule(
    severity=Severity.WARNING,
    level=Level.DATA,
    needs=(
        TARGET_STD,
        TARGET_MEAN,
        OUTPUT_SIZE,
    ),
)
def unscaled_targets(
    facts: Facts,
    *,
    factor: Annotated[float, "size of the targets over that of the first outputs"] = 30.0,
    min_steps: Annotated[int, "sampled steps needed"] = 10,
    patience: Annotated[int, "steps in which outputs may approach the targets"] = 100,
    min_fall: Annotated[float, "share that a loss of large targets has to lose"] = 0.5,
    near: Annotated[float, "share of the targets' mean that outputs have to reach"] = 0.3,
    reached: Annotated[float, "loss, over that of the best constant prediction, for a hint"] = 1.02,
) -> Iterator[Verdict]:
    """The targets are far larger than the outputs of the model.

    ## What it does
    Compares the size of numeric targets (the larger of mean and standard deviation) with that of
    the first outputs. It reports far larger targets if the loss rose or became non-finite, or if it
    fell by less than half and either stays above the best constant prediction or outputs are still
    far below the targets. It is a hint if outputs reached the right size, because targets may be
    hard to predict.

    ## Why it matters
    Errors in the thousands cause gradients in the thousands: either the first steps move the
    weights far away, or with a small learning rate the outputs take very long to reach the targets.

    ## Example
    ```python
    loss = F.mse_loss(model(x), prices)                                     # bad
    loss = F.mse_loss(model(x), (prices - prices.mean()) / prices.std())    # good
    ```

    ## What to do
    Standardise the targets with the mean and standard deviation of the training set, and invert it
    when predicting. Use logarithms if targets span orders of magnitude.

    ## When it is wrong
    Unpredictable targets look the same while the outputs approach their mean.

    ## How to confirm
    - Train on `(y - y.mean()) / y.std()`: the loss should fall below 1 within an epoch.
    """
    for function, series in facts.run[TARGET_STD].items():
        sizes, mean = readings(facts, OUTPUT_SIZE, function), last(facts, TARGET_MEAN, function)
        std = last(facts, TARGET_STD, function)
        if len(sizes) < min_steps or std is None or mean is None:
            yield unscaled_targets.not_examined(f"{len(sizes)} of the {min_steps} steps needed")
            continue
        first, final = float(np.median(sizes[:3])), float(np.median(sizes[-min_steps:]))
        measured = (
            f"targets of {loss_name(facts, function)} are {mean:.3g} ± {std:.3g}, the first outputs"
            f" {first:.2g}"
        )
        if not max(abs(mean), std) > factor * max(first, _INITIAL):
            yield unscaled_targets.clear(measured)
            continue
        early = _early_size(facts, function, min_steps)
        if not early > factor * max(first, _INITIAL):
            yield unscaled_targets.clear(f"{measured}; the first targets reach {early:.2g}")
            continue
        outcome = facts.outcome
        if outcome is None:
            yield unscaled_targets.not_examined(f"{measured}; whether the loss fell is unknown")
            continue
        measured += f", the last {final:.2g}; {outcome.says}"
        short = final < near * abs(mean)
        rose = outcome.bad and (not outcome.finite or outcome.fall < 0)
        slow = outcome.fall < min_fall and (outcome.bad or short)
        if not rose and not slow:
            yield unscaled_targets.harmless(measured)
            continue
        if not rose and facts.run.steps < patience:
            yield unscaled_targets.not_examined(f"{measured}; {patience} steps are needed")
            continue
        span = (series.first, series.last)
        at_constant = not short and _at_constant_prediction(facts, reached)
        yield unscaled_targets.finding(
            measured,
            confidence=Confidence.HINT if at_constant else Confidence.LIKELY,
            onset=series.first,
            evidence=(
                Evidence(TARGET_STD, span, f"{mean:.3g} ± {std:.3g}", function),
                Evidence(
                    OUTPUT_SIZE, span, f"{first:.3g} initially, {final:.3g} at the end", function
                ),
                outcome.evidence,
            ),
            fix="standardise the targets: `(y - mean) / std` of the training set",
        )


def _early_size(facts: Facts, function: str, steps: int) -> float:
    """Return the size of the first targets: those of a teacher may grow in the training."""
    means = np.abs(readings(facts, TARGET_MEAN, function)[:steps])
    return max(
        float(np.median(means)), float(np.median(readings(facts, TARGET_STD, function)[:steps]))
    )


def _at_constant_prediction(facts: Facts, reached: float) -> bool:
    """Return whether the loss came down to that of the best constant prediction."""
    curve, constant = facts.signed_curve, facts.baseline
    if isinstance(curve, str) or isinstance(constant, str):
        return False
    end = curve.part(0.8)
    return len(end) > 0 and midmean(end) < reached * constant.level * constant.scale
