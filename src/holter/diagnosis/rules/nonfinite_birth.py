"""One operation produced the first non-finite value."""

from collections.abc import Iterator

from holter.diagnosis.causes import FAILURES
from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.replays import replayed
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import REPLAY_LOSS, REPLAY_NORM
from holter.record.trials import UNCHANGED

_FIXES = {
    "log of zero": "use a loss that takes logits, or clamp: `x.clamp(min=1e-6).log()`",
    "zero by zero": "clamp the denominator: `x / y.clamp(min=1e-6)`",
    "division by zero": "clamp the denominator: `x / y.clamp(min=1e-6)`",
    "root at zero": "add an epsilon: `(x + 1e-12).sqrt()`; the slope of a root at 0 is infinite",
    "zero norm": "use `torch.nn.functional.normalize(x)`, which adds an epsilon to the norm",
    "outside domain": "clamp the argument into the domain of the function",
    "exp overflow": "subtract the maximum first, or use `torch.logsumexp` and `torch.softmax`",
    "overflow": "keep the operands smaller: normalise them, lower the learning rate, or clip",
    "half range": "keep this operation in float32: `with torch.autocast(..., enabled=False):`",
    "masked row": "keep one position in every row of the mask, or leave out rows without any",
    "empty mean": "leave out batches without a target, or divide by `count.clamp(min=1)`",
    "bad input": "check these samples, and clean the data where it is loaded",
    "spoiled weights": "resume from an earlier checkpoint, and skip steps that are not finite",
    "in-place edit": "check what is written into the tensor there",
}


@rule(
    severity=Severity.ERROR,
    level=Level.NUMERICS,
    needs=(REPLAY_LOSS, REPLAY_NORM),
)
def nonfinite_birth(facts: Facts) -> Iterator[Verdict]:
    """One operation produced the first non-finite value.

    ## What it does
    `holter try replay` repeats the failing step and checks every operation, forward and backward.
    The first one with finite operands and a non-finite output produced the value; operations after
    it only passed it on. The finding is certain if the replay reproduced the recorded failure, and
    else a hint.

    ## Why it matters
    A NaN spreads through a whole model within one step: the place where it is seen tells nothing
    about the operation that produced it.

    ## Example
    ```python
    loss = -(y * torch.sigmoid(z).log()).mean()             # bad
    loss = -(y * torch.nn.functional.logsigmoid(z)).mean()  # good
    ```

    ## What to do
    Fix the named line. The named samples show what makes it fail.

    ## When it is wrong
    Operations inside a fused or compiled kernel are not seen one by one: then the kernel is named.
    If a non-finite value is intended (a mask of minus infinity), only what reaches the loss or a
    gradient counts.

    ## How to confirm
    - `holter try replay RUN --export repro.py` writes a script that shows the failure by itself.
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
    signal = REPLAY_LOSS if birth.phase == "forward" else REPLAY_NORM
    window = (replay.first, replay.failing)
    yield nonfinite_birth.finding(
        birth.says if reproduced else f"{birth.says}, in a replay that differs from the training",
        severity=None if reproduced else Severity.WARNING,
        confidence=Confidence.CERTAIN if reproduced else Confidence.HINT,
        onset=replay.failing,
        evidence=(
            Evidence(signal, window, replay.says, UNCHANGED),
            Evidence(signal, (replay.failing, replay.failing), where, UNCHANGED),
            *(
                Evidence(signal, window, f"cures it: {cure.says}", cure.name)
                for cure in (replay.proven_cure,)
                if cure is not None
            ),
        ),
        # A batch that broke the weights before is a cause of it, not an effect.
        explains=FAILURES if replay.onset < replay.failing else None,
        fix=_FIXES.get(birth.kind, "check the operands of this line"),
    )
