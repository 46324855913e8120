"""One batch breaks the training, whatever the weights."""

from collections.abc import Iterator

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.replays import SYMPTOMS, Replayed, fails, listed, replayed, since
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import REPLAY_LOSS


@rule(
    severity=Severity.ERROR,
    level=Level.DATA,
    needs=(REPLAY_LOSS,),
)
def poisonous_batch(facts: Facts) -> Iterator[Verdict]:
    """One batch breaks the training, whatever the weights.

    ## What it does
    `holter try replay` gives the failing step another batch, and the failing batch to older
    weights. The rule speaks where another batch cures it, and the batch fails on older weights,
    too. That clipping or a lower rate may cure it as well is no contradiction: they limit the harm.

    ## Why it matters
    Clipping or a lower learning rate only hide such a batch: it comes again in the next epoch.

    ## What to do
    Look at the samples that are named, and mend or leave them out where the data is loaded.

    ## When it is wrong
    The batch is sound and the loss is not: a loss that fails on rare but right values (an empty
    sentence, a class with no sample) has to be mended instead.

    ## How to confirm
    - Train an epoch without the samples that are named.
    """
    found = replayed(facts.run)
    if found is None or found.verdict == "not reproduced":
        yield poisonous_batch.not_examined("no failure was reproduced")
        return
    if not fails(found):
        yield poisonous_batch.clear(f"step {found.failing} does not fail when it is replayed")
        return
    if not found.all_tried:
        yield poisonous_batch.not_examined("the ladder of interventions was not climbed")
        return
    cured = found.cured_by("batch", "skip")
    spared = found.not_cured_by("rate", "clip", "precision", "state")
    if not cured or not found.fails_on_older_weights:
        tried = found.not_cured_by("batch", "skip")
        yield poisonous_batch.clear(
            f"it is not cured by {listed(tried)}" if tried else "older weights bear the batch"
        )
        return
    yield poisonous_batch.finding(
        f"the failure of step {found.failing}{since(found)} is cured by {listed(cured)}"
        + (f", not by {listed(spared)}" if spared else "")
        + f": it is the batch, not the weights{_samples(found)}",
        confidence=Confidence.LIKELY,
        onset=found.onset,
        evidence=(
            Evidence(REPLAY_LOSS, (found.first, found.failing), found.says, "unchanged"),
            *(
                Evidence(REPLAY_LOSS, (found.first, found.failing), found.changes[each].says, each)
                for each in cured[:2]
            ),
        ),
        explains=("nonfinite-birth", *SYMPTOMS) if found.onset < found.failing else None,
        fix="look at the samples that are named; mend or drop them where data is loaded",
    )


def _samples(found: Replayed) -> str:
    samples = found.triage.samples if found.triage else ()
    return f"; samples {listed(list(map(str, samples)))} break it by themselves" if samples else ""
