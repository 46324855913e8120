"""A failure does not recur when its steps are repeated."""

from collections.abc import Iterator

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.replays import replayed
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import REPLAY_LOSS
from holter.record.trials import UNCHANGED

_WHOLE = "run `holter try replay --whole RUN`: it runs the whole script again, not its step alone"
_SEED = (
    "set all seeds (`torch.manual_seed(0)`, `random.seed(0)`, `numpy.random.seed(0)`), then record"
    " the failure again"
)
_DETERMINISTIC = (
    "set `torch.use_deterministic_algorithms(True)` and replay it; then replay it on another"
    " machine"
)


@rule(
    severity=Severity.WARNING,
    level=Level.SYSTEM,
    needs=(REPLAY_LOSS,),
)
def irreproducible_failure(facts: Facts) -> Iterator[Verdict]:
    """A failure does not recur when its steps are repeated.

    ## What it does
    `holter try replay` restores weights, optimizer, batches and random state from before the
    failure and repeats the same steps, or runs the whole script again. Reports a replay that does
    not give the recorded losses: from which step on, in which parameter, and what may have done it.
    It concludes nothing else.

    ## Why it matters
    Something that the capture does not hold takes part in the training: code between the steps, an
    object of the script such as an environment or a loss scaler, or a counter. If two replays
    differ from each other, a kernel sums in a different order each time, and the failure may depend
    on that.

    ## Example
    ```python
    torch.use_deterministic_algorithms(False)  # bad
    torch.use_deterministic_algorithms(True)   # good
    ```

    ## What to do
    Run the replay with `--whole`: it runs the whole script again, with everything that takes part
    in the training. If that departs, set all seeds. If two replays differ, set
    `torch.use_deterministic_algorithms(True)`. If it fails on one machine only, take that machine
    out of service and test its memory.

    ## When it is wrong
    The failure itself may be ordinary: that a replay departs says nothing about its cause.

    ## How to confirm
    - `holter try replay --whole RUN`
    - Replay it on another machine.
    """
    replay = replayed(facts.run)
    if replay is None:
        yield irreproducible_failure.not_examined("no failure was replayed")
    elif replay.is_reproduced:
        yield irreproducible_failure.clear(replay.says)
    elif replay.alarm == "asked":
        yield irreproducible_failure.not_examined(f"nothing failed; {replay.says}")
    else:
        about, window = replay.about, (replay.first, replay.failing)
        departs = about.departs_at is not None
        yield irreproducible_failure.finding(
            f"the replay does not repeat the failure of step {replay.failing}; {replay.says}",
            confidence=Confidence.HINT if departs else Confidence.LIKELY,
            onset=replay.failing,
            evidence=(Evidence(REPLAY_LOSS, window, replay.says, UNCHANGED),),
            fix=(_SEED if about.is_whole else _WHOLE) if departs else _DETERMINISTIC,
        )
