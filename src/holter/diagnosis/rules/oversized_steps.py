"""Steps are too large for the curvature of the loss."""

from collections.abc import Iterator

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.replays import ChangeFamily, fails, listed, replayed, since
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import REPLAY_LOSS
from holter.record.trials import UNCHANGED

_SMALLER = (ChangeFamily.RATE, ChangeFamily.CLIP)  # changes that make steps smaller
_OTHERS = (ChangeFamily.BATCH, ChangeFamily.PRECISION)  # changes that point at another cause


@rule(
    severity=Severity.ERROR,
    level=Level.HYPERPARAMETER,
    needs=(REPLAY_LOSS,),
)
def oversized_steps(facts: Facts) -> Iterator[Verdict]:
    """Steps are too large for the curvature of the loss.

    ## What it does
    `holter try replay` repeats the failing window with one change at a time. Reports a failure that
    a lower learning rate or clipping cures, and neither another batch nor float32 does.

    ## Why it matters
    The loss has become too curved for steps of this size: each step overshoots more than the one
    before.

    ## Example
    ```python
    optimizer = torch.optim.SGD(model.parameters(), lr=2.0)   # bad
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)   # good
    ```

    ## What to do
    Lower the learning rate, lengthen the warm-up, or clip gradients; the evidence names the changes
    that cure the failure. In transformers, normalising queries and keys cures what clipping only
    delays.

    ## When it is wrong
    In a window of few steps a lower rate may only delay the failure to after its end.

    ## How to confirm
    - Continue from the last good checkpoint with the change that cures it.
    - `holter try sharpness` measures the curvature against the learning rate.
    """
    replay = replayed(facts.run)
    if replay is None or not replay.is_reproduced:
        yield oversized_steps.not_examined("no failure was reproduced")
        return
    if not fails(replay):
        yield oversized_steps.clear(f"step {replay.failing} does not fail in the replay")
        return
    if not replay.all_tried:
        yield oversized_steps.not_examined("not all changes were tried on the failure")
        return
    cured, tried = replay.cured_by(*_SMALLER), replay.not_cured_by(*_SMALLER)
    if not cured:
        yield (
            oversized_steps.clear(f"{listed(tried)} did not cure it")
            if tried
            else oversized_steps.not_examined("no smaller step could be tried")
        )
        return
    others, useless = replay.cured_by(*_OTHERS), replay.not_cured_by(*_OTHERS)
    if others or replay.is_data:
        yield oversized_steps.clear(
            f"{listed(others)} cured it as well"
            if others
            else "the batch fails on older weights too, and other batches do not"
        )
        return
    window = (replay.first, replay.failing)
    yield oversized_steps.finding(
        f"the failure of step {replay.failing}{since(replay)} is cured by {listed(cured)}"
        + (f", not by {listed(useless)}" if useless else ""),
        confidence=Confidence.LIKELY,
        onset=replay.onset,
        evidence=(
            Evidence(REPLAY_LOSS, window, replay.says, UNCHANGED),
            *(Evidence(REPLAY_LOSS, window, replay.changes[name].says, name) for name in cured[:2]),
        ),
        fix=f"apply the change that cures it: {cured[0]}",
    )
