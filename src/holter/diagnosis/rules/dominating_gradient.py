"""One layer has nearly all of the gradient."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import lacking
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import CLIP_COEFFICIENT, GRAD_NORM

_PARAMETERS = 4  # least number of them
_FEWEST = 20  # steps


@rule(
    severity=Severity.WARNING,
    level=Level.ARCHITECTURE,
    needs=(GRAD_NORM,),
    preview=True,
)
def dominating_gradient(facts: Facts, *, share: float = 0.999) -> Iterator[Verdict]:
    """One layer has nearly all of the gradient.

    ## What it does
    Divides the squared gradient norm of each layer (a module's weight and bias together) by that of
    all, and takes the median over the last half of the run. It gives a hint where one layer has
    over `share`, and the loss went badly.

    ## Why it matters
    Where gradients are clipped by their total norm, or the learning rate is chosen so that the
    loudest layer survives, all others get next to nothing of each update.

    ## What to do
    Look at what the named layer is given: features on another scale than the rest. Normalise them,
    or give the layer a parameter group with a learning rate of its own.

    ## When it is wrong
    Under Adam, without clipping, the size of a gradient does not matter. Most parameters may be
    meant to stay almost as they are.

    ## How to confirm
    - Print the gradient norm of each layer for one batch.
    - Put a normalisation before the named layer and repeat 100 steps.
    """
    trained = [e.name for e in facts.parameters if e.trainable and e.optimizer >= 0]
    norms = facts.sample(GRAD_NORM, trained or None).between(0.5, 1)
    layers = list(dict.fromkeys(name.rpartition(".")[0] for name in norms.owners))
    if len(layers) < _PARAMETERS or len(norms) < _FEWEST:
        yield dominating_gradient.not_examined(
            lacking(layers=(len(layers), _PARAMETERS), steps=(len(norms), _FEWEST))
        )
        return
    places = {layer: at for at, layer in enumerate(layers)}
    squares = np.zeros((len(norms), len(layers)))
    for column, name in enumerate(norms.owners):
        squares[:, places[name.rpartition(".")[0]]] += np.nan_to_num(norms.values[:, column]) ** 2
    total = squares.sum(axis=1, keepdims=True)
    shares = np.median((squares / np.where(total > 0, total, 1)), axis=0)
    worst = int(shares.argmax())
    result = facts.outcome
    if shares[worst] < share or result is None or not result.bad:
        yield dominating_gradient.clear(
            f"{layers[worst]} has the most of the squared gradient norm, {shares[worst]:.1%}"
        )
        return
    first, last = int(norms.steps[0]), int(norms.steps[-1])
    clipped = " and the total norm is clipped" if CLIP_COEFFICIENT in facts.run else ""
    yield dominating_gradient.finding(
        f"{layers[worst]} has {shares[worst]:.2%} of the squared gradient norm{clipped}, and"
        f" {result.says}",
        confidence=Confidence.HINT,
        onset=first,
        evidence=(
            Evidence(
                GRAD_NORM,
                (first, last),
                f"median {np.median(np.sqrt(squares[:, worst])):.2g}; of all other layers together"
                f" {np.median(np.sqrt(np.maximum(total[:, 0] - squares[:, worst], 0))):.2g}",
                next(name for name in norms.owners if name.rpartition(".")[0] == layers[worst]),
            ),
            result.evidence,
        ),
        fix=f"normalise what {layers[worst]} is given, or give it a learning rate of its own",
    )
