"""The targets are far larger than anything the model puts out."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.baseline import last, readings
from holter.diagnosis.facts.robust import midmean
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import OUTPUT_SIZE, TARGET_MEAN, TARGET_STD

_FEWEST = 10  # sampled steps
_ONE = 1.0  # size that outputs are made for: many begin far smaller, heads of zeros at 0
_PATIENCE = 100  # steps in which outputs may be on their way to the targets
_REACHED = 1.02  # times the loss of a constant answer: outputs are as large as they have to be
_NEAR = 0.3  # of the mean of the targets: outputs that got there are on their way


@rule(
    severity=Severity.WARNING,
    level=Level.DATA,
    needs=(
        TARGET_STD,
        TARGET_MEAN,
        OUTPUT_SIZE,
    ),
)
def unscaled_targets(facts: Facts, *, factor: float = 30.0) -> Iterator[Verdict]:
    """The targets are far larger than anything the model puts out.

    ## What it does
    Compares the size of numeric targets (the larger of mean and standard deviation) with that of
    the first outputs, or with 1 where these are smaller. It speaks where targets are more than
    `factor` times as large, the loss lost less than half of itself in at least 100 steps, and
    either it did not fall under what a constant answer gives, or outputs are still under a third of
    the mean of the targets. A loss that rose or is not finite counts from the start. It is a hint
    where the loss came within 2 % of what a constant answer gives, or under it: outputs have the
    right size then, and the targets may be hard to predict.

    ## Why it matters
    Errors of thousands make gradients of thousands: either the first steps throw the weights far
    away, or a careful learning rate needs ages to get the outputs to where the targets are.

    ## What to do
    Standardise the targets with the mean and standard deviation of the training set, and undo it
    when predicting. Logarithms help where they span orders of magnitude.

    ## When it is wrong
    Models that scale their output themselves, or learn fast enough, get there soon and the loss
    falls: then this rule is silent. Targets that cannot be predicted at all look the same while the
    outputs are on their way.

    ## How to confirm
    - Train on `(y - y.mean()) / y.std()`: the loss should fall under 1 within an epoch.
    """
    for owner, spread in facts.run[TARGET_STD].items():
        sizes, mean = readings(facts, OUTPUT_SIZE, owner), last(facts, TARGET_MEAN, owner)
        width = last(facts, TARGET_STD, owner)
        if len(sizes) < _FEWEST or width is None or mean is None:
            yield unscaled_targets.not_examined(f"{len(sizes)} of the {_FEWEST} steps needed")
            continue
        first, now = float(np.median(sizes[:3])), float(np.median(sizes[-_FEWEST:]))
        scale = max(abs(mean), width)
        said = f"targets of {owner} are {mean:.3g} +- {width:.3g}, the first outputs {first:.2g}"
        if not scale > factor * max(first, _ONE):
            yield unscaled_targets.clear(said)
            continue
        result = facts.outcome
        if result is None:
            yield unscaled_targets.not_examined(f"{said}; what came of it cannot be told")
            continue
        short = now < _NEAR * abs(mean)
        rose = not result.finite or result.fall < 0
        slow = facts.run.steps >= _PATIENCE and result.fall < 0.5
        if not ((result.bad and rose) or (slow and (result.bad or short))):
            yield unscaled_targets.clear(f"{said}, the last {now:.2g}; {result.says}")
            continue
        span = (spread.first, spread.last)
        yield unscaled_targets.finding(
            f"{said}, the last {now:.2g}; {result.says}",
            confidence=Confidence.HINT if not short and _at_constant(facts) else Confidence.LIKELY,
            onset=spread.first,
            evidence=(
                Evidence(TARGET_STD, span, f"{mean:.3g} +- {width:.3g}", owner),
                Evidence(OUTPUT_SIZE, span, f"{first:.3g} at first, {now:.3g} at last", owner),
                result.evidence,
            ),
            fix="standardise the targets with the mean and deviation of the training set",
        )


def _at_constant(facts: Facts) -> bool:
    """Whether the loss came down to what a constant answer gives."""
    curve, constant = facts.signed_curve, facts.baseline
    if isinstance(curve, str) or isinstance(constant, str):
        return False
    end = curve.part(0.8)
    return len(end) > 0 and midmean(end) < _REACHED * constant.level * constant.scale
