"""A single change makes the training learn far more."""

from collections.abc import Iterator
from typing import Annotated

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.cures import Cures
from holter.diagnosis.facts.tried import Effect, TriedChange
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import CURE_LOSS
from holter.record.trials import UNCHANGED


@rule(severity=Severity.WARNING, level=Level.PROCEDURE, needs=(CURE_LOSS,), preview=True)
def weak_learning(
    facts: Facts, *, named: Annotated[int, "changes without effect that are named"] = 6
) -> Iterator[Verdict]:
    """A single change makes the training learn far more.

    ## What it does

    Repeats a training that learned only a part, under one change at a time, and with shuffled
    labels, which must be harder to learn than the true ones. A change counts if most repeats reach
    half the loss or learn twice as much (four times for a reference model without validation), and
    all nearly so, compared with the unchanged training, with learning rates of 0.1, 3 and 10 times
    the script's, and with Adam at 1e-3. If a rule exists for that cause, it is reported instead of
    this one.

    ## Why it matters

    The loss curve does not show that a training could learn more.

    ## Example

    ```python
    output = self.head(sequence[:, 0])  # bad
    output = self.head(sequence[:, -1])  # good
    ```

    ## What to do

    Make the named change. If a reference model learns far more, look for inputs that the model
    ignores: a wrong axis, the wrong time step, a column that is used twice.

    ## When it is wrong

    The model is small on purpose, such as a linear model for its coefficients; a reference model
    fits more than intended.

    ## How to confirm

    - Make the change in the script and run `holter run` again.
    """
    cures = facts.cures
    assert cures is not None
    if cures.outcome is None:
        yield weak_learning.not_examined("the outcome of the unchanged training is unknown")
    elif not cures.weak:
        yield weak_learning.clear(
            f"the training failed, or left little to learn: {cures.outcome.says}"
        )
    elif not cures.tried:
        yield weak_learning.not_examined("no change was tried")
    elif (change := cures.concluded) is not None:
        yield weak_learning.finding(
            _summary(cures, change),
            confidence=Confidence.HINT if change is cures.unrelated else Confidence.LIKELY,
            onset=0,
            evidence=_evidence(cures, change, named),
            fix=change.cause.fix,
        )
    else:
        yield weak_learning.clear(
            f"none of {len(cures.tried)} changes gives far more than other learning rates do"
        )


def _summary(cures: Cures, change: TriedChange) -> str:
    if change is cures.unrelated:
        return f"With {change.name}, {change.says}."
    kind = "validation loss" if cures.by_validation else "loss"
    tuned = f"at best {cures.best_tuned:.3g} with other learning rates or Adam at 1e-3"
    instead = f"{change.level:.3g} instead of {change.instead:.3g}"
    says = f"With {change.name}, the {kind} is {instead}, {tuned}."
    return f"The {change.cause.part} is at fault. {says}" if change.cause.is_swap else says


def _evidence(cures: Cures, change: TriedChange, named: int) -> Iterator[Evidence]:
    yield change.evidence
    first = cures.unchanged[0]
    says = f"the unchanged training ends at {first.level:.3g} ({len(cures.unchanged)} repeats)"
    yield Evidence(CURE_LOSS, (0, first.steps - 1), says, UNCHANGED)
    without = cures.with_effect(Effect.NONE)
    if without:
        more = f" and {len(without) - named} more" if len(without) > named else ""
        shown = f"no effect: {', '.join(without[:named])}{more}"
        yield Evidence(CURE_LOSS, change.evidence.steps, shown, change.name)
