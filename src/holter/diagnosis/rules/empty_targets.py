"""Some batches have only ignored targets, and their loss is 0/0."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.nonfinite import first_nonfinite
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import percent
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import LOSS, TARGET_IGNORED_FRACTION


@rule(
    severity=Severity.ERROR,
    level=Level.DATA,
    needs=(TARGET_IGNORED_FRACTION,),
)
def empty_targets(
    facts: Facts,
    *,
    window: Annotated[int, "steps within which a loss is read after an empty batch"] = 16,
) -> Iterator[Verdict]:
    """Some batches have only ignored targets, and their loss is 0/0.

    ## What it does
    Looks for steps on which the loss function ignores all targets of the batch and the loss becomes
    non-finite. It is likely instead of certain if the targets of the first non-finite loss were not
    sampled, but empty batches follow.

    ## Why it matters
    The mean over no element is 0/0, which is NaN. One such batch, for example a text truncated
    before its answer, makes all weights NaN at the next update.

    ## Example
    ```python
    loss = F.cross_entropy(logits, labels)                                                # bad
    loss = F.cross_entropy(logits, labels) if (labels >= 0).any() else logits.sum() * 0   # good
    ```

    ## What to do
    Skip such batches: `if (labels != -100).any()`. Or divide a sum by `max(count, 1)`.

    ## When it is wrong
    Only sampled steps are examined: if an empty batch is missed, the NaN is reported without its
    cause.

    ## How to confirm
    - Count batches with `(labels == -100).all()` over one epoch.
    """
    for function, ignored in facts.run[TARGET_IGNORED_FRACTION].items():
        if not len(ignored):
            continue
        empty = ignored.steps[ignored.values >= 1]
        if not len(empty):
            yield empty_targets.clear(
                f"{function} ignores at most {percent(most)} of the targets of a batch"
                if (most := float(np.nanmax(ignored.values, initial=0)))
                else f"{function} ignores no target"
            )
            continue
        measured = f"{function} ignores all targets on {len(empty)} of {len(ignored)} sampled steps"
        nonfinite = first_nonfinite(facts, LOSS)
        culprit = next((int(step) for step in empty if _breaks(facts, int(step), window)), None)
        if culprit is not None:
            onset, confidence = culprit, Confidence.CERTAIN
            summary = f"{measured}; at step {culprit} the loss becomes 0/0"
        elif nonfinite is not None and nonfinite < empty[0] and nonfinite not in ignored.steps:
            onset, confidence = nonfinite, Confidence.LIKELY
            summary = (
                f"{measured}; the loss is not finite since step {nonfinite}, whose targets were not"
                " sampled"
            )
        else:
            finite = nonfinite is None
            course = "stays finite" if finite else f"is not finite since step {nonfinite}, before"
            yield empty_targets.harmless(f"{measured}; the loss {course}")
            continue
        yield empty_targets.finding(
            summary,
            confidence=confidence,
            onset=onset,
            evidence=(
                Evidence(TARGET_IGNORED_FRACTION, (onset, ignored.last), measured, function),
                Evidence(LOSS, (onset, onset), "not finite"),
            ),
            fix="skip batches without a target, or divide the summed loss by `max(count, 1)`",
        )


def _breaks(facts: Facts, step: int, window: int) -> bool:
    """Return whether the loss is finite before a step (or unread), and not finite from there on."""
    for loss in facts.run[LOSS].values() if LOSS in facts.run else ():
        place = int(np.searchsorted(loss.steps, step))
        if place < len(loss) and loss.steps[place] <= step + window:
            before = loss.values[place - 1] if place else 0.0
            if np.isfinite(before) and not np.isfinite(loss.values[place]):
                return True
    return False
