"""Apply the rules to a run: find them, run them, collect what they say."""

import fnmatch
import pkgutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from holter.diagnosis import rules as _rules
from holter.diagnosis.absent import absent
from holter.diagnosis.confirming import confirmed
from holter.diagnosis.damage import UNEXPLAINED, graded, tells_failure
from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.breaks import breaks_suddenly
from holter.diagnosis.facts.outcome import Outcome, OutcomeState
from holter.diagnosis.facts.replays import advised_replay, captured_failure
from holter.diagnosis.facts.shards import with_global_norms
from holter.diagnosis.rule import Rule
from holter.record import Run
from holter.record.errors import HolterError
from holter.record.events import ExperimentFailed, NotApplicable
from holter.record.findings import (
    Clear,
    Confidence,
    Finding,
    Normal,
    NotExamined,
    Severity,
    Verdict,
)
from holter.record.notices import tell
from holter.record.rich import card

NOT_JUDGED = Outcome(OutcomeState.UNKNOWN, "no run was checked")

# The states that rules about the validation may change.
_UNLESS_VALIDATION = (OutcomeState.LEARNED, OutcomeState.STALLED, OutcomeState.OVERFITS)

Options = Mapping[str, Mapping[str, Any]]  # rule -> option -> value


@dataclass(frozen=True, slots=True)
class Checkup:
    """What checking a run gives: how it went, what was found, normal, clear, not examined."""

    findings: tuple[Finding, ...] = ()
    normal: tuple[Normal, ...] = ()
    clear: tuple[Clear, ...] = ()
    not_examined: tuple[NotExamined, ...] = ()
    failures: tuple[str, ...] = ()  # internal errors of experiments and rules, a sentence each
    outcome: Outcome = NOT_JUDGED
    advice: str = ""  # what to run first: the replay of a captured failure, or a recording
    captured: int | None = None  # the step of a captured failure that was not replayed
    sudden: bool = False  # it is not finite, and all was in its band until then
    script: str | None = None  # that was recorded, with its arguments

    def at_least(self, severity: Severity) -> tuple[Finding, ...]:
        """The findings of stable rules that are at least this severe: they may fail a check."""
        return tuple(f for f in self.findings if f.severity >= severity and not f.preview)

    def _repr_html_(self) -> str:
        rows = [
            (f"{f.severity}: {f.rule}", f"{f.summary}. {f'Fix: {f.fix}' if f.fix else ''}")
            for f in self.findings
        ]
        nothing = [] if rows else [("findings", "none")]
        return card(f"{self.outcome.title}. {self.outcome.says}", rows or nothing)


@cache
def all_rules() -> Mapping[str, Rule]:
    """Every rule by name: one in each module of this package, then those of other packages."""
    rules: dict[str, Rule] = {}
    for module in sorted(pkgutil.iter_modules(_rules.__path__), key=lambda each: each.name):
        if not module.name.startswith("_"):
            found = getattr(import_module(f"{_rules.__name__}.{module.name}"), module.name)
            rules[found.name] = found
    for entry in entry_points(group="holter.rules"):
        try:
            found = entry.load()
        except Exception as error:
            tell(f"the rule {entry.name} of {entry.value} cannot be loaded: {error!r}")
            continue
        if not isinstance(found, Rule):
            tell(f"{entry.value} is named as a rule but was not made with @holter.rule; ignored.")
        else:
            rules.setdefault(found.name, found)
    return rules


def check(
    run: Run,
    *,
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    options: Options | None = None,
) -> Checkup:
    """Apply the rules to `run`; findings come most severe, most certain and earliest first.

    Findings that explain why a run failed are errors, whatever the severity of their rule.

    `select` and `ignore` take names and patterns such as `nonfinite-*`; `options` overrides the
    thresholds of rules: `{"flat-loss": {"min_drop": 0.02}}`.
    """
    options = options or {}
    _reject_unknown_options(options)
    facts = Facts(with_global_norms(run))
    verdicts: list[Verdict] = []
    for each in chosen_rules(select, ignore):
        verdicts += _apply(each, facts, options.get(each.name, {}))
    verdicts = _without_known_failure(verdicts, facts)
    clear = [verdict for verdict in verdicts if isinstance(verdict, Clear)]
    suspected = graded((each for each in verdicts if isinstance(each, Finding)), facts)
    after = confirmed(suspected, facts, all_rules(), clear)
    findings = list(after.findings)
    named = {finding.rule for finding in findings if finding.confirmed_by}
    unexamined = tuple(verdict for verdict in verdicts if isinstance(verdict, NotExamined))
    experiments = [_failure(event.what) for event in run.events_of(ExperimentFailed)]
    outcome = _outcome(facts, options)
    captured = captured_failure(run)
    if not findings and outcome.state is OutcomeState.LEARNED:  # a rise that it recovered from
        captured = None
    findings.sort(key=lambda f: (-f.severity, -f.confidence, f.onset, f.level, f.rule))
    return Checkup(
        tuple(findings),
        tuple(verdict for verdict in verdicts if isinstance(verdict, Normal)),
        tuple(each for each in (*clear, *after.excluded) if each.rule not in named),
        unexamined,
        tuple(dict.fromkeys([*experiments, *(v.because for v in unexamined if v.is_failure)])),
        outcome,
        _advice(run, captured),
        captured,
        breaks_suddenly(run),
        run.meta.environment.script,
    )


def chosen_rules(select: Iterable[str] = (), ignore: Iterable[str] = ()) -> tuple[Rule, ...]:
    """The rules that `select` names (all where it is empty), less those that `ignore` names."""
    rules = all_rules()
    selected = _matching(select) if select else set(rules)
    ignored = _matching(ignore)
    return tuple(each for name, each in rules.items() if name in selected - ignored)


def named_rule(name: str) -> Rule:
    """The rule of that name, or a sentence with the nearest one."""
    try:
        return all_rules()[name]
    except KeyError:
        raise HolterError(f"There is no rule {name!r}{_nearest(name, all_rules())}") from None


def _advice(run: Run, captured: int | None) -> str:
    if run.meta.source is None:
        return "" if captured is None else advised_replay(run)
    return (
        "`holter run train.py` records what the log does not hold: gradients, weights, updates,"
        " data and modes."
    )


def _outcome(facts: Facts, options: Options) -> Outcome:
    """Return how the run went; two rules judge its validation, whether they are selected or not."""
    outcome = facts.run_outcome
    if outcome.state not in _UNLESS_VALIDATION:
        return outcome
    overfitting = _finding_of("overfitting", facts, options)
    if overfitting is not None:
        return replace(outcome, state=OutcomeState.OVERFITS, onset=overfitting.onset)
    mismatch = _finding_of("validation-mismatch", facts, options)
    if mismatch is not None and mismatch.confidence >= Confidence.LIKELY:
        return replace(outcome, state=OutcomeState.MEMORISED)
    return outcome


def _finding_of(name: str, facts: Facts, options: Options) -> Finding | None:
    verdicts = _apply(all_rules()[name], facts, options.get(name, {}))
    return next((verdict for verdict in verdicts if isinstance(verdict, Finding)), None)


def _without_known_failure(verdicts: list[Verdict], facts: Facts) -> list[Verdict]:
    """Return the verdicts without `unexplained-failure` where another finding names the failure."""
    rest = [verdict for verdict in verdicts if verdict.rule != UNEXPLAINED]
    findings = [verdict for verdict in rest if isinstance(verdict, Finding)]
    if len(rest) == len(verdicts) or not tells_failure(findings, facts):
        return verdicts
    return [*rest, Clear(UNEXPLAINED, "another finding names the failure")]


def _apply(each: Rule, facts: Facts, options: Mapping[str, Any]) -> list[Verdict]:
    missing = [signal.name for signal in each.needs if signal not in facts.run]
    by_events = not each.needs and facts.run.meta.source is not None  # which no log has
    if missing or by_events:
        return [_without(each, facts.run, missing)]
    try:
        said = list(each.function(facts, **options))
    except Exception as error:
        because = f"the rule {each.name} failed inside holter: {error!r}; please report it"
        return [NotExamined(each.name, because, is_failure=True)]
    if not said or all(isinstance(verdict, Normal) for verdict in said):
        said.append(each.clear(""))
    return said


def _without(rule: Rule, run: Run, missing: list[str]) -> NotExamined:
    """Return why signals are missing: an experiment failed, or states why it could not be made."""
    for failed in run.events_of(ExperimentFailed):
        if set(missing) & set(failed.what.signals):
            return NotExamined(rule.name, _failure(failed.what), is_failure=True)
    for event in run.events_of(NotApplicable):
        if set(missing) & set(event.what.signals):
            return NotExamined(rule.name, event.what.why)
    return NotExamined(rule.name, absent(run, missing), tuple(missing))


def _failure(failed: ExperimentFailed) -> str:
    return (
        f"the check {failed.experiment} failed inside holter: {failed.error}; please report it;"
        " the others are unaffected"
    )


def _matching(patterns: Iterable[str]) -> set[str]:
    names: set[str] = set()
    for pattern in patterns:
        found = fnmatch.filter(all_rules(), pattern)
        if not found:
            raise HolterError(f"No rule matches {pattern!r}{_nearest(pattern, all_rules())}")
        names.update(found)
    return names


def _reject_unknown_options(options: Options) -> None:
    for name, values in options.items():
        known = named_rule(name).options
        for option in values:
            if option not in known:
                raise HolterError(
                    f"The rule {name} has no option {option!r}{_nearest(option, known)}"
                )


def _nearest(word: str, known: Iterable[str]) -> str:
    near = get_close_matches(word, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else "; `holter rules` lists them."
