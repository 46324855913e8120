"""Gradients are not averaged over ranks."""

from collections.abc import Iterator
from typing import Annotated

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.ranks import Ranks, Split, Together, together
from holter.diagnosis.rule import rule
from holter.diagnosis.rules.diverged_ranks import periodic_averaging
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import GRAD_TOTAL_NORM

_WRAP = "wrap the model: `model = DistributedDataParallel(model)`"


@rule(
    severity=Severity.ERROR,
    level=Level.SYSTEM,
    needs=(GRAD_TOTAL_NORM,),
    exceptions=(periodic_averaging,),
)
def unreduced_gradients(
    facts: Facts,
    *,
    tolerance: Annotated[float, "relative difference of gradient norms that are equal"] = 1e-3,
) -> Iterator[Verdict]:
    """Gradients are not averaged over ranks.

    ## What it does
    Compares the gradient norms of all ranks at steps with equal parameters. Averaged gradients are
    equal on all ranks. It also reports processes of one launch that never form a process group.

    ## Why it matters
    Without averaging, every process trains its own model on a part of the data. There is no error,
    and the checkpoint of rank 0 has seen only the data of rank 0.

    ## Example
    ```python
    loss = criterion(ddp_model.module(x), y)     # bad
    loss = criterion(ddp_model(x), y)            # good
    ```

    ## What to do
    Wrap the model in `DistributedDataParallel`, and call the wrapper instead of `.module` in
    training. With `no_sync()`, run the last micro-batch outside of it.

    ## When it is wrong
    Processes of one launch that train separately on purpose, for example one per seed, or that
    average their parameters very rarely. Without a torch wrapper it is a warning.

    ## How to confirm
    - Print the norm of one gradient after `backward()` on every rank: they should be equal.
    """
    ranks = facts.ranks
    if isinstance(ranks, str):
        yield unreduced_gradients.not_examined(ranks)
        return
    if ranks.group is None:
        yield from _without_group(facts, ranks)
        return
    split = ranks.split
    if isinstance(split, str):
        yield unreduced_gradients.not_examined(split)
        return
    owner, norms = _first_norms(ranks)
    apart = norms.apart(tolerance)
    if split is not None:  # what comes after it follows from the weights
        apart = apart[norms.steps < split.step] if split.before is not None else apart[:0]
    if not len(apart):
        yield unreduced_gradients.not_examined(
            "no gradient norm was read on all ranks while their parameters were equal"
        )
    elif not apart.any():
        yield unreduced_gradients.clear(
            f"gradient norms are equal on {len(ranks.members)} ranks ({norms.values[0, 0]:.3g})"
        )
    elif split is not None:
        yield unreduced_gradients.excused(ranks, split, tolerance) or _finding(
            ranks, split, owner, norms, int(apart.argmax())
        )
    else:  # by something between the norms and the update
        yield unreduced_gradients.normal("gradient norms differ, but parameters stay equal")


def _finding(ranks: Ranks, split: Split, owner: str, norms: Together, place: int) -> Verdict:
    step, values = int(norms.steps[place]), norms.values[:, place]
    low, high = values.min(), values.max()
    wrapper = ranks.group.wrapper if ranks.group is not None else ""
    return unreduced_gradients.finding(
        f"gradients are not averaged over {len(ranks.members)} ranks: their norms are {low:.3g} to"
        f" {high:.3g} at step {step} with equal parameters"
        + (f", although {wrapper} is used" if wrapper else ", and the model is not wrapped"),
        confidence=Confidence.CERTAIN if wrapper else Confidence.LIKELY,
        severity=None if wrapper else Severity.WARNING,  # it may be meant
        onset=step,
        evidence=(
            Evidence(
                GRAD_TOTAL_NORM,
                (step, split.step),
                f"{low:.3g} on one rank and {high:.3g} on another",
                owner,
            ),
        ),
        fix="call the wrapper in training, not `.module`, and run the last micro-batch outside"
        " `no_sync()`"
        if wrapper
        else _WRAP,
    )


def _without_group(facts: Facts, ranks: Ranks) -> Iterator[Verdict]:
    """Judge processes that never formed a process group."""
    launched = facts.run.meta.environment.variables.get("WORLD_SIZE", "1")
    if launched == "1":
        yield unreduced_gradients.not_examined("the processes form no process group")
        return
    trained = [rank for rank in ranks.members if rank.run.steps]
    if len(trained) < 2:
        yield unreduced_gradients.not_examined("fewer than two processes trained")
        return
    owner = next(iter(facts.run[GRAD_TOTAL_NORM]))
    yield unreduced_gradients.finding(
        f"{launched} processes were launched, but the script never calls init_process_group: each"
        " process trains its own model",
        confidence=Confidence.HINT,
        severity=Severity.WARNING,
        onset=0,
        evidence=(
            Evidence(
                GRAD_TOTAL_NORM,
                (0, facts.run.steps - 1),
                f"{len(trained)} processes trained without a process group",
                owner,
            ),
        ),
        fix=f"call `torch.distributed.init_process_group()` first, then {_WRAP}",
    )


def _first_norms(ranks: Ranks) -> tuple[str, Together]:
    """Return the gradient norms of the first optimizer that all ranks have read."""
    for owner in ranks.owners(GRAD_TOTAL_NORM):
        norms = together(ranks, GRAD_TOTAL_NORM, owner)
        if len(norms):
            return owner, norms
    return "", together(ranks, GRAD_TOTAL_NORM, "")
