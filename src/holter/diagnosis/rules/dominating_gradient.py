"""One layer has nearly all of the gradient."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.damage import Damage, damage_of
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import lacking, portion
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import CLIP_COEFFICIENT, GRAD_NORM


@rule(
    severity=Severity.WARNING,
    level=Level.ARCHITECTURE,
    needs=(GRAD_NORM,),
    preview=True,
)
def dominating_gradient(
    facts: Facts,
    *,
    share: Annotated[float, "share of the squared gradient norm in one layer"] = 0.999,
    min_layers: Annotated[int, "layers needed"] = 4,
    min_steps: Annotated[int, "sampled steps needed in the last half"] = 20,
) -> Iterator[Verdict]:
    """One layer has nearly all of the gradient.

    ## What it does
    Divides the squared gradient norm of each layer (the weight and bias of a module together) by
    that of all layers, and takes the median over the last half of the run. It gives a hint if one
    layer has nearly all of it, and the training failed.

    ## Why it matters
    If gradients are clipped by their total norm, or the learning rate is small enough for the layer
    with the largest gradient, all other layers hardly move.

    ## Example
    ```python
    model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 3))                      # bad
    model = nn.Sequential(nn.BatchNorm1d(8), nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 3))   # good
    ```

    ## What to do
    Check the inputs of the named layer for features on a different scale. Normalise them, or give
    the layer a parameter group with its own learning rate.

    ## When it is wrong
    With Adam and without clipping, the gradient norm does not matter. Most parameters may be
    intended to stay almost unchanged.

    ## How to confirm
    - Print the gradient norm of each layer for one batch.
    - Add a normalisation before the named layer and repeat 100 steps.
    """
    trained = [p.name for p in facts.parameters if p.trainable and p.optimizer >= 0]
    norms = facts.sample(GRAD_NORM, trained or None).between(0.5, 1)
    modules = [name.rpartition(".")[0] for name in norms.owners]
    layers = list(dict.fromkeys(modules))
    if len(layers) < min_layers or len(norms) < min_steps:
        yield dominating_gradient.not_examined(
            lacking(layers=(len(layers), min_layers), steps=(len(norms), min_steps))
        )
        return
    squares = np.zeros((len(norms), len(layers)))
    for column, module in enumerate(modules):
        squares[:, layers.index(module)] += np.nan_to_num(norms.values[:, column]) ** 2
    total = squares.sum(axis=1, keepdims=True)
    shares = np.median(squares / np.where(total > 0, total, 1), axis=0)
    worst = int(shares.argmax())
    measured = f"{layers[worst]} has {portion(shares[worst])} of the squared gradient norm"
    if shares[worst] < share:
        yield dominating_gradient.clear(measured)
        return
    damage = damage_of(dominating_gradient, facts, measured)
    if not isinstance(damage, Damage):
        yield damage
        return
    first, last = int(norms.steps[0]), int(norms.steps[-1])
    clipped = ", and the total norm is clipped" if CLIP_COEFFICIENT in facts.run else ""
    yield dominating_gradient.finding(
        f"{measured}{clipped}; {damage.says}",
        confidence=Confidence.HINT,
        onset=first,
        evidence=(
            Evidence(
                GRAD_NORM,
                (first, last),
                f"median norm {np.median(np.sqrt(squares[:, worst])):.2g}; all other layers"
                f" {np.median(np.sqrt(np.maximum(total[:, 0] - squares[:, worst], 0))):.2g}",
                norms.owners[modules.index(layers[worst])],
            ),
            *damage.evidence,
        ),
        fix=f"normalise the inputs of {layers[worst]}, or give it its own learning rate:"
        ' `{"params": layer.parameters(), "lr": lr / 10}`',
    )
