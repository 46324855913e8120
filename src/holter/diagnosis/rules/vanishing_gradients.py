"""Gradients shrink from layer to layer and hardly reach the first ones."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.layers import Layer, geometric
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import lacking
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import ADAM_TINY_FRACTION, GRAD_NORM, UPDATE_RATIO

_LAYERS = 4  # least number of weights in which a slope can be seen
_FEWEST = 10  # sampled steps
_LAGGING = 0.1  # update of the first layers over the usual one, under which they do not keep up
_TINY = 0.5  # share of a layer's elements under Adam's epsilon that counts as most of it


@rule(
    severity=Severity.ERROR,
    level=Level.ARCHITECTURE,
    needs=(GRAD_NORM,),
)
def vanishing_gradients(facts: Facts, *, ratio: float = 1e-4) -> Iterator[Verdict]:
    """Gradients shrink from layer to layer and hardly reach the first ones.

    ## What it does
    Takes the gradient of each weight matrix as a root mean square, so that size does not matter,
    and follows it from the output to the input. It speaks where the gradient shrinks layer by
    layer, without one big jump, to under `ratio` of what it was at the output, in the first and in
    the last half of the run alike, and the loss went badly. It is likely where the first layers
    also hardly move; where an optimizer such as Adam scales their steps up again, a hint.

    ## Why it matters
    Each layer multiplies the gradient by its slope: at most a quarter for a sigmoid. Behind ten of
    those nothing is left, the first layers stay random, and the last ones learn from noise.

    ## What to do
    Use ReLU or GELU in place of sigmoid and tanh, normalise between layers, add residual
    connections, and initialise for the activation in use.

    ## When it is wrong
    Branches that begin at zero on purpose pass no gradient at first; frozen parts and parts that no
    optimizer holds are left out. The order of layers is that of their registration.

    ## How to confirm
    - Print `p.grad.norm()` of each layer after one backward, from the last to the first.
    - Replace the activations by ReLU for 100 steps: the loss should begin to fall.
    """
    layers = facts.layers
    norms = facts.sample(GRAD_NORM, [each.name for each in layers])
    if len(norms.owners) < _LAYERS or len(norms) < _FEWEST:
        yield vanishing_gradients.not_examined(
            lacking(weight_matrices=(len(norms.owners), _LAYERS), steps=(len(norms), _FEWEST))
        )
        return
    roots = np.array([each.root for each in layers if each.name in norms.owners])
    early, late = (norms.between(*part).medians() / roots for part in ((0, 0.5), (0.5, 1)))
    rises = [geometric(each, layers=_LAYERS) for each in (early, late)]
    if min(rises) < 1 / ratio:
        first, last = (np.nan_to_num(late[[0, -1]])).tolist()
        yield vanishing_gradients.clear(
            f"gradients per element: {first:.1e} in {norms.owners[0]}, {last:.1e} in"
            f" {norms.owners[-1]}"
        )
        return
    result = facts.outcome
    if result is None:
        yield vanishing_gradients.not_examined(
            f"gradients grow {rises[1]:.0e}-fold from the first layer to the last, but whether the"
            " loss fell cannot be told"
        )
        return
    if not result.bad:
        yield vanishing_gradients.clear(
            f"gradients grow {rises[1]:.0e}-fold from the first layer to the last, but"
            f" {result.says}"
        )
        return
    standing = tuple(_standing(facts, layers))
    shown = ", ".join(f"{value:.0e}" for value in late)
    yield vanishing_gradients.finding(
        f"gradients vanish towards the input: {late[0]:.1e} per element in {norms.owners[0]},"
        f" {late[-1]:.1e} in {norms.owners[-1]}, over {len(late)} layers; {result.says}",
        confidence=Confidence.LIKELY if standing else Confidence.HINT,
        onset=int(norms.steps[0]),
        evidence=(
            Evidence(
                GRAD_NORM,
                (int(norms.steps[0]), int(norms.steps[-1])),
                f"root mean square from the input to the output: {shown}",
                norms.owners[0],
            ),
            *standing,
            result.evidence,
        ),
        fix="replace sigmoid and tanh by ReLU or GELU, or add normalisation and residual"
        " connections, so that each layer passes the gradient on",
    )


def _standing(facts: Facts, layers: list[Layer]) -> Iterator[Evidence]:
    """That the first third of the layers does not move: by its updates, or under Adam's epsilon."""
    names = [each.name for each in layers]
    third = max(len(names) // 3, 1)
    if UPDATE_RATIO in facts.run:
        ratios = facts.sample(UPDATE_RATIO, names)
        medians = ratios.medians()
        if len(ratios) and np.isfinite(medians).all():
            lowest, usual = float(np.median(medians[:third])), float(medians.max())
            if lowest < _LAGGING * usual:
                yield Evidence(
                    UPDATE_RATIO,
                    (int(ratios.steps[0]), int(ratios.steps[-1])),
                    f"the first layers change by {lowest:.1e} a step, the fastest by {usual:.1e}",
                    ratios.owners[0],
                )
    if ADAM_TINY_FRACTION in facts.run:
        tiny = facts.sample(ADAM_TINY_FRACTION, names[:third])
        if len(tiny) and np.nanmax(tiny.medians(), initial=0) > _TINY:
            yield Evidence(
                ADAM_TINY_FRACTION,
                (int(tiny.steps[0]), int(tiny.steps[-1])),
                f"{np.nanmax(tiny.medians()):.0%} of the elements are under Adam's epsilon",
                tiny.owners[0],
            )
