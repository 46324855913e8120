"""One batch breaks the training, whatever the weights."""

from collections.abc import Iterator

from holter.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.rules import rule
from holter.rules._replays import SYMPTOMS, Replayed, fails, listed, replayed
from holter.run import Run
from holter.signals import REPLAY_LOSS


@rule(severity=Severity.ERROR, level=Level.DATA, needs=(REPLAY_LOSS,), explains=SYMPTOMS)
def poisonous_batch(run: Run) -> Iterator[Verdict]:
    """One batch breaks the training, whatever the weights.

    ## What it does
    `holter try replay` gives the failing step another batch, and the failing batch to older
    weights. The rule speaks where another batch cures it, no change of the step does, and the batch
    fails on older weights, too.

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
    found = replayed(run)
    if found is None or found.ladder is None or not fails(found):
        yield poisonous_batch.not_examined("no failure was replayed under interventions")
        return
    cured = found.cured_by("batch", "skip")
    spared = found.not_cured_by("rate", "clip", "precision", "state")
    if (
        not cured
        or found.cured_by("rate", "clip", "precision", "state")
        or not (found.triage or {}).get("batch_on_older_weights")
    ):
        tried = found.not_cured_by("batch", "skip")
        yield poisonous_batch.clear(
            f"it is not cured by {listed(tried)}"
            if tried
            else "a change of the step cures it as well, or older weights bear the batch"
        )
        return
    yield poisonous_batch.finding(
        f"step {found.failing} is cured by {listed(cured)}"
        + (f", not by {listed(spared)}" if spared else "")
        + f": it is the batch, not the weights{_samples(found)}",
        confidence=Confidence.LIKELY,
        onset=found.failing,
        evidence=(
            Evidence(REPLAY_LOSS, (found.first, found.failing), found.says, "as it was"),
            *(
                Evidence(REPLAY_LOSS, (found.first, found.failing), found.rungs[each][2], each)
                for each in cured[:2]
            ),
        ),
        fix="look at the samples that are named; mend or drop them where data is loaded",
    )


def _samples(found: Replayed) -> str:
    samples = (found.triage or {}).get("samples")
    return f"; samples {listed(list(map(str, samples)))} break it by themselves" if samples else ""
