"""Adam's epsilon is larger than the gradients."""

from collections.abc import Iterator, Sequence
from typing import Annotated

import numpy as np
import numpy.typing as npt

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.layers import Layer, median
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import percent, portion
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    ADAM_TINY_FRACTION,
    EPSILON,
    GRAD_ZERO_FRACTION,
    LR,
    UPDATE_RATIO,
    WEIGHT_NORM,
)

_FEWEST = 10  # sampled steps
_SPARSE = 0.5  # share of zeros in a gradient above which it is compared with no epsilon


@rule(
    severity=Severity.WARNING,
    level=Level.HYPERPARAMETER,
    needs=(ADAM_TINY_FRACTION, EPSILON, UPDATE_RATIO, WEIGHT_NORM, LR),
)
def large_epsilon(
    facts: Facts,
    *,
    share: Annotated[float, "share of the elements whose gradient is below epsilon"] = 0.9,
    min_epsilon: Annotated[float, "largest epsilon that is a default"] = 1e-7,
    max_pace: Annotated[float, "step of an element over the learning rate"] = 0.05,
    min_fall: Annotated[float, "share by which the loss of a training at full speed falls"] = 0.5,
) -> Iterator[Verdict]:
    """Adam's epsilon is larger than the gradients.

    ## What it does
    Adam divides each step by the root of the gradient's second moment plus epsilon. The rule looks
    at weights whose gradients are not mostly zero, in the second half of the run. It reports if the
    root is below epsilon for most elements, an element moves by a fraction of Adam's step on pure
    noise (0.2 learning rates), and the loss fell little.

    ## Why it matters
    Where epsilon dominates, Adam does not adapt: it is SGD with a learning rate of lr/epsilon.
    Layers with small gradients hardly move.

    ## Example
    ```python
    optimizer = Adam(model.parameters(), lr=1e-3, eps=1.0)    # bad
    optimizer = Adam(model.parameters(), lr=1e-3, eps=1e-8)   # good
    ```

    ## What to do
    Set epsilon well below the gradients: 1e-8 in float32.

    ## When it is wrong
    Some recipes (vision and RL) use an epsilon of 1e-3 to 1 with a matching learning rate; the loss
    then falls, and the rule reports nothing.

    ## How to confirm
    - Repeat the first 100 steps with `eps=1e-8`: the loss should fall faster.
    """
    layers = facts.layers
    readings = facts.sample(ADAM_TINY_FRACTION, [layer.name for layer in layers])
    if len(readings) < _FEWEST:
        yield large_epsilon.not_examined(f"{len(readings)} of the {_FEWEST} sampled steps needed")
        return
    series = facts.run[EPSILON].values()
    epsilons = [float(np.nanmax(values.values)) for values in series if len(values)]
    epsilon = max(epsilons, default=0)
    if epsilon <= min_epsilon:
        yield large_epsilon.clear(f"epsilon is {epsilon:.1g}")
        return
    late = readings.between(0.5, 1)
    fractions = late.medians()
    fractions[~_dense(facts, late.owners)] = np.nan
    if not np.isfinite(fractions).any():
        yield large_epsilon.not_examined("the gradients of all weights are mostly zero")
        return
    typical = float(np.nanmedian(fractions))
    measured = (
        f"{portion(typical)} of the gradients of a typical weight are below epsilon ({epsilon:.1g})"
    )
    if typical <= share:
        yield large_epsilon.clear(measured)
        return
    pace = _pace(facts, layers)
    if pace is None:
        yield large_epsilon.not_examined(f"{measured}, but no updates were sampled")
        return
    measured += f"; an element moves by {pace:.1g} learning rates per step"
    if pace > max_pace:
        yield large_epsilon.clear(measured)
        return
    outcome = facts.outcome
    if outcome is None:
        yield large_epsilon.not_examined(f"{measured}, but whether the loss fell is unknown")
        return
    if not outcome.bad and outcome.fall >= min_fall:
        yield large_epsilon.harmless(f"{measured}; {outcome.says}")
        return
    span = int(late.steps[0]), int(late.steps[-1])
    largest = late.owners[int(np.nanargmax(fractions))]
    yield large_epsilon.finding(
        f"{measured}; {outcome.says}",
        confidence=Confidence.LIKELY,
        onset=int(readings.steps[0]),
        evidence=(
            Evidence(ADAM_TINY_FRACTION, span, f"median over weights {percent(typical)}", largest),
            Evidence(EPSILON, (0, facts.run.steps - 1), f"epsilon {epsilon:.1g}"),
            outcome.evidence,
        ),
        fix=f"set `eps=1e-8` (now {epsilon:.1g})",
    )


def _dense(facts: Facts, owners: tuple[str, ...]) -> npt.NDArray[np.bool_]:
    """Whose gradients are not mostly zero: zeros are below any epsilon."""
    if GRAD_ZERO_FRACTION not in facts.run:
        return np.ones(len(owners), np.bool_)
    zeros = facts.sample(GRAD_ZERO_FRACTION, owners)
    medians = dict(zip(zeros.owners, zeros.medians(), strict=True))
    return np.array([not medians.get(owner, 0.0) > _SPARSE for owner in owners])


def _pace(facts: Facts, layers: Sequence[Layer]) -> float | None:
    """Return how far an element of a typical weight moves per step, over the learning rate."""
    names = [layer.name for layer in layers]
    ratios, norms = facts.sample(UPDATE_RATIO, names), facts.sample(WEIGHT_NORM, names)
    rate = max((rate.peak for rate in facts.rates), default=0.0)
    if not len(ratios) or not len(norms) or ratios.owners != norms.owners or rate <= 0:
        return None
    roots = np.array([layer.root for layer in layers if layer.name in ratios.owners])
    paces = ratios.medians() * norms.medians() / roots / rate
    typical = float(median(paces[None], axis=1)[0])
    return typical if np.isfinite(typical) else None
