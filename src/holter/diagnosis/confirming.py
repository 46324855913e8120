"""Findings beside interventions: a cause that a change removes is certain, others are withdrawn."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.cures import Cures
from holter.diagnosis.facts.tried import Effect, TriedChange
from holter.diagnosis.rule import Rule
from holter.record.findings import Clear, Confidence, Finding

CONCLUDING = ("curable-failure", "weak-learning")  # the rules that conclude from the trials


@dataclass(frozen=True, slots=True)
class Confirmed:
    """Findings after interventions, and the causes that they exclude."""

    findings: tuple[Finding, ...]
    excluded: tuple[Clear, ...] = ()


def confirmed(
    findings: Sequence[Finding],
    facts: Facts,
    rules: Mapping[str, Rule],
    clear: Iterable[Clear] = (),
) -> Confirmed:
    """Confirm the findings that the smallest cure implies, and withdraw those it contradicts."""
    cures = facts.cures
    if cures is None:
        return Confirmed(tuple(findings))
    concluded = next((finding for finding in findings if finding.rule in CONCLUDING), None)
    if concluded is None:
        return Confirmed(tuple(_strengthened(finding, cures) for finding in findings))
    change = cures.concluded
    assert change is not None
    told = (*change.cause.implies, *change.cause.confirms)
    implied = [f for f in findings if f.rule in told and not f.preview]
    others = [f for f in findings if f is not concluded and f not in implied]
    excluded = [_excluded(f, cures, change, rules) for f in others]
    kept = [
        _strengthened(finding, cures)
        for finding, verdict in zip(others, excluded, strict=True)
        if verdict is None
    ]
    kept += [
        replace(
            finding,
            severity=max(finding.severity, concluded.severity),
            confidence=max(finding.confidence, concluded.confidence),
            evidence=(*concluded.evidence[:1], *finding.evidence, *concluded.evidence[1:]),
            confirmed_by=change.name,
        )
        for finding in implied
    ]
    if not implied:
        kept.append(_named(concluded, change, rules, {verdict.rule for verdict in clear}))
    return Confirmed(tuple(kept), tuple(verdict for verdict in excluded if verdict is not None))


def _strengthened(finding: Finding, cures: Cures) -> Finding:
    """Return a finding as certain if it is likely and the change that removes its cause helps."""
    helping = [
        change
        for change in cures.tried.values()
        if change.effect in (Effect.HELPS, Effect.CURES)
        and change.confirmed
        and not change.cause.is_swap
        and finding.rule in change.cause.implies
    ]
    if not helping or finding.confidence < Confidence.LIKELY:
        return finding
    best = max(helping, key=lambda change: change.gain)
    return replace(
        finding,
        confidence=Confidence.CERTAIN,
        evidence=(*finding.evidence, best.evidence),
        confirmed_by=best.name,
    )


def _named(
    concluded: Finding, change: TriedChange, rules: Mapping[str, Rule], absent: set[str]
) -> Finding:
    """Name the conclusion by the rule of the implied cause, rather by one not measured absent."""
    implied = [
        name
        for name in change.cause.implies
        if name in rules and not rules[name].preview and not rules[name].symptom
    ]
    if not implied:
        return replace(concluded, confirmed_by=change.name)
    name = implied[-1] if change.cause.is_swap else min(implied, key=absent.__contains__)
    return replace(concluded, rule=name, level=rules[name].level, confirmed_by=change.name)


def _excluded(
    finding: Finding, cures: Cures, cure: TriedChange, rules: Mapping[str, Rule]
) -> Clear | None:
    """Return why a suspected cause is none: removing it changes nothing, another change cures."""
    rule = rules.get(finding.rule)
    if finding.confidence is Confidence.CERTAIN or rule is None or rule.symptom:
        return None
    if cure.cause.by_training:  # which removes no cause
        return None
    deciding = [
        change
        for change in cures.tried.values()
        if change.cause.decides and finding.rule in change.cause.implies
    ]
    if not deciding or any(change.effect is not Effect.NONE for change in deciding):
        return None
    names = ", ".join(change.name for change in deciding)
    return Clear(finding.rule, f"contradicted: {names} has no effect, but {cure.name} cures it")
