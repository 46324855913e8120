"""One batch breaks the training regardless of the weights."""

from collections.abc import Iterator

from holter.diagnosis.causes import FAILURES
from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.replayed_changes import ChangeFamily
from holter.diagnosis.facts.replays import Replayed, fails, listed, not_failing, replayed, since
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import some
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import REPLAY_LOSS
from holter.record.trials import UNCHANGED

_SAMPLES = 8  # that are named
_WITHOUT = (ChangeFamily.BATCH, ChangeFamily.SKIP)  # changes that leave the batch out
_OTHERS = (ChangeFamily.RATE, ChangeFamily.CLIP, ChangeFamily.PRECISION, ChangeFamily.STATE)


@rule(
    severity=Severity.ERROR,
    level=Level.DATA,
    needs=(REPLAY_LOSS,),
)
def poisonous_batch(facts: Facts) -> Iterator[Verdict]:
    """One batch breaks the training regardless of the weights.

    ## What it does
    `holter try replay` runs the failing step on another batch, and older weights on the failing
    batch. Reports a batch that also fails on older weights, if another batch cures the failure.
    Clipping or a lower rate may cure it as well, because they limit the damage.

    ## Why it matters
    Clipping or a lower learning rate only hides such a batch: it returns in the next epoch.

    ## Example
    ```python
    data = TensorDataset(x, y)                                           # bad
    kept = x.abs().amax(1) < 100; data = TensorDataset(x[kept], y[kept])   # good
    ```

    ## What to do
    Check the named samples, and fix or drop them where the data is loaded.

    ## When it is wrong
    The batch is sound and the loss is not: a loss that fails on rare but valid values (an empty
    sentence, a class with no sample) has to be fixed instead.

    ## How to confirm
    - Train an epoch without the named samples.
    """
    replay = replayed(facts.run)
    if replay is None or not replay.is_reproduced:
        yield poisonous_batch.not_examined("no failure was reproduced")
        return
    if not fails(replay):
        yield poisonous_batch.clear(not_failing(replay))
        return
    if not replay.all_tried:
        yield poisonous_batch.not_examined("not all changes were tried on the failure")
        return
    cured, tried = replay.cured_by(*_WITHOUT), replay.not_cured_by(*_WITHOUT)
    if not cured:
        yield (
            poisonous_batch.clear(f"{listed(tried)} did not cure it")
            if tried
            else poisonous_batch.not_examined("no other batch could be tried")
        )
        return
    if not replay.fails_on_older_weights:
        yield poisonous_batch.clear("the batch does not fail on older weights")
        return
    if replay.learns_other_data:
        yield poisonous_batch.clear(
            f"the data change from step {replay.onset} on, and smaller steps can learn them"
        )
        return
    held = replay.cured_by(ChangeFamily.SETTING, ChangeFamily.COUNTER)
    if held:
        yield poisonous_batch.clear(f"{listed(held)} cured it with the same batch")
        return
    if replay.has_ordinary_batches:
        yield poisonous_batch.clear(
            f"the batches of {replay.about.bad} steps fail on older weights, and their values are"
            " like those before"
        )
        return
    useless = replay.not_cured_by(*_OTHERS)
    window = (replay.first, replay.failing)
    # Where a guard cures as well, an operation is unsafe, and the batch has only reached it.
    is_cause = replay.onset < replay.failing and not replay.cured_by(ChangeFamily.GUARD)
    yield poisonous_batch.finding(
        f"the failure of step {replay.failing}{since(replay)} is cured by {listed(cured)}"
        + (f", not by {listed(useless)}" if useless else "")
        + _samples(replay),
        confidence=Confidence.LIKELY,
        onset=replay.onset,
        evidence=(
            Evidence(REPLAY_LOSS, window, replay.says, UNCHANGED),
            *(Evidence(REPLAY_LOSS, window, replay.changes[name].says, name) for name in cured[:2]),
        ),
        explains=("nonfinite-birth", *FAILURES) if is_cause else None,
        fix=f"check the batch of step {replay.failing}, and fix or drop its samples where the data"
        " is loaded",
    )


def _samples(replay: Replayed) -> str:
    samples = replay.triage.samples if replay.triage else ()
    if not samples:
        return ""
    named = some(list(map(str, samples)), limit=_SAMPLES)
    return f"; sample {named} fails" if len(samples) == 1 else f"; samples {named} fail"
