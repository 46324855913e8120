"""Weight norms grow by orders of magnitude."""

from collections.abc import Iterator
from math import sqrt
from typing import Annotated

from holter.diagnosis.damage import Damage, damage_of
from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.weight_growth import Growth, most_by_updates
from holter.diagnosis.rule import rule
from holter.record.findings import Evidence, Level, Severity, Verdict
from holter.record.signals import UPDATE_RATIO, WEIGHT_NORM

_OTHER_CODE = (
    "remove code outside the optimizer that grows weights (a decay with the wrong sign:"
    " `p.sub_(decay * p)`, not `p.add_`; a rescaling at each step)"
)
_OPTIMIZER = (
    "lower the learning rate 10 times, or clip the gradients:"
    " `clip_grad_norm_(model.parameters(), 1.0)` before `optimizer.step()`"
)
_ONSET = 2.0  # times its initial norm at which the onset is placed


@rule(
    severity=Severity.ERROR,
    level=Level.PROCEDURE,
    needs=(WEIGHT_NORM,),
)
def exploding_weights(
    facts: Facts,
    *,
    ratio: Annotated[float, "median weight norm at the end over the initial one"] = 30.0,
) -> Iterator[Verdict]:
    """Weight norms grow by orders of magnitude.

    ## What it does
    Compares the norm of each weight matrix at the end with its initial norm, and takes the median
    over the matrices. It reports a large growth if the training failed. Weights that start at zero
    are excluded.

    ## Why it matters
    In a healthy training weight norms grow a few times at most. Unlimited growth makes outputs
    larger and larger until they saturate or overflow.

    ## Example
    ```python
    parameter.add_(decay * parameter)    # bad
    parameter.sub_(decay * parameter)    # good
    ```

    ## What to do
    If the updates of the optimizer account for the growth, lower the learning rate or clip the
    gradients. If they do not, something else changes the weights: a decay with the wrong sign, an
    average or a rescaling applied at every step.

    ## When it is wrong
    Weights that start near zero by design can grow by any factor; in most networks they are few and
    do not affect the median.

    ## How to confirm
    - Compare the weights before and after everything in the loop that writes to them.
    - Print `p.norm()` of a few layers every 10 steps: is the growth exponential?
    """
    growth = facts.weight_growth
    if growth is None:
        yield exploding_weights.not_examined("too few weight norms were recorded")
        return
    measured = f"the median weight norm is {growth.median:.2g} times its initial value"
    if growth.median < ratio:
        yield exploding_weights.clear(measured)
        return
    damage = damage_of(exploding_weights, facts, measured)
    if not isinstance(damage, Damage):
        yield damage
        return
    by_updates = _by_updates(growth, most_by_updates(facts))
    evidence = [Evidence(WEIGHT_NORM, growth.steps, growth.says(growth.largest), growth.largest)]
    if by_updates is None:
        fix = f"{_OTHER_CODE}; otherwise {_OPTIMIZER}"
    else:
        accounts, says = by_updates
        fix = _OPTIMIZER if accounts else _OTHER_CODE
        evidence.append(Evidence(UPDATE_RATIO, growth.steps, says, growth.largest))
    yield exploding_weights.finding(
        f"weights grew without limit: {measured} at step {growth.steps[1]}; {damage.says}",
        confidence=damage.confidence,
        severity=damage.severity,
        onset=growth.crossing(_ONSET),
        evidence=(*evidence, *damage.evidence),
        fix=fix,
    )


def _by_updates(growth: Growth, most: float | None) -> tuple[bool, str] | None:
    """Return whether updates account for the growth, and in which numbers; None if unknown."""
    if most is None:
        return None
    accounts = most >= sqrt(growth.median)  # half of the growth, in orders of magnitude
    verb = "account" if accounts else "do not account"
    return accounts, f"the updates of the optimizer {verb} for it: {most:.2g} times at most"
