"""The script writes to weights between steps, which makes the training fail."""

from collections.abc import Iterator

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.replayed_changes import ChangeFamily
from holter.diagnosis.facts.replays import fails, listed, not_failing, replayed, since
from holter.diagnosis.remedies import fix_of_birth
from holter.diagnosis.rule import rule
from holter.record.events import WeightsEdited
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import REPLAY_LOSS
from holter.record.trials import UNCHANGED

_OTHERS = (ChangeFamily.BATCH, ChangeFamily.PRECISION, ChangeFamily.KERNELS)


@rule(
    severity=Severity.ERROR,
    level=Level.PROCEDURE,
    needs=(REPLAY_LOSS,),
    preview=True,
)
def damaging_weight_edits(facts: Facts) -> Iterator[Verdict]:
    """The script writes to weights between steps, which makes the training fail.

    ## What it does
    `holter try replay` repeats the failing window without the script's own writes to the weights
    between steps. Reports a failure that this cures, if neither another batch nor float32 does.

    ## Why it matters
    The optimizer does not know about such an edit: its moments belong to the old weights. A factor
    applied at every step compounds without bound.

    ## Example
    ```python
    layer.weight.data.mul_(1.01)                                # bad
    layer.weight.data.div_(layer.weight.data.norm(dim=1, keepdim=True))  # good
    ```

    ## What to do
    Check the statement named in the evidence: what it multiplies by, how often it runs, and whether
    it belongs inside the loop.

    ## When it is wrong
    The edit is intended, and another setting does not fit it: for example, the learning rate is too
    high after averaged weights are swapped in.

    ## How to confirm
    - Comment the statement out and train up to the failing step.
    """
    replay = replayed(facts.run)
    if replay is None or not replay.is_reproduced:
        yield damaging_weight_edits.not_examined("no failure was reproduced")
        return
    if not fails(replay):
        yield damaging_weight_edits.clear(not_failing(replay))
        return
    if not replay.all_tried:
        yield damaging_weight_edits.not_examined("not all changes were tried on the failure")
        return
    if not replay.about.edited:
        yield damaging_weight_edits.clear("the script does not write to weights between steps")
        return
    cured, others = replay.cured_by(ChangeFamily.EDITS), replay.cured_by(*_OTHERS)
    if not cured or others:
        yield damaging_weight_edits.clear(
            f"{listed(others)} cured it as well" if cured else "it also fails without these edits"
        )
        return
    window = (replay.first, replay.failing)
    edited = [event.what for event in facts.run.events_of(WeightsEdited)]
    where = f", between two updates at {edited[-1].where}" if edited and edited[-1].where else ""
    birth = replay.birth if replay.birth is not None and replay.birth.before_step else None
    fix = "remove the statement that writes to these weights, or bound what it writes:"
    fix = f"{fix} `weight.data.clamp_(-1, 1)`"
    if birth is not None and birth.line:
        where = f" at {birth.where}: `{birth.line.strip()}`"
        guarded = replay.cured_by(ChangeFamily.GUARD)
        fix = fix_of_birth(replay, birth) + ("" if guarded else "; or remove the statement")
    yield damaging_weight_edits.finding(
        f"the script writes to {listed(list(replay.about.edited[:3]))}{where}; without that, the"
        f" failure of step {replay.failing}{since(replay)} does not happen",
        confidence=Confidence.LIKELY,
        onset=replay.onset,
        evidence=(
            Evidence(REPLAY_LOSS, window, replay.says if birth is None else birth.says, UNCHANGED),
            Evidence(REPLAY_LOSS, window, replay.changes[cured[0]].says, cured[0]),
        ),
        fix=fix,
    )
