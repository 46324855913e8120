"""A few weights grow far larger than the rest of their layer."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.damage import Damage, damage_of
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import WEIGHT_ABSMAX, WEIGHT_NORM


@rule(
    severity=Severity.WARNING,
    level=Level.DATA,
    needs=(WEIGHT_ABSMAX, WEIGHT_NORM),
    preview=True,
)
def heavy_tailed_weights(
    facts: Facts,
    *,
    ratio: Annotated[float, "largest weight of a matrix over its RMS weight"] = 25.0,
    growth: Annotated[float, "growth of that ratio since the first step"] = 5.0,
    min_elements: Annotated[int, "elements of a matrix needed"] = 1000,
    min_samples: Annotated[int, "sampled steps needed, and that all need the ratio"] = 10,
) -> Iterator[Verdict]:
    """A few weights grow far larger than the rest of their layer.

    ## What it does
    Divides the largest weight of each matrix by the RMS weight, a ratio of 2 to 5 at
    initialisation. It gives a hint if the ratio has grown large and the training failed.

    ## Why it matters
    Typical causes are one input that is far larger than all others, a repeated sample with an
    absurd target, or code that writes to single weights. The output then depends on a few weights,
    and in low precision they set the scale for the rest.

    ## Example
    ```python
    inputs = table[columns]                                                   # bad
    inputs = (table[columns] - table[columns].mean()) / table[columns].std()   # good
    ```

    ## What to do
    Check the inputs of the named layer: is one column on a different scale, is one value a sentinel
    such as 99999? Standardise it, or clip gradients to bound the effect of a single batch.

    ## When it is wrong
    Large language models develop such weights and work well. Embeddings of rare and frequent tokens
    always differ.

    ## How to confirm
    - Print the largest elements of the named weight and which inputs they belong to.
    - Print mean, standard deviation and extremes of each input column.
    """
    layers = {layer.name: layer for layer in facts.layers if layer.root**2 >= min_elements}
    if not layers:
        yield heavy_tailed_weights.not_examined(
            f"no weight matrix has {min_elements:,} elements or more"
        )
        return
    largest, norms = facts.sample(WEIGHT_ABSMAX, layers), facts.sample(WEIGHT_NORM, layers)
    steps, rows, norm_rows = np.intersect1d(largest.steps, norms.steps, return_indices=True)
    if len(steps) < min_samples or largest.owners != norms.owners:
        yield heavy_tailed_weights.not_examined(
            f"{len(steps)} of the {min_samples} sampled steps needed"
        )
        return
    rms = norms.values[norm_rows] / [layers[name].root for name in norms.owners]
    tails = np.nan_to_num(largest.values[rows] / np.where(rms > 0, rms, np.nan))
    first, last = tails[0], tails[-min_samples:].min(axis=0)
    grown = np.where(last >= growth * np.maximum(first, 1), last, 0)
    worst = int(grown.argmax())
    if grown[worst] < ratio:
        yield heavy_tailed_weights.clear(
            f"the largest weight of a layer is at most {last.max():.2g} times its RMS weight"
        )
        return
    owner = largest.owners[worst]
    measured = (
        f"the largest weight of {owner} is {last[worst]:.2g} times the RMS weight"
        f" ({first[worst]:.2g} initially)"
    )
    damage = damage_of(heavy_tailed_weights, facts, measured)
    if not isinstance(damage, Damage):
        yield damage
        return
    yield heavy_tailed_weights.finding(
        f"{measured}; {damage.says}",
        confidence=Confidence.HINT,
        onset=int(steps[(tails[:, worst] >= ratio).argmax()]),
        evidence=(
            Evidence(
                WEIGHT_ABSMAX,
                (int(steps[0]), int(steps[-1])),
                f"{largest.values[rows][-1, worst]:.3g} at the end, RMS {rms[-1, worst]:.2g}",
                owner,
            ),
            *damage.evidence,
        ),
        fix="standardise the input column of that layer that is on a different scale, or remove"
        " code that writes to single weights",
    )
