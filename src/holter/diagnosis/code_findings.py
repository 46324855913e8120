"""Findings from the source of the script: what a statement does, and what it should be."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import Rule
from holter.record.events import CodePattern, CodeRead
from holter.record.findings import Confidence, Evidence, Verdict
from holter.record.signals import LOSS

_SHOWN = 3  # places that a summary names


class Mistake(NamedTuple):
    """What a pattern means: a sentence with `{subject}` and `{code}`, and the fix."""

    says: str
    fix: str
    confidence: Confidence = Confidence.LIKELY


def concluded(rule: Rule, facts: Facts, mistakes: Mapping[str, Mistake]) -> Iterator[Verdict]:
    """Yield a finding for each kind of pattern in the source, or that there is none."""
    read = [event.what for event in facts.run.events_of(CodeRead)]
    if not read:
        yield rule.not_examined("the source was not read; `holter run` reads it")
        return
    found: dict[str, list[CodePattern]] = {}
    for event in facts.run.events_of(CodePattern):
        if event.what.pattern in mistakes:
            found.setdefault(event.what.pattern, []).append(event.what)
    if not found:
        lines = sum(each.lines for each in read)
        yield rule.clear(f"no such statement in {lines:,} lines of source")
    for kind, places in found.items():
        first, mistake = places[0], mistakes[kind]
        says = mistake.says.format(subject=first.subject, code=first.code)
        others = ", ".join(place.where for place in places[1:_SHOWN])
        also = f"; also at {others}" if others else ""
        yield rule.finding(
            f"{first.where}: {says}{also}",
            confidence=mistake.confidence,
            onset=0,
            evidence=_evidence(facts, first),
            fix=mistake.fix.format(subject=first.subject, code=first.code),
            place=first.where,
        )


def _evidence(facts: Facts, place: CodePattern) -> tuple[Evidence, ...]:
    """Return the statement beside the loss, if there is one: a script may never make a step."""
    if LOSS not in facts.run:
        return ()
    last, owner = max(facts.run.steps - 1, 0), next(iter(facts.run[LOSS]))
    return (Evidence(LOSS, (0, last), f"{place.where}: `{place.code}`", owner),)
