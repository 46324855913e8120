"""The operation that gave the first value that is not finite is known."""

from collections.abc import Iterator

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.replays import SYMPTOMS, replayed
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import REPLAY_LOSS, REPLAY_NORM

_FIXES = {
    "log of zero": "use a loss that takes logits, or clamp before the logarithm",
    "zero by zero": "see that the denominator cannot be 0: clamp it, or add a small number",
    "root at zero": "add a small number under the root: its slope at 0 is infinite",
    "exp overflow": "subtract the maximum first, or use logsumexp and softmax of torch",
    "half range": "keep this operation in float32 (`torch.autocast(enabled=False)` around it)",
    "masked row": "see that every row of the mask keeps one place, or leave out rows without any",
    "zero norm": "add a small number to the norm, as torch.nn.functional.normalize does",
    "empty mean": "leave out batches without a target, or divide by max(count, 1)",
    "bad input": "look at these samples, and clean the data where it is loaded",
    "spoiled weights": "go back to a checkpoint from before, and skip steps that are not finite",
    "in-place edit": "look at what is written into the tensor there",
    "overflow": "keep the operands smaller: normalise them, lower the learning rate, or clip",
}


@rule(
    severity=Severity.ERROR,
    level=Level.NUMERICS,
    needs=(REPLAY_LOSS, REPLAY_NORM),
)
def nonfinite_birth(facts: Facts) -> Iterator[Verdict]:
    """The operation that gave the first value that is not finite is known.

    ## What it does
    `holter try replay` runs the failing step again and looks at every operation, forward and
    backward: the first whose operands are finite and whose output is not is where it was born.
    Operations after it only passed it on.

    ## Why it matters
    A NaN spreads through a whole model within a step; the place where it is seen says nothing of
    the place where it was made.

    ## What to do
    Mend the line that is named. The samples that are named show what makes it fail.

    ## When it is wrong
    Operations inside of a fused or compiled kernel are not seen one by one: then the kernel is
    named. Where a value that is not finite is meant (a mask of minus infinity), only what the loss
    or a gradient inherits counts.

    ## How to confirm
    - `holter try replay RUN --export repro.py` writes a script that shows the failure by itself.
    """
    found = replayed(facts.run)
    if found is None:
        yield nonfinite_birth.not_examined("no failure was replayed")
        return
    if found.birth is None:
        yield nonfinite_birth.clear(f"everything is finite when step {found.failing} is replayed")
        return
    birth = found.birth
    where = f"{birth.where}: {birth.line.strip()}" if birth.line else birth.where
    signal = REPLAY_LOSS if birth.phase == "forward" else REPLAY_NORM
    yield nonfinite_birth.finding(
        birth.says,
        confidence=Confidence.CERTAIN,
        onset=found.failing,
        evidence=(
            Evidence(signal, (found.first, found.failing), found.says, "unchanged"),
            Evidence(signal, (found.failing, found.failing), where, "unchanged"),
            *(
                Evidence(signal, (found.first, found.failing), f"cures it: {cure.says}", cure.name)
                for cure in (found.minimal_cure,)
                if cure is not None
            ),
        ),
        # A batch that broke the weights before is a cause of it, not an effect.
        explains=SYMPTOMS if found.onset < found.failing else None,
        fix=_FIXES.get(birth.kind, "look at the operands of this line"),
    )
