"""A number leaves the range of its data type."""

from collections.abc import Iterator

from holter.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.rules import rule
from holter.rules._replays import SYMPTOMS, fails, listed, replayed
from holter.run import Run
from holter.signals import REPLAY_LOSS


@rule(severity=Severity.ERROR, level=Level.NUMERICS, needs=(REPLAY_LOSS,), explains=SYMPTOMS)
def exhausted_range(run: Run) -> Iterator[Verdict]:
    """A number leaves the range of its data type.

    ## What it does
    `holter try replay` runs the failing window again without autocast. The rule speaks where that
    cures it and a lower learning rate or clipping does not.

    ## Why it matters
    In float16 nothing is larger than 65504: logits, norms and sums of squares get there in healthy
    trainings, too.

    ## What to do
    Keep the operation in float32, or use bfloat16, which has the range of float32.

    ## When it is wrong
    Something grows without end and would leave the range of float32 later: look at the growth.

    ## How to confirm
    - Train on from the last good checkpoint with that operation in float32.
    """
    found = replayed(run)
    if found is None or found.ladder is None or not fails(found):
        yield exhausted_range.not_examined("no failure was replayed under interventions")
        return
    cured = found.cured_by("precision")
    spared = found.not_cured_by("rate", "clip")
    if not cured or found.cured_by("rate", "clip"):
        tried = found.not_cured_by("precision")
        yield exhausted_range.clear(
            f"it is not cured by {listed(tried)}" if tried else "a smaller step cures it as well"
        )
        return
    yield exhausted_range.finding(
        f"step {found.failing} is cured by {listed(cured)}"
        + (f", not by {listed(spared)}" if spared else "")
        + ": a number leaves the range of its type",
        confidence=Confidence.LIKELY,
        onset=found.failing,
        evidence=(
            Evidence(REPLAY_LOSS, (found.first, found.failing), found.says, "as it was"),
            *(
                Evidence(REPLAY_LOSS, (found.first, found.failing), found.rungs[each][2], each)
                for each in cured[:2]
            ),
        ),
        fix="keep the operation in float32, or use bfloat16",
    )
