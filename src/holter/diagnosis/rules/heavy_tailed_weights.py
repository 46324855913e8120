"""A few weights have grown far beyond all others of their layer."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import WEIGHT_ABSMAX, WEIGHT_NORM

_FEWEST = 10  # samples
_SMALLEST = 1000  # elements of a matrix in which a tail can be told
_GROWN = 5.0  # times its first value that the tail has to have grown


@rule(
    severity=Severity.WARNING,
    level=Level.DATA,
    needs=(WEIGHT_ABSMAX, WEIGHT_NORM),
    preview=True,
)
def heavy_tailed_weights(facts: Facts, *, ratio: float = 25.0) -> Iterator[Verdict]:
    """A few weights have grown far beyond all others of their layer.

    ## What it does
    Divides the largest weight of each matrix by their root mean square: 2 to 5 when training
    begins, whatever the layer. It gives a hint where that has grown over `ratio`, to five times its
    first value or more, and the loss went badly. Matrices of under 1000 elements are left out.

    ## Why it matters
    One input that is far larger than all others, a sample that comes back with an absurd target,
    or code that writes to single weights drags a few of them along. The output then hangs on
    those, and in low precision they also set the scale for all others.

    ## What to do
    Look at the inputs of the named layer: is one column on another scale, is one value a sentinel
    such as 99999? Standardise it, or clip gradients so that no batch can push that far.

    ## When it is wrong
    Large language models grow such weights by themselves and work well. Embeddings of rare and
    frequent tokens differ by nature.

    ## How to confirm
    - Print the largest elements of the named weight and which inputs they belong to.
    - Print mean, deviation and extremes of each input column.
    """
    layers = {e.name: e for e in facts.layers if e.root**2 >= _SMALLEST}
    largest, norms = facts.sample(WEIGHT_ABSMAX, layers), facts.sample(WEIGHT_NORM, layers)
    steps, here, there = np.intersect1d(largest.steps, norms.steps, return_indices=True)
    if len(steps) < _FEWEST or largest.owners != norms.owners:
        yield heavy_tailed_weights.not_examined(f"{len(steps)} of the {_FEWEST} samples needed")
        return
    usual = norms.values[there] / [layers[name].root for name in norms.owners]
    tails = np.nan_to_num(largest.values[here] / np.where(usual > 0, usual, np.nan))
    first, last = tails[0], tails[-_FEWEST:].min(axis=0)
    grown = np.where(last >= _GROWN * np.maximum(first, 1), last, 0)
    worst = int(grown.argmax())
    result = facts.outcome
    if grown[worst] < ratio or result is None or not result.bad:
        went = f"; {result.says}" if result is not None and grown[worst] >= ratio else ""
        yield heavy_tailed_weights.clear(
            f"the largest weight of a layer is at most {last.max():.2g} times the usual one{went}"
        )
        return
    owner = largest.owners[worst]
    yield heavy_tailed_weights.finding(
        f"the largest weight of {owner} is {last[worst]:.0f} times the usual one of that layer"
        f" ({first[worst]:.2g} at first), and {result.says}",
        confidence=Confidence.HINT,
        onset=int(steps[(tails[:, worst] >= ratio).argmax()]),
        evidence=(
            Evidence(
                WEIGHT_ABSMAX,
                (int(steps[0]), int(steps[-1])),
                f"{largest.values[here][-1, worst]:.3g} at last, {last[worst]:.0f} times the root"
                " mean square",
                owner,
            ),
            result.evidence,
        ),
        fix="look for an input of that layer that is on another scale than the rest, or code that"
        " writes to single weights",
    )
