"""Most of each update is lost to rounding because the weights are in low precision."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.layers import Matrix, Sample, median
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import percent, portion, some
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    GRAD_NORM,
    GRAD_ZERO_FRACTION,
    UPDATE_RATIO,
    UPDATE_UNCHANGED_FRACTION,
    Signal,
)

_LOW = {"bfloat16": 2.0**-8, "float16": 2.0**-11}  # half a step between neighbours, relative
_FEWEST = 5  # sampled updates


@rule(
    severity=Severity.WARNING,
    level=Level.NUMERICS,
    needs=(UPDATE_UNCHANGED_FRACTION, GRAD_NORM),
)
def rounded_away_updates(
    facts: Facts,
    *,
    lost: Annotated[float, "share of the elements that an update leaves unchanged"] = 0.6,
    certain: Annotated[float, "share of unchanged elements from which it is certain"] = 0.9,
    learned: Annotated[float, "fall of the loss, as a share, from which it is a hint"] = 0.5,
) -> Iterator[Verdict]:
    """Most of each update is lost to rounding because the weights are in low precision.

    ## What it does
    Counts the elements of bfloat16 and float16 weight matrices that `optimizer.step()` leaves
    unchanged bit for bit although their gradient is not zero, and takes the median over sampled
    steps and matrices. It is a hint if the loss fell far: full-precision weights may be stored
    elsewhere.

    ## Why it matters
    Between 1 and 2 there are 128 numbers in bfloat16: an update below 1/256 of a weight is rounded
    to 0. At a typical relative update of 1e-3 most elements do not change, and the others change
    too much. In float32 the same steps are effective.

    ## Example
    ```python
    model = Net().bfloat16()                                                  # bad
    model = Net(); context = torch.autocast("cuda", dtype=torch.bfloat16)     # good
    ```

    ## What to do
    Keep the weights in float32 and use `torch.autocast` for speed, or an optimizer with float32
    master weights or stochastic rounding. A higher learning rate only hides the loss of precision.

    ## When it is wrong
    With stochastic rounding, compensated sums, or master weights that are copied back, single
    elements change rarely and the training is sound. At the end of a schedule updates are small in
    any precision.

    ## How to confirm
    - Repeat 100 steps with `model.float()` and compare the losses.
    - Compare `p` before and after one step: `(p == before).float().mean()`.
    """
    layers = {layer.name: layer for layer in facts.layers if layer.dtype in _LOW}
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
    shares = _of_those_with_gradients(facts, unchanged)
    by_layer = median(shares, axis=0)
    typical = float(median(by_layer[None], axis=1)[0])
    if not np.isfinite(typical):
        yield rounded_away_updates.not_examined("the gradients of all sampled updates are zero")
        return
    if typical < lost:
        yield rounded_away_updates.clear(
            f"the median update leaves {portion(typical)} of the elements unchanged"
        )
        return
    if not (shares < 1).any():
        yield rounded_away_updates.not_examined(
            "no element changed at all: rounding cannot be distinguished from zero updates"
        )
        return
    worst = [
        unchanged.owners[index]
        for index in np.argsort(-np.nan_to_num(by_layer))
        if by_layer[index] >= lost
    ]
    dtypes = sorted({layer.dtype for layer in layers.values()})
    first, last = int(unchanged.steps[0]), int(unchanged.steps[-1])
    outcome = facts.outcome
    fell = outcome is not None and not outcome.bad and outcome.fall > learned
    sure = Confidence.CERTAIN if typical >= certain else Confidence.LIKELY
    yield rounded_away_updates.finding(
        f"the median update leaves {percent(typical)} of the elements of {some(worst)} unchanged"
        f" although their gradients are not zero: {' and '.join(dtypes)} weights round it away",
        confidence=Confidence.HINT if fell else sure,
        onset=first,
        evidence=(
            Evidence(
                UPDATE_UNCHANGED_FRACTION,
                (first, last),
                f"median {percent(by_layer[unchanged.owners.index(worst[0])])} over"
                f" {len(unchanged)} samples; {dtypes[0]} loses relative updates below"
                f" {_LOW[dtypes[0]]:.1g}",
                worst[0],
            ),
            *_sizes(facts, worst[0], first, last),
        ),
        fix="keep the weights in float32 and use `torch.autocast`, or an optimizer with float32"
        " master weights or stochastic rounding",
    )


def _of_those_with_gradients(facts: Facts, unchanged: Sample) -> Matrix:
    """Return the unchanged share of the elements whose gradient is not zero; NaN without those."""
    shares = unchanged.values.copy()
    norms = _aligned(facts, GRAD_NORM, unchanged)
    shares[~(norms > 0)] = np.nan
    if GRAD_ZERO_FRACTION in facts.run:
        zeros = _aligned(facts, GRAD_ZERO_FRACTION, unchanged)
        zeros = np.where(np.isfinite(zeros), zeros, 0)
        shares = np.where(zeros < 0.5, (shares - zeros) / np.maximum(1 - zeros, 0.5), np.nan)
    return np.clip(shares, 0, 1)


def _aligned(facts: Facts, signal: Signal, like: Sample) -> Matrix:
    """Return the readings of another signal at the same steps and of the same owners."""
    other = facts.sample(signal, like.owners)
    values = np.full(like.values.shape, np.nan)
    places = {owner: column for column, owner in enumerate(like.owners)}
    columns = np.array([places[owner] for owner in other.owners], np.intp)
    _, here, there = np.intersect1d(like.steps, other.steps, return_indices=True)
    values[np.ix_(here, columns)] = other.values[there]
    return values


def _sizes(facts: Facts, name: str, first: int, last: int) -> Iterator[Evidence]:
    gradient = facts.sample(GRAD_NORM, [name]).medians()
    yield Evidence(GRAD_NORM, (first, last), f"median norm {gradient[0]:.2g}", name)
    if UPDATE_RATIO in facts.run:
        ratio = facts.sample(UPDATE_RATIO, [name]).medians()
        if len(ratio):
            says = f"the relative update that is left is {ratio[0]:.1g}"
            yield Evidence(UPDATE_RATIO, (first, last), says, name)
