"""From many findings to one cause: what leads, what it explains, what was ruled out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from holter.diagnosis.causes import explained_by, reach
from holter.diagnosis.effects import effects_of, moved
from holter.diagnosis.engine import Checkup, all_rules
from holter.record.findings import Clear, Confidence, Finding, NotExamined, Severity
from holter.record.signals import LOSS

_NONFINITE = ("nonfinite-loss", "nonfinite-gradient", "nonfinite-weights")
_BREAKS = (*_NONFINITE, "singular-operations")  # what a training breaks by
# What costs time alone: it leads where nothing is said about learning.
_TIME = ("input-bound", "slow-steps", "synchronising-calls", "unbatched-operations")
_SOON = 20  # steps around a captured failure that belong to it
_MOST = 2  # experiments that are advised
_SCRIPT = "train.py"  # stands for the user's script on the pages of rules
_V = TypeVar("_V", Clear, NotExamined)


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

    @property
    def severity(self) -> Severity:
        """The severity of the leading finding and of what it explains, whichever is higher."""
        told = [self.leading] if self.leading is not None else []
        return max((each.severity for each in (*told, *self.explained)), default=Severity.INFO)


def diagnose(checkup: Checkup) -> Diagnosis:
    """Name the one finding that best explains the others, or say that none does."""
    if not checkup.findings:
        return Diagnosis()
    findings = checkup.findings
    effects = {id(each): _effects(each, checkup) for each in findings}
    explained = {id(effect) for found in effects.values() for effect in found}
    unexplained = [each for each in findings if id(each) not in explained]
    early = [each for each in unexplained if not _may_follow(each, checkup)]
    leading = min(
        early or unexplained or findings,
        key=lambda each: (
            each.rule in _TIME,
            not _is_sure(each),
            each.preview,
            -each.severity,
            -each.confidence,
            -len(effects[id(each)]),
            moved(each),
            each.level,
            each.rule,
        ),
    )
    consequences = effects[id(leading)]
    symptoms = {leading.rule} | {each.rule for each in consequences}
    found = {each.rule for each in findings}
    rule = all_rules().get(leading.rule)
    return Diagnosis(
        leading=leading,
        known=rule is None or not rule.symptom,
        explained=tuple(sorted(consequences, key=moved)),
        others=tuple(f for f in findings if f is not leading and f not in consequences),
        ruled_out=_nearest_first(
            [
                each
                for each in checkup.clear
                if each.because and each.rule not in found and _could_explain(each.rule, symptoms)
            ],
            leading,
        ),
        unexamined=_nearest_first(
            [each for each in checkup.not_examined if _could_explain(each.rule, symptoms)], leading
        ),
        experiments=_advised(checkup, rule.experiments if rule is not None else ()),
    )


def _is_sure(finding: Finding) -> bool:
    """Whether a finding leads before any hint, however grave what the hint suspects is."""
    return finding.confidence > Confidence.HINT and finding.severity > Severity.INFO


def _effects(cause: Finding, checkup: Checkup) -> list[Finding]:
    """Return what follows from a finding.

    A hint does not explain a value that is not finite while its capture waits to be replayed: the
    replay names the operation in seconds. Nor does what may itself follow from that failure, or
    what had held for long before it and never made the loss rise.
    """
    rules = all_rules()
    effects = effects_of(cause, checkup.findings, rules)
    if not _is_sure(cause):  # a certain cause stands, whatever else may be behind it
        effects = [each for each in effects if not _is_certain_cause(each)]
    if _may_follow(cause, checkup):
        return [each for each in effects if each.rule in rules and not rules[each.rule].symptom]
    if checkup.captured is not None and (
        cause.confidence is Confidence.HINT or _is_old(cause, checkup)
    ):
        return [each for each in effects if each.rule not in _BREAKS]
    return effects


def _is_certain_cause(finding: Finding) -> bool:
    rule = all_rules().get(finding.rule)
    is_symptom = rule is not None and rule.symptom
    return finding.confidence is Confidence.CERTAIN and not finding.preview and not is_symptom


def _is_old(cause: Finding, checkup: Checkup) -> bool:
    """Whether a cause that is not certain began long before a failure that came suddenly."""
    rule = all_rules().get(cause.rule)
    if not checkup.sudden or checkup.captured is None or rule is None or rule.symptom:
        return False
    return cause.confidence < Confidence.CERTAIN and cause.onset < checkup.captured - _SOON


def _may_follow(cause: Finding, checkup: Checkup) -> bool:
    """Whether a cause that is not certain began soon after the loss of a captured failure."""
    rule = all_rules().get(cause.rule)
    if checkup.captured is None or rule is None or rule.symptom:
        return False
    soon = cause.onset <= checkup.captured + _SOON
    late = moved(cause) > (checkup.captured, LOSS.phase)  # what the step was given came before
    return soon and late and cause.confidence < Confidence.CERTAIN


def _advised(checkup: Checkup, experiments: Sequence[str]) -> tuple[str, ...]:
    """Return what to run next, for the script that was recorded.

    The replay of a captured failure comes first: it takes seconds, and names the cause.
    """
    if checkup.advice:
        others = [each for each in experiments if "holter try replay" not in each]
        experiments = (checkup.advice, *others)
    script = checkup.script or _SCRIPT
    return tuple(each.replace(_SCRIPT, script) for each in experiments[:_MOST])


def _could_explain(name: str, symptoms: set[str]) -> bool:
    rule = all_rules().get(name)
    return rule is not None and bool((reach(explained_by(name)) - {name}) & symptoms)


def _nearest_first(verdicts: list[_V], leading: Finding) -> tuple[_V, ...]:
    """What explains the leading finding, then the most severe, then the first to examine."""
    rules = all_rules()

    def distance(verdict: _V) -> tuple[bool, int, int]:
        rule = rules[verdict.rule]
        return leading.rule not in explained_by(rule.name), -rule.severity, rule.level

    return tuple(sorted(verdicts, key=distance))
