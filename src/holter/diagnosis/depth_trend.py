"""The verdict on activations that grow or shrink with depth: two rules, one measurement."""

from collections.abc import Iterator

from holter.diagnosis.damage import Damage, damage_of
from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.depth import LAYERS
from holter.diagnosis.rule import Rule
from holter.record.findings import Verdict

FIX = (
    "initialise the layers so that they preserve the standard deviation:"
    ' `nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")`, or normalise between them'
)


def depth_trend(
    rule: Rule, facts: Facts, *, above: float | None = None, below: float | None = None
) -> Iterator[Verdict]:
    """Report activations whose standard deviation grows above or falls below a ratio with depth."""
    depth = facts.activations_by_depth
    if depth is None:
        yield rule.not_examined(
            f"no activations of {LAYERS + 1} layers with weights before the first large update"
        )
        return
    grows, falls = (
        above is not None and depth.factor >= above,
        below is not None and depth.factor <= below,
    )
    if not grows and not falls:
        yield rule.clear(
            f"the last hidden layer has {depth.ratio:.2g} times the standard deviation of the first"
        )
        return
    measured = f"the standard deviation of activations {'grows' if grows else 'falls'} with depth"
    damage = damage_of(rule, facts, f"{measured}, {depth.ends}")
    if not isinstance(damage, Damage):
        yield damage
        return
    yield rule.finding(
        f"{measured}, {depth.ends}; {damage.says}",
        confidence=damage.confidence,
        severity=damage.severity,
        onset=depth.step,
        evidence=(depth.evidence, *damage.evidence),
        fix=FIX,
    )
