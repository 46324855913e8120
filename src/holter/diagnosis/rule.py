"""Rule: a pure function of a recorded run, with what is known of it without running it."""

import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

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
from holter.record.signals import Signal

HEADINGS = ("What it does", "Why it matters", "What to do", "When it is wrong", "How to confirm")

RuleFunction = Callable[..., Iterator[Verdict]]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule function together with what is known of it without running it."""

    name: str
    severity: Severity
    level: Level
    needs: tuple[Signal, ...]
    explains: tuple[str, ...]
    symptom: bool
    preview: bool
    function: RuleFunction

    @property
    def doc(self) -> str:
        """The rule's page, in Markdown: its docstring."""
        return inspect.cleandoc(self.function.__doc__ or "")

    @property
    def title(self) -> str:
        """The condition in one sentence."""
        return self.doc.partition("\n")[0]

    @property
    def options(self) -> dict[str, Any]:
        """Thresholds a user may change: the function's keyword-only parameters."""
        parameters = inspect.signature(self.function).parameters.values()
        return {each.name: each.default for each in parameters if each.kind is each.KEYWORD_ONLY}

    def section(self, heading: str) -> str:
        """The text under one heading of the page."""
        found = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", self.doc, re.M | re.S)
        return found.group(1).strip() if found else ""

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
        explains: tuple[str, ...] | None = None,
    ) -> Finding:
        """This rule's condition holds; severity and what it explains are the rule's by default."""
        return Finding(
            rule=self.name,
            severity=self.severity if severity is None else severity,
            confidence=confidence,
            level=self.level,
            summary=summary,
            onset=onset,
            evidence=tuple(evidence),
            fix=fix,
            explains=self.explains if explains is None else explains,
            preview=self.preview,
        )

    def normal(self, summary: str, evidence: Iterable[Evidence] = ()) -> Normal:
        """Something this rule looks at is odd but not a fault."""
        return Normal(self.name, summary, tuple(evidence))

    def clear(self, because: str) -> Clear:
        """This rule's condition does not hold, and what was measured to know it."""
        return Clear(self.name, because)

    def not_examined(self, because: str) -> NotExamined:
        """This rule cannot tell yet, and why."""
        return NotExamined(self.name, because)


def rule(
    *,
    severity: Severity,
    level: Level,
    needs: tuple[Signal, ...],
    explains: tuple[str, ...] = (),
    symptom: bool = False,
    preview: bool = False,
) -> Callable[[RuleFunction], Rule]:
    """Turn a function into a rule named after it: `flat_loss` becomes `flat-loss`.

    `explains` names the rules whose findings are consequences of this one. A `symptom` is an
    effect: when nothing explains it, the differential says that the cause is unknown.
    """

    def make(function: RuleFunction) -> Rule:
        name = function.__name__.replace("_", "-")
        return Rule(name, severity, level, needs, explains, symptom, preview, function)

    return make
