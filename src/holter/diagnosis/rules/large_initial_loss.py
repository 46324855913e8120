"""The initial loss is far above that of guessing."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.baseline import (
    CROSS_ENTROPIES,
    last,
    readings,
    root_shares,
    scale,
)
from holter.diagnosis.facts.curve import Curve
from holter.diagnosis.facts.robust import Values
from holter.diagnosis.rule import exception, rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    LOSS,
    LOSS_SUMMED,
    OUTPUT_LOG_NORMALISER,
    OUTPUT_SIZE,
    OUTPUT_UNITS,
    TARGET_ENTROPY,
)

_CHANCE = 3.0  # standard errors by which logits of targets may be below the others by chance


@dataclass(frozen=True, slots=True)
class _Start:
    """The first loss and logits of a classifier, compared with guessing."""

    function: str
    classes: float
    guessing: float
    first: float
    logits: Values  # root mean square at each reading; empty if not recorded
    step: int = 0  # later if other models were trained before

    def __str__(self) -> str:
        return (
            f"the first loss is {self.first:.3g}, {self.first / self.guessing:.2g} times guessing"
            f" among {self.classes:.0f} classes ({self.guessing:.3g})"
        )


@exception
def margin(facts: Facts, start: _Start) -> str | None:
    """The loss subtracts a margin from the target logits on purpose, as in ArcFace."""
    normalisers = readings(facts, OUTPUT_LOG_NORMALISER, start.function, start.step)
    if not len(normalisers) or not len(start.logits):
        return None
    # No model knows its targets before the first update. By chance the mean of their logits is off
    # by as much as that of so many classes.
    size, below = float(start.logits[0]), start.first - float(normalisers[0])
    if below <= size * max(1.0, _CHANCE / float(np.sqrt(start.classes))):
        return None
    return f"{start}; before any update the logits of the targets are {below:.2g} below zero"


@rule(
    severity=Severity.WARNING,
    level=Level.ARCHITECTURE,
    needs=(LOSS, OUTPUT_UNITS),
    symptom=True,
    exceptions=(margin,),
)
def large_initial_loss(
    facts: Facts,
    *,
    min_steps: Annotated[int, "losses needed to see whether the loss stays large"] = 20,
    times: Annotated[float, "times guessing that the first loss must exceed"] = 3.0,
    nats: Annotated[float, "nats above guessing that the first loss must exceed"] = 3.0,
    large_logits: Annotated[float, "root mean square of logits; a new head gives about 1"] = 5.0,
    soon: Annotated[float, "share of the steps after which a bad start should be over"] = 0.1,
    kept: Annotated[float, "share of their initial size that intended logits keep"] = 0.8,
) -> Iterator[Verdict]:
    """The initial loss is far above that of guessing.

    ## What it does
    A new classifier should start near the logarithm of the number of classes, or near the entropy
    of the labels. The rule compares the mean cross entropy of its first step with the larger of the
    two. It is likely if the first logits are large and the loss is still above guessing later,
    otherwise a hint.

    ## Why it matters
    The model starts confident and wrong. The first part of training only undoes that, with
    gradients far too large for the learning rate, and units may die or saturate.

    ## Example
    ```python
    nn.init.normal_(model.head.weight, std=1.0)    # bad
    nn.init.normal_(model.head.weight, std=0.02)   # good
    ```

    ## What to do
    Initialise the last layer small (standard deviation 0.02, or 1 over the square root of its
    inputs; zero bias), scale embeddings that share their weights with the head, and scale inputs to
    a standard deviation of about 1.

    ## When it is wrong
    Pretrained models with new classes or tokens, losses with class weights or additional terms, and
    slowly learning models that start with large logits by design, such as scaled cosines.

    ## How to confirm
    - Multiply the last layer's weights by 0.01 before training: the first loss should fall to the
      logarithm of the number of classes.
    - Feed inputs scaled to mean 0 and standard deviation 1: if that fixes it, the inputs were the
      cause.
    """
    curve = facts.signed_curve
    if isinstance(curve, str):
        yield large_initial_loss.not_examined(curve)
        return
    start = _start(facts, curve)
    if isinstance(start, str):
        yield large_initial_loss.not_examined(start)
    elif start.first <= times * start.guessing or start.first <= start.guessing + nats:
        yield large_initial_loss.clear(str(start))
    elif (excuse := large_initial_loss.excused(facts, start)) is not None:
        yield excuse
    elif len(curve) < min_steps:
        yield large_initial_loss.not_examined(
            f"{start}; {len(curve)} of the {min_steps} losses needed to see whether it stays large"
        )
    else:
        begin = max(curve.place(soon), min_steps // 2)
        later = float(np.median(curve.values[begin : begin + min_steps])) / scale(facts)
        stays = _stays(start, kept)
        step = int(curve.steps[begin])
        if later < start.guessing and stays:
            yield large_initial_loss.harmless(f"{start}, but {later:.3g} at step {step}")
            return
        learned = float(np.median(curve.part(0.9))) / scale(facts) < start.guessing
        large = len(start.logits) > 0 and start.logits[0] >= large_logits
        sure = bool(large and later >= start.guessing and not (stays and learned))
        yield _finding(curve, start, step, later, sure=sure)


def _start(facts: Facts, curve: Curve) -> _Start | str:
    """Return the first loss beside guessing, or why it is unknown."""
    function = facts.loss_function
    if function not in CROSS_ENTROPIES:
        return "the loss is not one cross entropy"
    if root_shares(facts) is None and last(facts, LOSS_SUMMED, function):
        return f"the number of elements that {function} sums over is unknown"
    begin = facts.fresh_start
    if not len(curve) or curve.steps[0] != begin:
        return "the loss before the first update was not read"
    units = last(facts, OUTPUT_UNITS, function)
    classes = 2.0 if function.startswith("binary") else units or 0.0
    guessing = max(np.log(max(classes, 1)), last(facts, TARGET_ENTROPY, function) or 0)
    if guessing <= 0:
        return "the number of classes is unknown"
    first = float(curve.values[0]) / scale(facts)
    sizes = readings(facts, OUTPUT_SIZE, function, begin)
    return _Start(function, classes, guessing, first, sizes, begin)


def _stays(start: _Start, kept: float) -> bool:
    """Return whether the logits keep their first size, as far as they are recorded."""
    sizes = start.logits
    if not len(sizes):
        return True
    return float(np.median(sizes[-max(len(sizes) // 4, 1) :])) > kept * float(sizes[0])


def _finding(curve: Curve, start: _Start, step: int, later: float, *, sure: bool) -> Verdict:
    is_over = later < start.guessing
    evidence = [
        Evidence(
            LOSS,
            (start.step, step),
            f"{start.first:.3g} at step {start.step}, {later:.3g} at step {step}",
            curve.owner,
        )
    ]
    if len(start.logits):
        evidence.append(
            Evidence(
                OUTPUT_SIZE,
                (start.step, start.step),
                f"root mean square of logits {start.logits[0]:.2g} before any update",
                start.function,
            )
        )
    return large_initial_loss.finding(
        f"{start}, and {'' if is_over else 'still '}{later:.3g} at step {step}",
        severity=Severity.INFO if is_over else Severity.WARNING,
        confidence=Confidence.LIKELY if sure else Confidence.HINT,
        onset=start.step,
        evidence=evidence,
        fix="initialise the last layer small, or scale the inputs, so that the first loss is near"
        f" {start.guessing:.3g}",
    )
