"""Batch norm computes its statistics from the few samples of one rank."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.windows import recent
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import NORMALISATION_SAMPLES

_WINDOW = 2000  # last steps that are read


@rule(
    severity=Severity.WARNING,
    level=Level.ARCHITECTURE,
    needs=(NORMALISATION_SAMPLES,),
    preview=True,
)
def unsynchronised_batch_norm(
    facts: Facts,
    *,
    max_values: Annotated[int, "values per channel on one rank that are few"] = 16,
) -> Iterator[Verdict]:
    """Batch norm computes its statistics from the few samples of one rank.

    ## What it does
    Reads how many values per channel (samples times positions) a batch norm that is not
    synchronised computes its statistics from. It reports a hint if there are few on each rank but
    enough over all ranks.

    ## Why it matters
    Each rank normalises by its own few samples: statistics are noisy and differ between ranks, and
    the running averages that are saved are those of rank 0 alone.

    ## Example
    ```python
    DistributedDataParallel(model)                                             # bad
    DistributedDataParallel(nn.SyncBatchNorm.convert_sync_batchnorm(model))    # good
    ```

    ## What to do
    Convert the model with `nn.SyncBatchNorm.convert_sync_batchnorm` before it is wrapped, or use
    group norm. With many samples on each rank, statistics per rank are common and fine.

    ## When it is wrong
    The noise of small batches is intended, for example as regularisation.

    ## How to confirm
    - Compute the validation loss with the running statistics of two ranks: they should agree.
    """
    ranks = facts.ranks
    if isinstance(ranks, str):
        yield unsynchronised_batch_norm.not_examined(ranks)
        return
    group = ranks.group
    if group is None or not ranks.is_wrapped:
        yield unsynchronised_batch_norm.not_examined(
            "no torch wrapper trains one model on all ranks"
        )
        return
    if group.synchronised_batch_norms == group.batch_norms:
        yield unsynchronised_batch_norm.clear("all batch norms are synchronised")
        return
    rows = recent(facts, NORMALISATION_SAMPLES, _WINDOW)
    median = np.nanmedian(np.where(rows.present, rows.values, np.nan), axis=0)
    smallest = int(np.nanargmin(median))
    values, owner = float(median[smallest]), rows.owners[smallest]
    measured = f"{owner} normalises over {values:.0f} values per channel on each rank"
    if values > max_values or values * group.replicas <= max_values:
        yield unsynchronised_batch_norm.clear(measured)
        return
    yield unsynchronised_batch_norm.finding(
        f"{measured}, {values * group.replicas:.0f} with synchronisation",
        confidence=Confidence.HINT,
        onset=int(rows.steps[0]),
        evidence=(
            Evidence(
                NORMALISATION_SAMPLES,
                (int(rows.steps[0]), int(rows.steps[-1])),
                f"median {values:.0f} values per channel",
                owner,
            ),
        ),
        fix="`model = nn.SyncBatchNorm.convert_sync_batchnorm(model)` before the model is wrapped",
    )
