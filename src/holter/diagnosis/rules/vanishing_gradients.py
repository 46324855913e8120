"""Gradients shrink from layer to layer and hardly reach the first layers."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.damage import Damage, damage_of
from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.layers import geometric
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import lacking, percent
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import ADAM_TINY_FRACTION, GRAD_NORM, UPDATE_RATIO


@rule(
    severity=Severity.ERROR,
    level=Level.ARCHITECTURE,
    needs=(GRAD_NORM,),
)
def vanishing_gradients(
    facts: Facts,
    *,
    ratio: Annotated[float, "RMS gradient of the first layer over that of the last"] = 1e-4,
    min_layers: Annotated[int, "weight matrices needed to tell a trend"] = 4,
    min_steps: Annotated[int, "sampled steps needed"] = 10,
    max_loss: Annotated[float, "final loss over the best constant prediction, for a hint"] = 0.9,
    lag: Annotated[
        float, "update of the first layers over the largest, for a likely finding"
    ] = 0.1,
    tiny: Annotated[float, "share of a layer below Adam's epsilon, for a likely finding"] = 0.5,
) -> Iterator[Verdict]:
    """Gradients shrink from layer to layer and hardly reach the first layers.

    ## What it does
    Tracks the RMS gradient of each weight matrix from the output to the input. It reports a
    gradient that shrinks layer by layer, without a single large jump, in both halves of the run, if
    the training failed. It is a hint if the first layers still change, because Adam rescales their
    steps.

    ## Why it matters
    Each layer multiplies the gradient by the slope of its activation: at most a quarter for a
    sigmoid. After ten of those almost nothing is left, the first layers stay random, and the last
    ones learn from random features.

    ## Example
    ```python
    layers += [nn.Linear(64, 64), nn.Sigmoid()]                    # bad
    layers += [nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU()]   # good
    ```

    ## What to do
    Use ReLU or GELU instead of sigmoid and tanh, normalise between layers, add residual
    connections, and initialise for the activation in use.

    ## When it is wrong
    Branches that start at zero by design pass no gradient initially. Layers are ordered by
    registration, which may differ from the forward pass.

    ## How to confirm
    - Print `p.grad.norm()` of each layer after one backward, from the last to the first.
    - Replace the activations by ReLU for 100 steps: the loss should begin to fall.
    """
    layers = facts.layers
    norms = facts.sample(GRAD_NORM, [layer.name for layer in layers])
    if len(norms.owners) < min_layers or len(norms) < min_steps:
        yield vanishing_gradients.not_examined(
            lacking(weight_matrices=(len(norms.owners), min_layers), steps=(len(norms), min_steps))
        )
        return
    roots = np.array([layer.root for layer in layers if layer.name in norms.owners])
    early, late = (norms.between(*part).medians() / roots for part in ((0, 0.5), (0.5, 1)))
    rises = [geometric(sizes, layers=min_layers) for sizes in (early, late)]
    first, last = np.nan_to_num(late[[0, -1]]).tolist()
    measured = f"RMS gradient {first:.1e} in {norms.owners[0]}, {last:.1e} in {norms.owners[-1]}"
    if min(rises) < 1 / ratio:
        yield vanishing_gradients.clear(measured)
        return
    damage = damage_of(vanishing_gradients, facts, measured, max_loss=max_loss)
    if not isinstance(damage, Damage):
        yield damage
        return
    third = [layer.name for layer in layers[: max(len(layers) // 3, 1)]]
    motionless = (*_lagging(facts, third, lag), *_below_epsilon(facts, third, tiny))
    listed = ", ".join(f"{size:.0e}" for size in late)
    yield vanishing_gradients.finding(
        f"gradients vanish towards the input: {measured}, over {len(late)} layers; {damage.says}",
        confidence=damage.confidence if motionless else Confidence.HINT,
        severity=damage.severity,
        onset=int(norms.steps[0]),
        evidence=(
            Evidence(
                GRAD_NORM,
                (int(norms.steps[0]), int(norms.steps[-1])),
                f"RMS gradient by layer, input first: {listed}",
                norms.owners[0],
            ),
            *motionless,
            *damage.evidence,
        ),
        fix="replace sigmoid and tanh by `nn.ReLU()` or `nn.GELU()`, or add normalisation and"
        " residual connections",
    )


def _lagging(facts: Facts, first_layers: list[str], lag: float) -> Iterator[Evidence]:
    """The first layers, if their relative updates are far below the largest."""
    if UPDATE_RATIO not in facts.run:
        return
    ratios = facts.sample(UPDATE_RATIO, [layer.name for layer in facts.layers])
    medians = ratios.medians()
    if not len(ratios) or not np.isfinite(medians).all():
        return
    lowest, highest = float(np.median(medians[: len(first_layers)])), float(medians.max())
    if lowest < lag * highest:
        yield Evidence(
            UPDATE_RATIO,
            (int(ratios.steps[0]), int(ratios.steps[-1])),
            f"relative update per step: {lowest:.1e} in the first layers, {highest:.1e} at most",
            ratios.owners[0],
        )


def _below_epsilon(facts: Facts, first_layers: list[str], tiny: float) -> Iterator[Evidence]:
    """The first layers, if most of their gradients are below Adam's epsilon."""
    if ADAM_TINY_FRACTION not in facts.run:
        return
    shares = facts.sample(ADAM_TINY_FRACTION, first_layers)
    largest = float(np.nanmax(shares.medians(), initial=0)) if len(shares) else 0.0
    if largest > tiny:
        yield Evidence(
            ADAM_TINY_FRACTION,
            (int(shares.steps[0]), int(shares.steps[-1])),
            f"{percent(largest)} of the elements are below Adam's epsilon",
            shares.owners[0],
        )
