"""Parameters differ between the ranks of a distributed training."""

from collections.abc import Iterator
from typing import Annotated

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.ranks import Ranks, Split, named, together
from holter.diagnosis.rule import exception, rule
from holter.diagnosis.wording import some
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import GRAD_TOTAL_NORM, WEIGHT_HASH


@exception
def periodic_averaging(_: Ranks, split: Split, __: float) -> str | None:
    """Local SGD averages parameters every few steps; they differ in between."""
    if split.met_again is None:
        return None
    return (
        f"parameters differ at step {split.step} and are equal again at step {split.met_again}:"
        " they are averaged from time to time"
    )


@exception
def separate_models(ranks: Ranks, split: Split, tolerance: float) -> str | None:
    """Ranks whose parameters and gradients differ from the start hold shards or separate models."""
    if ranks.is_wrapped or split.before is not None or _shares_gradients(ranks, tolerance):
        return None
    return "parameters and gradients differ between ranks from the first step on"


@rule(
    severity=Severity.ERROR,
    level=Level.SYSTEM,
    needs=(WEIGHT_HASH,),
    exceptions=(periodic_averaging, separate_models),
)
def diverged_ranks(
    facts: Facts,
    *,
    tolerance: Annotated[float, "relative difference of gradient norms that are equal"] = 1e-3,
) -> Iterator[Verdict]:
    """Parameters differ between the ranks of a distributed training.

    ## What it does
    Compares hashes of the parameters before an update, at the same steps on all ranks. It names the
    first parameter and the first step that differ. Sharded parameters are not compared.

    ## Why it matters
    In data-parallel training every rank must apply the same update to the same weights. Once
    weights differ, the averaged gradient belongs to no single model, and the checkpoint of rank 0
    is one of several different models.

    ## Example
    ```python
    if rank == 0: model.head.bias.data += 0.1     # bad
    model.head.bias.data += 0.1                   # good
    ```

    ## What to do
    Look for code that only some ranks execute: weight updates, `load_state_dict`, different
    optimizer settings, a layer created after the model was wrapped. Wrap the model in
    `DistributedDataParallel` after its last change, or broadcast its state from rank 0.

    ## When it is wrong
    The ranks train separate models on purpose and start from the same weights. Without a torch
    wrapper it is a warning.

    ## How to confirm
    - Print `sum(p.double().sum() for p in model.parameters())` on every rank: they should be equal.
    """
    ranks = facts.ranks
    if isinstance(ranks, str):
        yield diverged_ranks.not_examined(ranks)
        return
    split = ranks.split
    if isinstance(split, str):
        yield diverged_ranks.not_examined(split)
        return
    if split is None:
        yield diverged_ranks.clear(f"parameters are equal on {len(ranks.members)} ranks")
        return
    excuse = diverged_ranks.excused(ranks, split, tolerance)
    if excuse is not None:
        yield excuse
        return
    first = split.parameters[0]
    since = "from the start" if split.before is None else f"since step {split.before}"
    yield diverged_ranks.finding(
        f"ranks diverged: {first} of {named(split.ranks)} differs at step {split.step}, {since}"
        + (f" ({some(split.parameters)})" if len(split.parameters) > 1 else ""),
        confidence=Confidence.CERTAIN if ranks.is_wrapped else Confidence.LIKELY,
        severity=None if ranks.is_wrapped else Severity.WARNING,  # it may be meant
        onset=split.step,
        evidence=(
            Evidence(
                WEIGHT_HASH,
                (split.step if split.before is None else split.before, split.step),
                "the hash on one rank differs from that of the others",
                first,
            ),
        ),
        fix="broadcast the weights of rank 0 before training, and change weights on all ranks alike"
        if split.before is None
        else f"find what only some ranks do to {first} before step {split.step}, and do it on all",
    )


def _shares_gradients(ranks: Ranks, tolerance: float) -> bool:
    """Whether gradients are equal on all ranks at the first step, as far as they were read."""
    for owner in ranks.owners(GRAD_TOTAL_NORM):
        norms = together(ranks, GRAD_TOTAL_NORM, owner)
        if len(norms) and not norms.apart(tolerance)[0]:
            return True
    return False
