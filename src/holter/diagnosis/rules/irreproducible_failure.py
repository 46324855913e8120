"""A failure does not recur when its steps are repeated."""

from collections.abc import Iterator

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.replays import replayed
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import REPLAY_LOSS
from holter.record.trials import UNCHANGED

_WHOLE = "run `holter try replay --whole RUN`: it runs the whole script again, not only its step"
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
    not reproduce the recorded losses: from which step on, in which parameter, and the possible
    causes. It concludes nothing else.

    ## Why it matters
    The training depends on something outside the capture: code between the steps, an object of the
    script such as an environment or a loss scaler, or a counter. If two replays differ, a kernel
    sums in a different order each time, and the failure may depend on that.

    ## Example
    ```python
    torch.use_deterministic_algorithms(False)  # bad
    torch.use_deterministic_algorithms(True)   # good
    ```

    ## What to do
    Run the replay with `--whole`: it runs the complete script again. If that deviates, set all
    seeds. If two replays differ, set `torch.use_deterministic_algorithms(True)`. If the training
    fails on one machine only, test the memory of that machine.

    ## When it is wrong
    The failure may have an ordinary cause: a deviating replay does not indicate which.

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
