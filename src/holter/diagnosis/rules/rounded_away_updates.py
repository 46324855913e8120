"""Most of each update is lost to rounding, because the weights are kept in low precision."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.layers import Matrix, Sample, median
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import some
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    GRAD_NORM,
    GRAD_ZERO_FRACTION,
    UPDATE_RATIO,
    UPDATE_UNCHANGED_FRACTION,
    Signal,
)

_LOW = {"bfloat16": 2.0**-8, "float16": 2.0**-11}  # half a step between neighbours, of the value
_FEWEST = 5  # sampled updates
_LEARNED = 0.5  # share of the loss that is gone where updates do arrive
_SURE = 0.9  # share of lost elements from which on next to nothing of an update is left


@rule(
    severity=Severity.WARNING,
    level=Level.NUMERICS,
    needs=(UPDATE_UNCHANGED_FRACTION, GRAD_NORM),
)
def rounded_away_updates(facts: Facts, *, lost: float = 0.6) -> Iterator[Verdict]:
    """Most of each update is lost to rounding, because the weights are kept in low precision.

    ## What it does
    Counts the elements of each bfloat16 or float16 weight matrix that `optimizer.step()` left bit
    for bit as they were though their gradient was not zero, and takes the median over sampled steps
    and matrices. It speaks where that is over `lost`; where it is over 0.9, it is certain. Where
    the loss lost more than half of itself all the same, it is a hint: what is rounded away may be
    kept elsewhere. Elements whose gradient is zero, as unused rows of an embedding, do not count;
    nor do skipped steps, and weights in float32.

    ## Why it matters
    Between 1 and 2 there are 128 numbers in bfloat16: an update under 1/256 of a weight is rounded
    back to the weight. At the usual thousandth a step most elements do not move, and those that do
    move too far. Training in float32 learns from the same steps.

    ## What to do
    Keep the weights in float32 and use `torch.autocast` for speed, or an optimizer with float32
    master weights or stochastic rounding. A higher learning rate only hides it.

    ## When it is wrong
    With stochastic rounding, with compensated sums, or with master weights that are copied back,
    single elements change rarely by nature, and the training is sound. The end of a schedule makes
    small updates in any precision.

    ## How to confirm
    - Repeat 100 steps with `model.float()` and compare the losses.
    - Compare `p` before and after one step: `(p == before).float().mean()`.
    """
    layers = {each.name: each for each in facts.layers if each.dtype in _LOW}
    if not layers:
        yield rounded_away_updates.clear("no weight matrix is trained in bfloat16 or float16")
        return
    unchanged = facts.sample(UPDATE_UNCHANGED_FRACTION, layers)
    kept = ~np.isin(unchanged.steps, facts.skipped_steps)
    unchanged = Sample(unchanged.steps[kept], unchanged.owners, unchanged.values[kept])
    if len(unchanged) < _FEWEST:
        yield rounded_away_updates.not_examined(
            f"{len(unchanged)} of the {_FEWEST} sampled updates needed"
        )
        return
    share = _of_those_with_gradients(facts, unchanged)
    by_layer = median(share, axis=0)
    usual = float(median(by_layer[None], axis=1)[0])
    if not np.isfinite(usual):
        yield rounded_away_updates.not_examined("no gradient of a sampled update differs from 0")
        return
    if usual < lost:
        yield rounded_away_updates.clear(f"the usual update leaves {usual:.0%} as it was")
        return
    if not (share < 1).any():
        yield rounded_away_updates.not_examined(
            "no element moved at all: rounding is not the only cause"
        )
        return
    worst = [
        unchanged.owners[at] for at in np.argsort(-np.nan_to_num(by_layer)) if by_layer[at] >= lost
    ]
    kinds = sorted({each.dtype for each in layers.values()})
    first, last = int(unchanged.steps[0]), int(unchanged.steps[-1])
    result = facts.outcome
    fell = result is not None and not result.bad and result.fall > _LEARNED
    sure = Confidence.CERTAIN if usual >= _SURE else Confidence.LIKELY
    yield rounded_away_updates.finding(
        f"{usual:.0%} of the elements of {some(worst)} stay bit for bit as they were in the usual"
        f" update, though their gradients are not zero: weights in {' and '.join(kinds)} round"
        " small updates away",
        confidence=Confidence.HINT if fell else sure,
        onset=first,
        evidence=(
            Evidence(
                UPDATE_UNCHANGED_FRACTION,
                (first, last),
                f"median {by_layer[unchanged.owners.index(worst[0])]:.0%} over {len(unchanged)}"
                f" samples; in {kinds[0]} a change under {_LOW[kinds[0]]:.1e} of a weight is lost",
                worst[0],
            ),
            *_sizes(facts, worst[0], first, last),
        ),
        fix="keep the weights in float32 and use torch.autocast, or an optimizer with float32"
        " master weights or stochastic rounding",
    )


def _of_those_with_gradients(facts: Facts, unchanged: Sample) -> Matrix:
    """Share of the unchanged among the elements whose gradient is not zero; NaN without those."""
    share = unchanged.values.copy()
    norms = _aligned(facts, GRAD_NORM, unchanged)
    share[~(norms > 0)] = np.nan
    if GRAD_ZERO_FRACTION in facts.run:
        zeros = _aligned(facts, GRAD_ZERO_FRACTION, unchanged)
        zeros = np.where(np.isfinite(zeros), zeros, 0)
        share = np.where(zeros < 0.5, (share - zeros) / np.maximum(1 - zeros, 0.5), np.nan)
    return np.clip(share, 0, 1)


def _aligned(facts: Facts, signal: Signal, like: Sample) -> Matrix:
    """Readings of another signal at the same steps and of the same owners."""
    other = facts.sample(signal, like.owners)
    values = np.full(like.values.shape, np.nan)
    places = {owner: column for column, owner in enumerate(like.owners)}
    columns = np.array([places[owner] for owner in other.owners], np.intp)
    _, here, there = np.intersect1d(like.steps, other.steps, return_indices=True)
    values[np.ix_(here, columns)] = other.values[there]
    return values


def _sizes(facts: Facts, name: str, first: int, last: int) -> Iterator[Evidence]:
    gradient = facts.sample(GRAD_NORM, [name]).medians()
    yield Evidence(GRAD_NORM, (first, last), f"median norm {gradient[0]:.2g}: not zero", name)
    if UPDATE_RATIO in facts.run:
        ratio = facts.sample(UPDATE_RATIO, [name]).medians()
        if len(ratio):
            says = f"what is left of the update is {ratio[0]:.1e} of the weight"
            yield Evidence(UPDATE_RATIO, (first, last), says, name)
