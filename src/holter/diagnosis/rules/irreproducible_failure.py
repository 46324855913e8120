"""A failure does not come again when its steps are run again."""

from collections.abc import Iterator

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.replays import replayed
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import REPLAY_LOSS


@rule(
    severity=Severity.WARNING,
    level=Level.SYSTEM,
    needs=(REPLAY_LOSS,),
)
def irreproducible_failure(facts: Facts) -> Iterator[Verdict]:
    """A failure does not come again when its steps are run again.

    ## What it does
    `holter try replay` puts weights, optimizer, batches and random numbers of before the failure
    back and runs the same steps. The rule speaks where the failure does not come again.

    ## Why it matters
    Then neither the data nor the code alone explain it: a kernel that adds in another order each
    time, memory that was written by somebody else, or a device that computes wrongly.

    ## What to do
    Run it again with `torch.use_deterministic_algorithms(True)`. If it only ever fails on one
    machine, take that machine out and test its memory.

    ## When it is wrong
    The step depends on something that is not in the capture: files that have changed, the clock, a
    process beside it, a loop counter, or code that was edited since.

    ## How to confirm
    - Replay it again, and on another machine.
    """
    found = replayed(facts.run)
    if found is None:
        yield irreproducible_failure.not_examined("no failure was replayed")
    elif found.verdict != "not reproduced" or found.alarm == "asked":
        yield irreproducible_failure.clear(found.says)
    else:
        yield irreproducible_failure.finding(
            f"step {found.failing} fails in training, and not when it is replayed: {found.says}",
            confidence=Confidence.LIKELY,
            onset=found.failing,
            evidence=(
                Evidence(REPLAY_LOSS, (found.first, found.failing), found.says, "unchanged"),
            ),
            fix="replay it with deterministic algorithms; then on another machine",
        )
