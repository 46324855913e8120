"""The optimizer divides by a second moment that no longer fits."""

from collections.abc import Iterator

from holter.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.rules import rule
from holter.rules._replays import SYMPTOMS, fails, listed, replayed
from holter.run import Run
from holter.signals import REPLAY_LOSS


@rule(
    severity=Severity.ERROR,
    level=Level.HYPERPARAMETER,
    needs=(REPLAY_LOSS,),
    explains=("nonfinite-birth", *SYMPTOMS),
)
def stale_second_moment(run: Run) -> Iterator[Verdict]:
    """The optimizer divides by a second moment that no longer fits.

    ## What it does
    `holter try replay` runs the failing step again with Adam's moments forgotten, or with a larger
    epsilon. The rule speaks where that cures it, and clipping, float32 or another batch do not.

    ## Why it matters
    Adam divides by the size of past gradients. Where these were tiny for long, one ordinary
    gradient makes a huge step; a beta of 0.999 takes a thousand steps to notice.

    ## What to do
    Use a larger epsilon, or a smaller second beta (0.95), as large language models do.

    ## When it is wrong
    A lower learning rate that cures it as well may be the simpler change.

    ## How to confirm
    - Train on from the last good checkpoint with the second beta at 0.95.
    """
    found = replayed(run)
    if found is None or found.ladder is None or not fails(found):
        yield stale_second_moment.not_examined("no failure was replayed under interventions")
        return
    cured = found.cured_by("state")
    spared = found.not_cured_by("clip", "precision", "batch")
    if not cured or found.cured_by("clip", "precision", "batch"):
        tried = found.not_cured_by("state")
        yield stale_second_moment.clear(
            f"it is not cured by {listed(tried)}"
            if tried
            else "clipping, float32 or another batch cure it as well"
        )
        return
    yield stale_second_moment.finding(
        f"step {found.failing} is cured by {listed(cured)}"
        + (f", not by {listed(spared)}" if spared else "")
        + ": what Adam divides by no longer fits its gradients",
        confidence=Confidence.LIKELY,
        onset=found.failing,
        evidence=(
            Evidence(REPLAY_LOSS, (found.first, found.failing), found.says, "as it was"),
            *(
                Evidence(REPLAY_LOSS, (found.first, found.failing), found.rungs[each][2], each)
                for each in cured[:2]
            ),
        ),
        fix="use a larger epsilon, or a second beta of 0.95",
    )
