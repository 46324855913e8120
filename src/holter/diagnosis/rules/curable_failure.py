"""One change to the training restores learning."""

from collections.abc import Iterator
from typing import Annotated

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.cures import Cures, is_poor
from holter.diagnosis.facts.tried import Effect, TriedChange
from holter.diagnosis.rule import rule
from holter.record.findings import Evidence, Level, Severity, Verdict
from holter.record.signals import CURE_LOSS


@rule(severity=Severity.ERROR, level=Level.PROCEDURE, needs=(CURE_LOSS,))
def curable_failure(
    facts: Facts, *, named: Annotated[int, "changes without effect that are named"] = 6
) -> Iterator[Verdict]:
    """One change to the training restores learning.

    ## What it does

    Compares repeats of the training, each under one change, with the unchanged training, at equal
    steps and with several seeds. It names the smallest change that makes the training learn. If a
    rule exists for that cause, it is reported instead of this one.

    ## Why it matters

    A cause that an intervention removes is proven.

    ## Example

    ```python
    dropout = nn.Dropout(0.98)  # bad
    dropout = nn.Dropout(0.1)  # good
    ```

    ## What to do

    Make the named change in the script.

    ## When it is wrong

    Two faults hide each other: no single change helps, and pairs are only tried if both help a
    little. The training needs more steps than a trial has.

    ## How to confirm

    - Make the change in the script and run `holter run` again.
    """
    cures = facts.cures
    assert cures is not None
    if cures.outcome is None:
        yield curable_failure.not_examined("the outcome of the unchanged training is unknown")
    elif not is_poor(cures.outcome):
        yield curable_failure.clear(f"the unchanged training learned: {cures.outcome.says}")
    elif not cures.failed:
        yield curable_failure.not_examined(
            "the unchanged training fails with some seeds and learns with others"
        )
    elif (change := cures.concluded) is not None:
        yield curable_failure.finding(
            f"With {change.name}, {change.says}.",
            confidence=change.confidence,
            onset=cures.outcome.onset or 0,
            evidence=_evidence(cures, change, named),
            fix=change.cause.fix,
        )
    else:
        best = max(cures.tried.values(), key=lambda each: each.gain, default=None)
        helped = "" if best is None or best.effect is not Effect.HELPS else f"; {best.name} helps"
        yield curable_failure.clear(f"none of {len(cures.tried)} changes restores learning{helped}")


def _evidence(cures: Cures, change: TriedChange, named: int) -> Iterator[Evidence]:
    yield change.evidence
    others = [each for each in cures.cures if each is not change]
    if others:
        yield others[0].evidence
    without = cures.with_effect(Effect.NONE)
    if without:
        more = f" and {len(without) - named} more" if len(without) > named else ""
        steps = change.evidence.steps
        yield Evidence(
            CURE_LOSS, steps, f"no effect: {', '.join(without[:named])}{more}", change.name
        )
