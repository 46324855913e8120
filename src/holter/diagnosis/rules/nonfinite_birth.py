"""One operation produced the first non-finite value."""

from collections.abc import Iterator

from holter.diagnosis.causes import FAILURES
from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.replayed_changes import ChangeFamily
from holter.diagnosis.facts.replays import replayed
from holter.diagnosis.remedies import fix_of_birth
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import REPLAY_LOSS, REPLAY_NORM
from holter.record.trials import UNCHANGED


@rule(
    severity=Severity.ERROR,
    level=Level.NUMERICS,
    needs=(REPLAY_LOSS, REPLAY_NORM),
)
def nonfinite_birth(facts: Facts) -> Iterator[Verdict]:
    """One operation produced the first non-finite value.

    ## What it does
    `holter try replay` repeats the failing step and checks every operation: forward, backward and
    `optimizer.step()`. The first one with finite operands and a non-finite output produced the
    value. The fix is a safe form of the operation, or the change that cures the failure if a guard
    does not.

    ## Why it matters
    A NaN spreads through the whole model within one step: the place where it shows up does not
    reveal the operation that produced it.

    ## Example
    ```python
    loss = -(y * torch.sigmoid(z).log()).mean()             # bad
    loss = -(y * torch.nn.functional.logsigmoid(z)).mean()  # good
    ```

    ## What to do
    Fix the named line. The named samples show what makes it fail.

    ## When it is wrong
    Operations inside a fused or compiled kernel are not visible: the finding then names the kernel.
    If a non-finite value is intended (a mask of minus infinity), only what reaches the loss or a
    gradient counts.

    ## How to confirm
    - `holter try replay RUN --export repro.py` writes a standalone script that reproduces the
      failure.
    """
    replay = replayed(facts.run)
    if replay is None:
        yield nonfinite_birth.not_examined("no failure was replayed")
        return
    birth, reproduced = replay.birth, replay.is_reproduced
    if birth is None:
        yield (
            nonfinite_birth.clear(f"every value is finite in the replay of step {replay.failing}")
            if reproduced
            else nonfinite_birth.not_examined("the replay did not reproduce the failure")
        )
        return
    where = f"{birth.where}: {birth.line.strip()}" if birth.line else birth.where
    guards = [replay.changes[name] for name in replay.cured_by(ChangeFamily.GUARD)]
    cures = (*guards, *([replay.proven_cure] if replay.proven_cure is not None else ()))
    signal = REPLAY_LOSS if birth.phase == "forward" else REPLAY_NORM
    window = (replay.first, replay.failing)
    born_at = replay.failing if replay.born_at is None else replay.born_at
    yield nonfinite_birth.finding(
        birth.says if reproduced else f"{birth.says}, in a replay that differs from the training",
        severity=None if reproduced else Severity.WARNING,
        confidence=Confidence.CERTAIN if reproduced else Confidence.HINT,
        onset=born_at,
        evidence=(
            Evidence(signal, window, replay.says, UNCHANGED),
            Evidence(signal, (born_at, born_at), where, UNCHANGED),
            *(
                Evidence(signal, window, f"cures it: {cure.says}", cure.name)
                for cure in dict.fromkeys(cures)
            ),
        ),
        # A batch that broke the weights before is a cause of it, not an effect.
        explains=FAILURES if replay.onset < born_at else None,
        fix=fix_of_birth(replay, birth),
    )
