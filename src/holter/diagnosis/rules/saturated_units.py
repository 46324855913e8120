"""Most units of a sigmoid or tanh layer sit at their bounds."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.layers import Matrix, Sample, inner_activations
from holter.diagnosis.facts.outcome import Outcome
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    ACTIVATION_SATURATED_FRACTION,
    ACTIVATION_STD,
    GRAD_NORM,
)

_NEARLY_ALL = 0.9  # share of saturated outputs from which on a layer hardly learns
_FEWEST = 5  # sampled steps
_WEAK = 0.01  # gradient before the layer over that behind it, per element


@rule(
    severity=Severity.WARNING,
    level=Level.ARCHITECTURE,
    needs=(ACTIVATION_SATURATED_FRACTION,),
)
def saturated_units(facts: Facts, *, share: float = 0.5) -> Iterator[Verdict]:
    """Most units of a sigmoid or tanh layer sit at their bounds.

    ## What it does
    Reads the share of a module's outputs that are saturated, of those that feed further layers
    with weights: the last activation of a model, whose bounds are the answer, is left out. It
    speaks where the share is over `share` at the beginning and at the end, and the loss went badly.
    Without a bad outcome it is silent, for gates and attention saturate when they are right; where
    nine of ten outputs are saturated from the first steps to the last it gives a hint all the same.

    ## Why it matters
    At its bound a sigmoid is flat: no gradient passes, and whatever lies before it learns nothing.

    ## What to do
    Scale the inputs to about mean 0 and deviation 1, initialise the weights for the activation
    (Xavier), put a normalisation before it, or use ReLU or GELU.

    ## When it is wrong
    A training that is bad for another reason and has gates that saturate by design. Functions such
    as `torch.tanh` are not seen, nor are the gates inside recurrent modules.

    ## How to confirm
    - Print the inputs of the named activation: are most of them beyond 4 in magnitude?
    - Divide the weights of the layer before it by ten and repeat 100 steps.
    """
    saturated = facts.sample(ACTIVATION_SATURATED_FRACTION, inner_activations(facts))
    if not saturated.owners:
        yield saturated_units.clear("no saturating activation feeds another layer")
        return
    if len(saturated) < _FEWEST:
        yield saturated_units.not_examined(f"{len(saturated)} of the {_FEWEST} samples needed")
        return
    _, _, both = _levels(saturated)
    worst = int(both.argmax())
    level, owner = float(both[worst]), saturated.owners[worst]
    result = facts.outcome
    harmless = result is None or not result.bad
    if harmless and level >= _NEARLY_ALL:
        yield _finding(facts, saturated, result, share)
        return
    if level < share or (result is not None and not result.bad):
        went = f"; {result.says}" if result is not None and level >= share else ""
        yield saturated_units.clear(f"at most {level:.0%} of a layer's units are saturated{went}")
        return
    if result is None:
        yield saturated_units.not_examined(
            f"{level:.0%} of {owner} are saturated, but whether the loss fell cannot be told"
        )
        return
    yield _finding(facts, saturated, result, share)


def _finding(facts: Facts, saturated: Sample, result: Outcome | None, share: float) -> Verdict:
    early, late, both = _levels(saturated)
    worst = int(both.argmax())
    owner, count = saturated.owners[worst], int((both >= share).sum())
    bad = result is not None and result.bad
    return saturated_units.finding(
        f"{both[worst]:.0%} of the outputs of {owner}"
        + (f" (and most of {count - 1} more layers)" if count > 1 else "")
        + " are at their bounds from the first steps on"
        + (f", and {result.says}" if result is not None else ""),
        confidence=Confidence.LIKELY if bad else Confidence.HINT,
        onset=int(saturated.steps[0]),
        evidence=(
            Evidence(
                ACTIVATION_SATURATED_FRACTION,
                (int(saturated.steps[0]), int(saturated.steps[-1])),
                f"{early[worst]:.0%} at first, {late[worst]:.0%} in the last half",
                owner,
            ),
            *_weak_gradients(facts, owner),
            *((result.evidence,) if result is not None else ()),
        ),
        fix="scale the inputs to about mean 0 and deviation 1 and initialise for the activation"
        " (Xavier), or put a normalisation before it",
    )


def _levels(saturated: Sample) -> tuple[Matrix, Matrix, Matrix]:
    """The saturated share of each layer at first, in the last half, and the smaller of both."""
    early, late = (saturated.between(*part).medians() for part in ((0, 0.2), (0.5, 1)))
    return early, late, np.nan_to_num(np.fmin(early, late))


def _weak_gradients(facts: Facts, owner: str) -> Iterator[Evidence]:
    """The gradient of the last weight before the module, next to that of the first behind it."""
    if GRAD_NORM not in facts.run or ACTIVATION_STD not in facts.run:
        return
    layers = {each.name: each for each in facts.layers}
    places = {name: at for at, name in enumerate(facts.run[ACTIVATION_STD])}
    norms = facts.sample(GRAD_NORM, layers)
    known = [name for name in norms.owners if layers[name].module in places]
    before = [name for name in known if places[layers[name].module] < places[owner]]
    behind = [name for name in known if places[layers[name].module] > places[owner]]
    if before and behind:
        weak, strong = (
            _per_element(norms, name, layers[name].root) for name in (before[-1], behind[0])
        )
        if weak < _WEAK * strong:
            yield Evidence(
                GRAD_NORM,
                (int(norms.steps[0]), int(norms.steps[-1])),
                f"{weak:.1e} per element before it, {strong:.1e} in {behind[0]} behind it",
                before[-1],
            )


def _per_element(norms: Sample, name: str, root: float) -> float:
    return float(norms.medians()[norms.owners.index(name)]) / root
