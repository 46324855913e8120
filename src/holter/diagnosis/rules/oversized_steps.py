"""Steps are too large for where the training has come to."""

from collections.abc import Iterator

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.replays import fails, listed, replayed, since
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import REPLAY_LOSS


@rule(
    severity=Severity.ERROR,
    level=Level.HYPERPARAMETER,
    needs=(REPLAY_LOSS,),
)
def oversized_steps(facts: Facts) -> Iterator[Verdict]:
    """Steps are too large for where the training has come to.

    ## What it does
    `holter try replay` runs the failing window again with one thing changed at a time. The rule
    speaks where a lower learning rate or clipping cures it, and other batches or float32 do not.

    ## Why it matters
    The loss has become too curved for steps of this size: each overshoots, and the next one more.

    ## What to do
    Lower the learning rate, lengthen the warm-up, or clip gradients; the least change that cures
    it is named. In transformers, normalising queries and keys cures what clipping only puts off.

    ## When it is wrong
    A window of few steps: a lower rate may only put the failure off to after its end.

    ## How to confirm
    - Train on from the last good checkpoint with the change that cures it.
    - `holter try sharpness` measures the curvature against the learning rate.
    """
    found = replayed(facts.run)
    if found is None or found.verdict == "not reproduced":
        yield oversized_steps.not_examined("no failure was reproduced")
        return
    if not fails(found):
        yield oversized_steps.clear(f"step {found.failing} does not fail when it is replayed")
        return
    if not found.all_tried:
        yield oversized_steps.not_examined("the ladder of interventions was not climbed")
        return
    cured = found.cured_by("rate", "clip")
    spared = found.not_cured_by("batch", "precision")
    if not cured or found.cured_by("batch", "precision") or found.is_data:
        tried = found.not_cured_by("rate", "clip")
        yield oversized_steps.clear(
            f"it is not cured by {listed(tried)}"
            if tried
            else "other batches or float32 cure it as well, or it is the data"
        )
        return
    yield oversized_steps.finding(
        f"the failure of step {found.failing}{since(found)} is cured by {listed(cured)}"
        + (f", not by {listed(spared)}" if spared else "")
        + ": the step is too large for this curvature",
        confidence=Confidence.LIKELY,
        onset=found.onset,
        evidence=(
            Evidence(REPLAY_LOSS, (found.first, found.failing), found.says, "unchanged"),
            *(
                Evidence(REPLAY_LOSS, (found.first, found.failing), found.changes[each].says, each)
                for each in cured[:2]
            ),
        ),
        fix="take the change that cures it: a lower learning rate, or clipping",
    )
