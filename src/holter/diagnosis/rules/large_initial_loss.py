"""The first loss is far above that of guessing."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.baseline import CROSS_ENTROPIES, last, readings, scale
from holter.diagnosis.facts.curve import Curve
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    LOSS,
    LOSS_SUMMED,
    OUTPUT_LOG_NORMALISER,
    OUTPUT_SIZE,
    OUTPUT_UNITS,
    TARGET_ENTROPY,
)

_OVER = 3.0  # times the loss of guessing
_NATS = 3.0  # and so much more than it
_LARGE_LOGITS = 5.0  # root mean square: a fresh head gives about 1
_SOON = 0.1  # share of the steps after which a bad start should be over
_KEPT = 0.8  # share of their first size that logits keep which are meant to be large
_CHANCE = 3.0  # standard errors by which targets may be under the other logits by chance


@rule(
    severity=Severity.WARNING,
    level=Level.ARCHITECTURE,
    needs=(LOSS, OUTPUT_UNITS),
    symptom=True,
)
def large_initial_loss(facts: Facts, *, min_steps: int = 20) -> Iterator[Verdict]:
    """The first loss is far above that of guessing.

    ## What it does
    A fresh classifier should begin near the logarithm of the number of classes, which is what
    guessing costs, or near the entropy of the labels. The rule takes the loss of step 0, before any
    update, of cross entropies that average over the batch. It speaks if that is more than three
    times the larger of both and more than 3 nats above it, and the logits of that step are large
    (root mean square over 5). It is a warning if the loss is still above guessing a tenth of the
    run later (at least `min_steps` losses in all), and a hint for information if that is over by
    then. It is a hint, too, where logits are not recorded or where the loss came under guessing
    while they stayed as large: then they may be meant to be. Such a start that is soon over is
    noted as normal. Where the logits of the targets lie far under the others before any update, a
    margin was taken from them on purpose, as in ArcFace: that is clear.

    ## Why it matters
    The model begins sure and wrong. The first part of training only unlearns that, with gradients
    that are far too large for the learning rate, and units may die or saturate on the way.

    ## What to do
    Initialise the last layer small (standard deviation 0.02, or 1 over the square root of its
    inputs; zero bias), scale embeddings that share their weights with the head, and scale inputs to
    a standard deviation of about 1.

    ## When it is wrong
    Pretrained models with new classes or tokens, losses with class weights or further terms, and
    models that are meant to begin with large logits, as cosines times a scale, while they learn
    slowly. Where the logits are not large the rule is silent.

    ## How to confirm
    - Multiply the last layer's weights by 0.01 before training: the first loss should fall to the
      logarithm of the number of classes.
    - Feed inputs scaled to mean 0 and standard deviation 1: if that does it, it was the inputs.
    """
    curve = facts.signed_curve
    if isinstance(curve, str):
        yield large_initial_loss.not_examined(curve)
        return
    function = facts.loss_function
    if function not in CROSS_ENTROPIES or last(facts, LOSS_SUMMED, function):
        yield large_initial_loss.not_examined("the loss is not one cross entropy with a mean")
    elif not len(curve) or curve.steps[0] != 0:
        yield large_initial_loss.not_examined("the loss before the first update was not read")
    else:
        yield _judge(facts, curve, function, min_steps)


def _judge(facts: Facts, curve: Curve, function: str, min_steps: int) -> Verdict:
    units = last(facts, OUTPUT_UNITS, function)
    binary = function.startswith("binary")
    classes = 2.0 if binary else units or 0.0
    guessing = max(np.log(max(classes, 1)), last(facts, TARGET_ENTROPY, function) or 0)
    first = float(curve.values[0]) / scale(facts)
    if guessing <= 0:
        return large_initial_loss.not_examined("the number of classes is unknown")
    if first <= _OVER * guessing or first <= guessing + _NATS:
        return large_initial_loss.clear(
            f"the first loss is {first:.4g}; guessing among {classes:.0f} classes costs"
            f" {guessing:.4g}"
        )
    sizes = readings(facts, OUTPUT_SIZE, function)
    size = float(sizes[0]) if len(sizes) else None
    if size is not None and size < _LARGE_LOGITS:
        return large_initial_loss.clear(
            f"the first loss is {first:.4g}, but logits are {size:.2g}: the rest is not the head's"
        )
    if size is not None and _has_margin(facts, function, first, size, classes):
        return large_initial_loss.clear(
            f"the first loss is {first:.4g}, but before any update the targets' logits lie far"
            " under the others: a margin on purpose"
        )
    if len(curve) < min_steps:
        return large_initial_loss.not_examined(
            f"the first loss is {first:.4g}; {len(curve)} of the {min_steps} losses needed to see"
            " whether that is soon over"
        )
    begin = max(curve.place(_SOON), min_steps // 2)
    later = float(np.median(curve.values[begin : begin + min_steps])) / scale(facts)
    step = int(curve.steps[begin])
    soon_over = later < guessing
    kept = size is None or float(np.median(sizes[-max(len(sizes) // 4, 1) :])) > _KEPT * size
    learned = float(np.median(curve.part(0.9))) / scale(facts) < guessing
    if soon_over and kept:
        return large_initial_loss.normal(
            f"the first loss was {first:.4g}, {first / guessing:.1f} times guessing, but by step"
            f" {step} it is {later:.4g}: a start that cost few steps",
        )
    evidence = [
        Evidence(LOSS, (0, step), f"{first:.4g} at step 0, {later:.4g} at {step}", curve.owner)
    ]
    if size is not None:
        evidence.append(
            Evidence(OUTPUT_SIZE, (0, 0), f"logits of {size:.3g} before any update", function)
        )
    return large_initial_loss.finding(
        f"the first loss is {first:.4g}, {first / guessing:.1f} times what guessing among"
        f" {classes:.0f} classes costs, and {'' if soon_over else 'still '}{later:.4g} at step"
        f" {step}",
        severity=Severity.INFO if soon_over else Severity.WARNING,
        confidence=(
            Confidence.HINT
            if size is None or soon_over or (kept and learned)
            else Confidence.LIKELY
        ),
        onset=0,
        evidence=evidence,
        fix="initialise the last layer small, or scale the inputs, so that the first loss is near"
        f" {guessing:.3g}",
    )


def _has_margin(facts: Facts, function: str, first: float, size: float, classes: float) -> bool:
    """Whether the logits of the targets are lower than the others by more than chance makes.

    No model knows its targets before the first update, unless they are given to it. By chance their
    mean is off by as much as that of so many classes.
    """
    if not len(normalisers := readings(facts, OUTPUT_LOG_NORMALISER, function)):
        return False
    return first - float(normalisers[0]) > size * max(1.0, _CHANCE / float(np.sqrt(classes)))
