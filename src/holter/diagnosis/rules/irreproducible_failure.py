"""A failure does not recur when its steps are repeated."""

from collections.abc import Iterator

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.replays import replayed
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import REPLAY_LOSS
from holter.record.trials import UNCHANGED


@rule(
    severity=Severity.WARNING,
    level=Level.SYSTEM,
    needs=(REPLAY_LOSS,),
)
def irreproducible_failure(facts: Facts) -> Iterator[Verdict]:
    """A failure does not recur when its steps are repeated.

    ## What it does
    `holter try replay` restores weights, optimizer, batches and random state from before the
    failure and repeats the same steps. Reports a failure that does not recur.

    ## Why it matters
    Data and code alone then do not explain it: a kernel may sum in a different order each time,
    memory may have been overwritten, or a device may compute wrongly.

    ## Example
    ```python
    torch.use_deterministic_algorithms(False)  # bad
    torch.use_deterministic_algorithms(True)   # good
    ```

    ## What to do
    Run it again with `torch.use_deterministic_algorithms(True)`. If it fails on one machine only,
    take that machine out of service and test its memory.

    ## When it is wrong
    The step depends on something that is not in the capture: files that have changed, the clock,
    another process, a loop counter, or code that was edited since.

    ## How to confirm
    - Replay it again, and on another machine.
    """
    replay = replayed(facts.run)
    if replay is None:
        yield irreproducible_failure.not_examined("no failure was replayed")
    elif replay.verdict != "not reproduced" or replay.alarm == "asked":
        yield irreproducible_failure.clear(replay.says)
    else:
        window = (replay.first, replay.failing)
        yield irreproducible_failure.finding(
            f"the replay does not repeat the failure of step {replay.failing}; {replay.says}",
            confidence=Confidence.LIKELY,
            onset=replay.failing,
            evidence=(Evidence(REPLAY_LOSS, window, replay.says, UNCHANGED),),
            fix="set `torch.use_deterministic_algorithms(True)` and replay it; then replay it on"
            " another machine",
        )
