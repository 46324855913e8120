"""Rule: condition, damage and named exceptions, as a pure function of what is known of a run."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from holter.record.findings import (
    Clear,
    Confidence,
    Evidence,
    Finding,
    Level,
    Normal,
    NotExamined,
    Severity,
    Verdict,
)
from holter.record.functions import options_of, page_of
from holter.record.signals import Signal

HEADINGS = (
    "What it does",
    "Why it matters",
    "Example",
    "What to do",
    "When it is wrong",
    "How to confirm",
)
NO_DAMAGE = "no-damage"  # the exception that every rule has: the run learned nevertheless

RuleFunction = Callable[..., Iterator[Verdict]]


@dataclass(frozen=True, slots=True)
class NamedException:
    """A reason for a rule not to report although its condition holds."""

    name: str
    because: str  # one sentence: why the condition is harmless
    measure: Callable[..., str | None]


def exception(function: Callable[..., str | None]) -> NamedException:
    """Turn a function into a named exception: `rate_raised` becomes `rate-raised`.

    It is given what the rule gives to `Rule.excused`, and returns what it measured, as a sentence,
    or None if it does not apply. Its docstring is the reason why the condition is harmless.
    """
    because = page_of(function).partition("\n\n")[0].replace("\n", " ")
    return NamedException(function.__name__.replace("_", "-").strip("-"), because, function)


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule function together with what is known of it without running it."""

    name: str
    severity: Severity
    level: Level
    needs: tuple[Signal, ...]
    symptom: bool
    preview: bool
    exceptions: tuple[NamedException, ...]
    function: RuleFunction

    @property
    def doc(self) -> str:
        """The rule's page, in Markdown: its docstring."""
        return page_of(self.function)

    @property
    def title(self) -> str:
        """The condition in one sentence."""
        return self.doc.partition("\n")[0]

    @property
    def options(self) -> dict[str, Any]:
        """Numbers that decide a verdict, with their defaults: the keyword-only parameters."""
        return options_of(self.function)

    @property
    def option_docs(self) -> dict[str, str]:
        """What each option is, from `min_steps: Annotated[int, "losses needed"] = 100`."""
        hints = get_type_hints(self.function, include_extras=True)
        return {
            name: get_args(hints[name])[1] if get_origin(hints.get(name)) is Annotated else ""
            for name in self.options
        }

    def section(self, heading: str) -> str:
        """The text under one heading of the page."""
        match = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", self.doc, re.M | re.S)
        return match.group(1).strip() if match else ""

    @property
    def experiments(self) -> tuple[str, ...]:
        """How to confirm a finding: the list on the rule's page, cheapest first."""
        items = re.split(r"^- ", self.section("How to confirm"), flags=re.M)
        return tuple(" ".join(item.split()) for item in items if item.strip())

    def finding(
        self,
        summary: str,
        *,
        confidence: Confidence,
        onset: int,
        evidence: Iterable[Evidence],
        fix: str,
        severity: Severity | None = None,
        explains: Iterable[str] | None = None,
        place: str = "",
    ) -> Finding:
        """The condition holds, and does damage.

        `explains` narrows or widens what `causes.py` says of this rule, for this finding alone.
        `place` is the file and line of the statement at fault.
        """
        return Finding(
            rule=self.name,
            severity=self.severity if severity is None else severity,
            confidence=confidence,
            level=self.level,
            summary=summary,
            onset=onset,
            evidence=tuple(evidence),
            fix=fix,
            explains=None if explains is None else tuple(explains),
            preview=self.preview,
            place=place,
        )

    def excused(self, *subject: object) -> Normal | None:
        """Return a note if one of the rule's exceptions applies to `subject`, else None."""
        for each in self.exceptions:
            measured = each.measure(*subject)
            if measured is not None:
                return Normal(self.name, measured, exception=each.name)
        return None

    def harmless(self, summary: str, evidence: Iterable[Evidence] = ()) -> Normal:
        """The condition holds, but did no damage: `summary` says by which measurement."""
        return Normal(self.name, summary, tuple(evidence), exception=NO_DAMAGE)

    def normal(self, summary: str, evidence: Iterable[Evidence] = ()) -> Normal:
        """Something this rule looks at is unusual, and its condition does not hold."""
        return Normal(self.name, summary, tuple(evidence))

    def clear(self, because: str) -> Clear:
        """The condition does not hold; `because` is the measurement."""
        return Clear(self.name, because)

    def not_examined(self, because: str) -> NotExamined:
        """The rule cannot tell yet, and why."""
        return NotExamined(self.name, because)


def rule(
    *,
    severity: Severity,
    level: Level,
    needs: tuple[Signal, ...],
    symptom: bool = False,
    preview: bool = False,
    exceptions: tuple[NamedException, ...] = (),
) -> Callable[[RuleFunction], Rule]:
    """Turn a function into a rule named after it: `flat_loss` becomes `flat-loss`.

    A `symptom` is an effect: when nothing explains it, its cause is unknown. What a rule explains
    is said in `causes.py`.
    """

    def make(function: RuleFunction) -> Rule:
        name = function.__name__.replace("_", "-")
        return Rule(name, severity, level, needs, symptom, preview, exceptions, function)

    return make
