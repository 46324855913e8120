"""Some batches have no target that counts, and their loss is 0/0."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.nonfinite import first_nonfinite
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import LOSS, TARGET_IGNORED_FRACTION

_SOON = 16  # steps: a loss may be read only as often


@rule(
    severity=Severity.ERROR,
    level=Level.DATA,
    needs=(TARGET_IGNORED_FRACTION,),
)
def empty_targets(facts: Facts) -> Iterator[Verdict]:
    """Some batches have no target that counts, and their loss is 0/0.

    ## What it does
    Looks for steps on which the loss function was told to ignore all targets of the batch, and with
    which the loss stopped being finite. Where targets were not read at the step of the first such
    loss, and batches without a target were seen later, it is likely and not certain. Where the loss
    stays finite it is noted as normal.

    ## Why it matters
    The mean over nothing is 0/0, which is NaN. One such batch, cut off before its answer or made of
    padding only, spoils all weights at the next update.

    ## What to do
    Leave such batches out: `if (labels != -100).any()`, or divide a sum by `max(count, 1)`.

    ## When it is wrong
    Only sampled steps are seen: an empty batch may go by unseen, and the NaN is then found without
    its cause.

    ## How to confirm
    - Count batches with `(labels == -100).all()` over one epoch.
    """
    for owner, ignored in facts.run[TARGET_IGNORED_FRACTION].items():
        if not len(ignored):
            continue
        empty = ignored.steps[ignored.values >= 1]
        if not len(empty):
            yield empty_targets.clear(
                f"{owner} ignores {np.nanmax(ignored.values):.0%} of the targets of a batch at most"
            )
            continue
        said = f"{owner} ignores all targets on {len(empty)} of {len(ignored)} sampled steps"
        lost = first_nonfinite(facts, LOSS)
        first = next((int(step) for step in empty if _loses(facts, int(step))), None)
        if first is not None:
            summary = f"all targets of the batch are ignored at step {first}, and its loss is 0/0"
        elif lost is not None and lost < empty[0] and lost not in ignored.steps:
            summary = f"{said}; the loss is not finite since step {lost}, whose targets were unread"
        else:
            came = "the loss stays finite" if lost is None else "the loss is lost before"
            yield empty_targets.normal(f"{said}; {came}")
            yield empty_targets.clear(f"{said}; {came}")
            continue
        onset = first if first is not None else lost or 0
        yield empty_targets.finding(
            summary,
            confidence=Confidence.LIKELY if first is None else Confidence.CERTAIN,
            onset=onset,
            evidence=(
                Evidence(TARGET_IGNORED_FRACTION, (onset, ignored.last), said, owner),
                Evidence(LOSS, (onset, onset), "not finite"),
            ),
            fix="leave out batches without a target, or divide the summed loss by max(count, 1)",
        )


def _loses(facts: Facts, step: int) -> bool:
    """Whether a loss that was finite before, if any was read, is not from a step on."""
    for loss in facts.run[LOSS].values() if LOSS in facts.run else ():
        place = int(np.searchsorted(loss.steps, step))
        if place < len(loss) and loss.steps[place] <= step + _SOON:
            before = loss.values[place - 1] if place else 0.0
            if np.isfinite(before) and not np.isfinite(loss.values[place]):
                return True
    return False
