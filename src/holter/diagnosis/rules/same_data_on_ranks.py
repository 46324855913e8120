"""Several ranks train on the same batches."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.ranks import Ranks, Together, named, together
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import INPUT_FINGERPRINT


@rule(severity=Severity.ERROR, level=Level.DATA, needs=(INPUT_FINGERPRINT,))
def same_data_on_ranks(
    facts: Facts,
    *,
    min_steps: Annotated[int, "steps read on all ranks that are needed"] = 4,
    min_batches: Annotated[int, "different batches among them"] = 3,
) -> Iterator[Verdict]:
    """Several ranks train on the same batches.

    ## What it does
    Compares the fingerprints of the model's input batches between ranks, step by step. It reports
    ranks that agree at every step, if the processes train one model.

    ## Why it matters
    The average of equal gradients is the gradient of a single batch. The effective batch size is
    that of one rank, and the other ranks are wasted. Each epoch visits every sample several times.

    ## Example
    ```python
    DataLoader(data, shuffle=True)                         # bad
    DataLoader(data, sampler=DistributedSampler(data))     # good
    ```

    ## What to do
    Give every rank a different part of the data: pass `sampler=DistributedSampler(data)` to the
    loader, and call `sampler.set_epoch(epoch)`. For an iterable data set, skip the samples of other
    ranks.

    ## When it is wrong
    Model-parallel ranks that need the same batch, in a script that does not use torch's device
    mesh.

    ## How to confirm
    - Print the sum of the first batch on every rank: they should differ.
    """
    ranks = facts.ranks
    if isinstance(ranks, str):
        yield same_data_on_ranks.not_examined(ranks)
        return
    if not ranks.are_replicas:
        yield same_data_on_ranks.not_examined("the processes do not all train one model")
        return
    owner, prints = _prints(ranks)
    different = len(np.unique(prints.values[0])) if len(prints) else 0
    if len(prints) < min_steps or different < min_batches:
        yield same_data_on_ranks.not_examined(
            f"{len(prints)} steps with {different} different batches were read on all ranks"
        )
        return
    same = max(_alike(ranks, prints), key=len)
    if len(same) < 2:
        yield same_data_on_ranks.clear(f"batches differ between {len(ranks.members)} ranks")
        return
    parts = len(_alike(ranks, prints))
    counted = "one rank" if parts == 1 else f"{parts} ranks"
    yield same_data_on_ranks.finding(
        f"{named(same)} train on the same batches at all {len(prints)} steps compared: the"
        f" effective batch is that of {counted}, not of {len(ranks.members)}",
        confidence=Confidence.CERTAIN if ranks.is_wrapped else Confidence.LIKELY,
        onset=int(prints.steps[0]),
        evidence=(
            Evidence(
                INPUT_FINGERPRINT,
                (int(prints.steps[0]), int(prints.steps[-1])),
                f"equal on {named(same)}, with {different} different batches",
                owner,
            ),
        ),
        fix="give each rank a part of the data: `DataLoader(data,"
        " sampler=DistributedSampler(data))`, and `sampler.set_epoch(epoch)` in every epoch",
    )


def _prints(ranks: Ranks) -> tuple[str, Together]:
    """Return the fingerprints of the model that most steps were read of."""
    owners = ranks.owners(INPUT_FINGERPRINT)
    read = [(owner, together(ranks, INPUT_FINGERPRINT, owner)) for owner in owners or [""]]
    return max(read, key=lambda each: len(each[1]))


def _alike(ranks: Ranks, prints: Together) -> list[list[int]]:
    """Return ranks in groups with the same batches."""
    groups: dict[bytes, list[int]] = {}
    for rank, values in zip(ranks.members, prints.values, strict=True):
        groups.setdefault(values.tobytes(), []).append(rank.number)
    return list(groups.values())
