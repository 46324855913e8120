"""Adam's epsilon is larger than the gradients."""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.layers import Layer, median
from holter.diagnosis.rule import rule
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
_SPARSE = 0.5  # share of zeros in a gradient over which it says nothing of epsilon
_SLOW = 0.5  # share of its loss that a training at full pace loses
_DEFAULT = 1e-7  # no larger epsilon is to blame: then gradients are tiny
_PACE = 0.05  # step of an element over the learning rate; of Adam on noise alone it is 0.2


@rule(
    severity=Severity.WARNING,
    level=Level.HYPERPARAMETER,
    needs=(ADAM_TINY_FRACTION, EPSILON),
)
def large_epsilon(facts: Facts, *, share: float = 0.9) -> Iterator[Verdict]:
    """Adam's epsilon is larger than the gradients.

    ## What it does
    Adam divides each step by the root of the gradient's second moment plus epsilon. It looks at the
    later half of the readings, at weights whose gradients are not mostly zero, and speaks where
    that root is under epsilon for more than `share` of the elements of the usual weight, an element
    moves by less than a twentieth of the learning rate a step, where Adam moves it by a fifth at
    least, and the loss lost less than half of itself. An epsilon of 1e-7 or less is not to blame:
    then gradients themselves have vanished.

    ## Why it matters
    Where epsilon rules, Adam no longer adapts: it is SGD with a learning rate of lr/epsilon. Layers
    with small gradients hardly move, whatever the learning rate seems to say.

    ## What to do
    Set epsilon well under the gradients: 1e-8 in float32.

    ## When it is wrong
    A large epsilon is a recipe in some fields (1e-3 to 1 for some vision and RL models), with a
    learning rate to match: then the loss falls and this rule is silent.

    ## How to confirm
    - Repeat the first 100 steps with `eps=1e-8`: the loss should fall faster.
    """
    layers = facts.layers
    whole = facts.sample(ADAM_TINY_FRACTION, [each.name for each in layers])
    if len(whole) < _FEWEST:
        yield large_epsilon.not_examined(f"{len(whole)} of the {_FEWEST} sampled steps needed")
        return
    tiny = whole.between(0.5, 1)
    epsilon = max(
        (float(np.nanmax(each.values)) for each in facts.run[EPSILON].values() if len(each)),
        default=0,
    )
    level = tiny.medians()
    level[~_dense(facts, tiny.owners)] = np.nan
    if not np.isfinite(level).any():
        yield large_epsilon.not_examined("the gradients of all weights are mostly zero")
        return
    usual = float(np.nanmedian(level))
    said = f"gradients are under epsilon ({epsilon:.1g}) for {usual:.0%} of the usual weight"
    if usual <= share:
        yield large_epsilon.clear(said)
        return
    result, pace = facts.outcome, _pace(facts, layers)
    slow = result is not None and (result.bad or result.fall < _SLOW)
    if result is None or not slow or pace is None or pace > _PACE or epsilon <= _DEFAULT:
        came = f"; {result.says}" if result is not None else ""
        moved = f"; an element moves by {pace:.2g} of the learning rate" if pace is not None else ""
        yield large_epsilon.normal(f"{said}: Adam does not adapt there{came}")
        yield large_epsilon.clear(f"{said}{moved}{came}")
        return
    span = (int(tiny.steps[0]), int(tiny.steps[-1]))
    highest = tiny.owners[int(np.nanargmax(level))]
    yield large_epsilon.finding(
        f"{said}: an element moves by {pace:.1g} of the learning rate a step, and {result.says}",
        confidence=Confidence.LIKELY,
        onset=int(whole.steps[0]),
        evidence=(
            Evidence(ADAM_TINY_FRACTION, span, f"median over weights {usual:.3f}", highest),
            Evidence(EPSILON, (0, facts.run.steps - 1), f"epsilon {epsilon:.1g}"),
            result.evidence,
        ),
        fix=f"set eps=1e-8 (now {epsilon:.1g})",
    )


def _dense(facts: Facts, owners: tuple[str, ...]) -> npt.NDArray[np.bool_]:
    """Whose gradients are not mostly zero: what is zero is under any epsilon."""
    if GRAD_ZERO_FRACTION not in facts.run:
        return np.ones(len(owners), np.bool_)
    zeros = facts.sample(GRAD_ZERO_FRACTION, owners)
    level = dict(zip(zeros.owners, zeros.medians(), strict=True))
    return np.array([not level.get(owner, 0.0) > _SPARSE for owner in owners])


def _pace(facts: Facts, layers: Sequence[Layer]) -> float | None:
    """How far an element of the usual weight moves in a step, over the learning rate."""
    if any(signal not in facts.run for signal in (UPDATE_RATIO, WEIGHT_NORM, LR)):
        return None
    names = [each.name for each in layers]
    ratios, norms = facts.sample(UPDATE_RATIO, names), facts.sample(WEIGHT_NORM, names)
    rate = max(
        (float(np.nanmax(each.values)) for each in facts.run[LR].values() if len(each)), default=0
    )
    if not len(ratios) or not len(norms) or ratios.owners != norms.owners or rate <= 0:
        return None
    roots = np.array([each.root for each in layers if each.name in ratios.owners])
    paces = ratios.medians() * norms.medians() / roots / rate
    usual = float(median(paces[None], axis=1)[0])
    return usual if np.isfinite(usual) else None
