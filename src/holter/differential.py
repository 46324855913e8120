"""From many findings to one cause: what leads, what it explains, what was ruled out."""

from collections.abc import Mapping
from dataclasses import dataclass

from holter.findings import Clear, Finding, NotExamined
from holter.rules import Checkup, Rule, all_rules


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The reading of a checkup. `known` is False where the leading finding is but a symptom."""

    leading: Finding | None = None
    known: bool = False
    explained: tuple[Finding, ...] = ()  # consequences of the leading finding, in order of onset
    others: tuple[Finding, ...] = ()  # findings that stand on their own
    ruled_out: tuple[
        Clear, ...
    ] = ()  # causes that would explain it, and were measured to be absent
    unexamined: tuple[NotExamined, ...] = ()  # causes that would explain it, and were not measured
    experiments: tuple[str, ...] = ()  # what would confirm it, or tell the cause, cheapest first


def diagnose(checkup: Checkup) -> Diagnosis:
    """Name the one finding that best explains the others, or say that none does."""
    if not checkup.findings:
        return Diagnosis()
    rules = all_rules()
    reach = {name: _closure(name, rules) for name in rules}
    unexplained = [
        each
        for each in checkup.findings
        if not any(_explains(other, each, rules, reach) for other in checkup.findings)
    ]
    leading = min(unexplained or checkup.findings, key=lambda each: _rank(each, checkup, reach))
    explained = sorted(
        (each for each in checkup.findings if _explains(leading, each, rules, reach)), key=_moved
    )
    others = tuple(f for f in checkup.findings if f is not leading and f not in explained)
    found = {each.rule for each in checkup.findings}
    symptoms = {leading.rule} | {each.rule for each in explained}
    return Diagnosis(
        leading=leading,
        known=leading.rule in rules and not rules[leading.rule].symptom,
        explained=tuple(explained),
        others=others,
        ruled_out=tuple(
            each
            for each in checkup.clear
            if each.because and each.rule not in found and reach[each.rule] & symptoms
        ),
        unexamined=tuple(each for each in checkup.not_examined if reach[each.rule] & symptoms),
        experiments=rules[leading.rule].experiments[:2] if leading.rule in rules else (),
    )


def _closure(name: str, rules: Mapping[str, Rule]) -> frozenset[str]:
    """Every rule whose findings may follow from `name`, directly or through others."""
    reached: set[str] = set()
    frontier = [name]
    while frontier:
        here = rules.get(frontier.pop())
        for effect in here.explains if here else ():
            if effect not in reached:
                reached.add(effect)
                frontier.append(effect)
    return frozenset(reached - {name})


def _moved(finding: Finding) -> tuple[int, int]:
    """When a finding's condition began: the step, and the phase within the step."""
    return finding.onset, finding.evidence[0].signal.phase if finding.evidence else 0


def _explains(
    cause: Finding,
    effect: Finding,
    rules: Mapping[str, Rule],
    reach: Mapping[str, frozenset[str]],
) -> bool:
    if cause is effect or effect.rule not in reach.get(cause.rule, frozenset()):
        return False
    if rules[cause.rule].symptom:  # between symptoms, who moved first explains the other
        return _moved(cause) < _moved(effect)
    return cause.onset <= max([effect.onset, *(each.steps[1] for each in effect.evidence)])


def _rank(
    finding: Finding, checkup: Checkup, reach: Mapping[str, frozenset[str]]
) -> tuple[object, ...]:
    explains = sum(other.rule in reach.get(finding.rule, ()) for other in checkup.findings)
    return (
        finding.preview,
        -finding.severity,
        -finding.confidence,
        -explains,
        _moved(finding),
        finding.level,
        finding.rule,
    )
