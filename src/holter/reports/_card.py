"""A finding on the screen: cause, evidence, fix and the next command, in brief or in full."""

from collections.abc import Sequence

from holter.diagnosis.causes import FROM_SOURCE
from holter.diagnosis.differential import Diagnosis
from holter.diagnosis.engine import all_rules
from holter.diagnosis.signal_words import source
from holter.record.findings import Evidence, Finding, Severity
from holter.reports._facts import by_rule, step_range
from holter.reports._lines import BLANK, Line, hanging

COLOR = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.INFO: "bold blue"}
Word = tuple[str, str]  # the first word of a card, and its style

_LABEL = 7  # columns of `fix`, `prove`, `next`, `more`
_FULL_LABEL = 16  # the same in the full card
_MOST_NAMES = 3  # of rules in one line


def brief_card(
    diagnosis: Diagnosis, width: int, *, evidence: int, word: Word | None = None
) -> list[Line]:
    """Return the leading finding with at most so many lines of evidence, and what to do."""
    finding = diagnosis.leading
    assert finding is not None
    lines = [*_heading(diagnosis, width, word), *_indented(finding.summary, width)]
    for reading in finding.evidence:
        item = _indented(f"{source(reading.signal, reading.owner)}: {reading.says}", width)
        if reading.says not in finding.summary and len(item) <= evidence:
            lines += item
            evidence -= len(item)
    if diagnosis.explained:
        rules = dict.fromkeys(effect.rule for effect in diagnosis.explained)
        lines += _indented(f"also explains: {some(list(rules))}", width)
    if not diagnosis.known:
        lines += _open_question(diagnosis, width)
    actions = _actions(diagnosis)
    return [*lines, BLANK, *_labelled(actions, width, _LABEL)] if actions else lines


def full_card(diagnosis: Diagnosis, width: int, *, word: Word | None = None) -> list[Line]:
    """Return the leading finding with all evidence, what it explains, and what was ruled out."""
    finding = diagnosis.leading
    assert finding is not None
    lines = [*_heading(diagnosis, width, word), *_indented(finding.summary, width), BLANK]
    since = f"step {finding.onset}, level: {finding.level}"
    lines += _labelled([("  since", since)], width, _FULL_LABEL)
    lines += _evidence(finding.evidence, width)
    again = [other.summary for other in diagnosis.others if other.rule == finding.rule]
    lines += _list("again", again, width)
    for label, verdicts in (
        ("explains", diagnosis.explained),
        ("ruled out", diagnosis.ruled_out),
        ("not examined", diagnosis.unexamined),
    ):
        reasons = by_rule(verdicts).items()
        lines += _list(label, [f"{rule}: {why}" for rule, why in reasons], width)
    lines += _list("prove" if diagnosis.known else "next", diagnosis.experiments, width)
    fix = [finding.fix] if finding.fix else []
    return [*lines, *_list("fix" if diagnosis.known else "meanwhile", fix, width)]


def on_card(diagnosis: Diagnosis) -> set[str]:
    """Return the rules that the full card names: no other section names them again."""
    leading = () if diagnosis.leading is None else (diagnosis.leading,)
    named = (*leading, *diagnosis.explained, *diagnosis.ruled_out, *diagnosis.unexamined)
    return {verdict.rule for verdict in named}


def title(finding: Finding) -> str:
    """Return the condition as the page of the rule states it, without the period.

    A page about the source covers several mistakes; the summary says which one it is.
    """
    if finding.rule in FROM_SOURCE:
        return "Mistake in the source"
    entry = all_rules().get(finding.rule)
    return entry.title.rstrip(".") if entry is not None and entry.title else finding.rule


def some(names: Sequence[str], *, most: int = _MOST_NAMES) -> str:
    """Return names in a row; of many the first ones, and how many more there are."""
    if len(names) <= most + 1:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most} more"


def tag(finding: Finding) -> str:
    """Return the name of the rule and how sure the finding is: `flat-loss · likely`."""
    proof = ", confirmed by intervention" if finding.confirmed_by else ""
    return f"{finding.rule} · {finding.confidence}{proof}{' · preview' if finding.preview else ''}"


def _heading(diagnosis: Diagnosis, width: int, word: Word | None) -> list[Line]:
    """Return severity, condition, and the rule at the right margin or on its own line."""
    finding = diagnosis.leading
    assert finding is not None
    condition = title(finding) if diagnosis.known else "cause unknown"
    text, style = word or (f"{diagnosis.severity}".upper(), COLOR[diagnosis.severity])
    severity = (f"{text}  ", style)
    label = tag(finding)
    room = width - len(severity[0]) - len(condition) - len(label)
    if room >= 2:
        return [(severity, (condition, "bold"), (" " * room, ""), (label, "dim"))]
    lines = hanging(condition, width=width, lead=(severity,), style="bold")
    return [*lines, ((" " * len(severity[0]), ""), (label, "dim"))]


def _open_question(diagnosis: Diagnosis, width: int) -> list[Line]:
    lines: list[Line] = []
    ruled_out = list(by_rule(diagnosis.ruled_out))
    untested = list(by_rule(diagnosis.unexamined))
    if ruled_out:
        lines += _indented(f"ruled out: {some(ruled_out)}", width)
    if untested:
        lines += _indented(f"not tested: {some(untested)}", width)
    return lines


def _actions(diagnosis: Diagnosis) -> list[tuple[str, str]]:
    finding = diagnosis.leading
    assert finding is not None
    if not diagnosis.known:
        return [("next", experiment) for experiment in diagnosis.experiments]
    actions = [("fix", finding.fix)] if finding.fix else []
    if finding.confirmed_by:
        return actions
    return actions + [("prove", experiment) for experiment in diagnosis.experiments[:1]]


def _evidence(evidence: Sequence[Evidence], width: int) -> list[Line]:
    """Return signal, owner and steps of each reading, and below what it says."""
    lines: list[Line] = []
    for place, reading in enumerate(evidence):
        lead = (("  evidence" if place == 0 else "").ljust(_FULL_LABEL), "dim")
        reference = f"{source(reading.signal, reading.owner)}, {step_range(reading.steps)}"
        lines.append((lead, (reference, "cyan")))
        lines += hanging(reading.says, width=width, lead=((" " * (_FULL_LABEL + 2), ""),))
    return lines


def _list(label: str, items: Sequence[str], width: int) -> list[Line]:
    pairs = [(f"  {label}" if place == 0 else "", item) for place, item in enumerate(items)]
    return _labelled(pairs, width, _FULL_LABEL, hang=2 if len(items) > 1 else 0)


def _labelled(
    pairs: Sequence[tuple[str, str]], width: int, column: int, *, hang: int = 0
) -> list[Line]:
    """Return label and text in two columns; a label that repeats is shown once."""
    lines: list[Line] = []
    before = ""
    for label, text in pairs:
        lead = ((label if label != before else "").ljust(column), "dim")
        lines += hanging(text, width=width, lead=(lead,), hang=hang)
        before = label
    return lines


def _indented(text: str, width: int) -> list[Line]:
    return hanging(text, width=width, lead=(("  ", ""),))
