"""Which findings follow from which, by what `causes.py` says and by when they began."""

from collections.abc import Mapping, Sequence

from holter.diagnosis.causes import explained_by, members, reach
from holter.diagnosis.rule import Rule
from holter.record.findings import Finding
from holter.record.signals._signal import Per


def reached_by(cause: Finding) -> set[str]:
    """Return the rules whose findings may follow from `cause`."""
    return reach(explained_by(cause.rule) if cause.explains is None else members(cause.explains))


def effects_of(
    cause: Finding, findings: Sequence[Finding], rules: Mapping[str, Rule]
) -> list[Finding]:
    """Return the findings that follow from `cause`."""
    reached = reached_by(cause)
    return [
        each
        for each in findings
        if each is not cause and each.rule in reached and _may_precede(cause, each, rules)
    ]


def moved(finding: Finding) -> tuple[int, int]:
    """Return when a finding's condition began: the step, and the phase within the step."""
    return finding.onset, finding.evidence[0].signal.phase if finding.evidence else 0


def _may_precede(cause: Finding, effect: Finding, rules: Mapping[str, Rule]) -> bool:
    rule = rules.get(cause.rule)
    if rule is not None and rule.symptom:  # between symptoms, who moved first explains the other
        return moved(cause) < moved(effect)
    if effect.evidence and effect.evidence[0].signal.per is Per.TRIAL:
        return True  # measured by an experiment, in steps of its own
    return cause.onset <= max([effect.onset, *(each.steps[1] for each in effect.evidence)])
