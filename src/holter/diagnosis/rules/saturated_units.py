"""Most units of a sigmoid or tanh layer are saturated."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.damage import Damage, damage_of
from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.layers import Sample, inner_activations
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import percent
from holter.record.findings import Evidence, Level, Severity, Verdict
from holter.record.signals import (
    ACTIVATION_SATURATED_FRACTION,
    ACTIVATION_STD,
    GRAD_NORM,
)

_WEAK = 0.01  # RMS gradient before the layer over that after it, shown as evidence


@rule(
    severity=Severity.WARNING,
    level=Level.ARCHITECTURE,
    needs=(ACTIVATION_SATURATED_FRACTION,),
)
def saturated_units(
    facts: Facts,
    *,
    share: Annotated[float, "share of saturated outputs in the first steps and in the last"] = 0.5,
    nearly_all: Annotated[float, "share that makes a hint even if the loss fell"] = 0.9,
    min_samples: Annotated[int, "sampled steps needed"] = 5,
) -> Iterator[Verdict]:
    """Most units of a sigmoid or tanh layer are saturated.

    ## What it does
    Measures the share of saturated outputs of sigmoid and tanh modules that feed further layers
    with weights. It reports a share that is high in the first steps and in the last half of the
    run, if the training failed. If nearly all outputs are saturated, it is a hint even if the loss
    fell.

    ## Why it matters
    A saturated sigmoid is flat: no gradient passes, and the layers before it learn nothing.

    ## Example
    ```python
    nn.init.normal_(layer.weight, std=12.0)   # bad
    nn.init.xavier_normal_(layer.weight)      # good
    ```

    ## What to do
    Scale the inputs to mean 0 and standard deviation 1, initialise the weights for the activation
    (Xavier), put a normalisation before it, or use ReLU or GELU.

    ## When it is wrong
    Training fails for another reason and has gates that saturate by design. Functions such as
    `torch.tanh` and the gates inside recurrent modules are not seen.

    ## How to confirm
    - Print the inputs of the named activation: are most of them beyond 4 in magnitude?
    - Divide the weights of the layer before it by ten and repeat 100 steps.
    """
    saturated = facts.sample(ACTIVATION_SATURATED_FRACTION, inner_activations(facts))
    if not saturated.owners:
        yield saturated_units.clear("no saturating activation feeds another layer")
        return
    if len(saturated) < min_samples:
        yield saturated_units.not_examined(f"{len(saturated)} of the {min_samples} samples needed")
        return
    early, late = (saturated.between(*part).medians() for part in ((0, 0.2), (0.5, 1)))
    lower = np.nan_to_num(np.fmin(early, late))
    worst = int(lower.argmax())
    level, owner = float(lower[worst]), saturated.owners[worst]
    if level < share:
        yield saturated_units.clear(
            f"at most {percent(level)} of a layer's outputs are saturated"
            if level
            else "no outputs are saturated"
        )
        return
    measured = f"{percent(level)} of the outputs of {owner} are saturated"
    damage = damage_of(saturated_units, facts, measured, regardless=level >= nearly_all)
    if not isinstance(damage, Damage):
        yield damage
        return
    others = int((lower >= share).sum()) - 1
    yield saturated_units.finding(
        f"{percent(level)} of the outputs of {owner}"
        + (f" (and {others} more)" if others else "")
        + f" are saturated from the first steps on; {damage.says}",
        confidence=damage.confidence,
        onset=int(saturated.steps[0]),
        evidence=(
            Evidence(
                ACTIVATION_SATURATED_FRACTION,
                (int(saturated.steps[0]), int(saturated.steps[-1])),
                f"{percent(early[worst])} initially, {percent(late[worst])} in the last half",
                owner,
            ),
            *_weak_gradients(facts, owner),
            *damage.evidence,
        ),
        fix="scale the inputs to mean 0 and standard deviation 1 and initialise for the activation:"
        " `nn.init.xavier_normal_(layer.weight)`, or put a normalisation before it",
    )


def _weak_gradients(facts: Facts, owner: str) -> Iterator[Evidence]:
    """The RMS gradient of the last weight before the module, if far below the first after it."""
    if GRAD_NORM not in facts.run or ACTIVATION_STD not in facts.run:
        return
    layers = {layer.name: layer for layer in facts.layers}
    places = {name: place for place, name in enumerate(facts.run[ACTIVATION_STD])}
    norms = facts.sample(GRAD_NORM, layers)
    names = [name for name in norms.owners if layers[name].module in places]
    before = [name for name in names if places[layers[name].module] < places[owner]]
    after = [name for name in names if places[layers[name].module] > places[owner]]
    if before and after:
        weak, strong = (_rms(norms, name, layers[name].root) for name in (before[-1], after[0]))
        if weak < _WEAK * strong:
            yield Evidence(
                GRAD_NORM,
                (int(norms.steps[0]), int(norms.steps[-1])),
                f"RMS gradient {weak:.1e} before it, {strong:.1e} in {after[0]} after it",
                before[-1],
            )


def _rms(norms: Sample, name: str, root: float) -> float:
    return float(norms.medians()[norms.owners.index(name)]) / root
