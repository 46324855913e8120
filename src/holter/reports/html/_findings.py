"""Findings as cards: the condition, the evidence drawn on its curves, the fix as code."""

import re

from holter.diagnosis.engine import all_rules
from holter.diagnosis.signal_words import source
from holter.record.findings import Evidence, Finding
from holter.record.signals import Per, Signal
from holter.reports._card import tag, title
from holter.reports._facts import by_rule, step_range
from holter.reports.html._drawings import curves, named
from holter.reports.html._markup import Html, element, joined, with_code
from holter.reports.html._page import Figures
from holter.reports.html._tables import pairs
from holter.reports.html._view import Drawing, View

_MOST_CHARTS = 3  # of one finding
_MOST_CURVES = 6  # of one chart
_HEIGHT = 190
_FENCE = re.compile(r"^```\w*\n(.*?)^```", re.MULTILINE | re.DOTALL)


def leading_card(view: View, figures: Figures) -> Html:
    """Return the leading cause with evidence, fix, and what was ruled out."""
    diagnosis = view.diagnosis
    finding = diagnosis.leading
    assert finding is not None
    condition = title(finding) if diagnosis.known else "Cause unknown"
    severity = str(diagnosis.severity)
    commands = [*diagnosis.experiments, f"holter explain {finding.rule}"]
    return element(
        "article",
        _heading(severity, condition, finding, "h2"),
        element("p", with_code(finding.summary), class_="summary"),
        _fix(finding, "Fix" if diagnosis.known else "Meanwhile") if finding.fix else joined(),
        _evidence(view, finding, figures),
        _commands("Prove it" if diagnosis.known else "Find the cause", commands),
        _reasons("Also explains", by_rule(diagnosis.explained), is_open=True),
        _reasons("Ruled out", by_rule(diagnosis.ruled_out)),
        _reasons("Not tested", by_rule(diagnosis.unexamined)),
        class_="card leading",
        data_kind=severity,
    )


def other_card(view: View, finding: Finding, figures: Figures) -> Html:
    """Return a finding that stands on its own, folded to its first line."""
    severity = str(finding.severity)
    return element(
        "details",
        element("summary", _heading(severity, title(finding), finding, "h3")),
        element("p", with_code(finding.summary), class_="summary"),
        _fix(finding, "Fix") if finding.fix else joined(),
        _evidence(view, finding, figures),
        class_="card",
        data_kind=severity,
    )


def _heading(severity: str, condition: str, finding: Finding, level: str) -> Html:
    return element(
        "div",
        element("span", severity, class_="tag", data_kind=severity),
        element(level, condition),
        element("span", tag(finding), class_="rule"),
        class_="card-heading",
    )


def _fix(finding: Finding, label: str) -> Html:
    """Return the instruction, and the two lines of the rule's page that show it."""
    rule = all_rules().get(finding.rule)
    example = _FENCE.search(rule.section("Example")) if rule is not None else None
    code = joined()
    if example is not None:
        lines = (_line(line) for line in example[1].rstrip().split("\n"))
        code = element("pre", element("code", *lines), class_="code")
    return element(
        "div",
        element("h4", label),
        element("p", with_code(finding.fix)),
        code,
        class_="fix",
    )


def _line(line: str) -> Html:
    for word in ("bad", "good"):
        if line.rstrip().endswith(f"# {word}"):
            shown = line.rstrip().removesuffix(f"# {word}").rstrip()
            return element("span", shown, class_="line", data_kind=word)
    return element("span", line, class_="line")


def _evidence(view: View, finding: Finding, figures: Figures) -> Html:
    items = [
        element(
            "li",
            element("strong", source(reading.signal, reading.owner)),
            f", {step_range(reading.steps)}: ",
            with_code(reading.says),
        )
        for reading in finding.evidence
    ]
    drawings = evidence_drawings(view, finding)[:_MOST_CHARTS]
    charts = element("div", *map(figures.figure, drawings), class_="grid") if drawings else joined()
    listed = element("ul", *items, class_="evidence")
    return element("div", element("h4", "Evidence"), listed, charts) if items else joined()


def evidence_drawings(view: View, finding: Finding) -> list[Drawing]:
    """Return a chart for each signal of the evidence, with its steps shaded."""
    by_signal: dict[Signal, list[Evidence]] = {}
    for reading in finding.evidence:
        if reading.signal in view.run and reading.signal.bins == 1:
            by_signal.setdefault(reading.signal, []).append(reading)
    drawings = [_drawing(view, finding, signal, some) for signal, some in by_signal.items()]
    return [drawing for drawing in drawings if drawing is not None]


def _drawing(
    view: View, finding: Finding, signal: Signal, evidence: list[Evidence]
) -> Drawing | None:
    table = view.run[signal]
    owners = [owner for owner in dict.fromkeys(e.owner for e in evidence) if owner in table]
    if not owners and len(table) <= _MOST_CURVES:  # it is of all of them
        owners = list(table)
    marks = [
        {
            "from": reading.steps[0],
            "to": reading.steps[1],
            "kind": str(finding.severity),
            "text": reading.says,
        }
        for reading in evidence
    ]
    if finding.onset > 0 and signal.per is not Per.TRIAL:
        marks.append(
            {
                "from": finding.onset,
                "to": finding.onset,
                "kind": "onset",
                "text": f"begins at step {finding.onset:,}",
            }
        )
    titled = source(signal, owners[0] if len(owners) == 1 else "")
    return curves(
        {named(signal, owner, alone=False): table[owner] for owner in owners[:_MOST_CURVES]},
        title=titled[:1].upper() + titled[1:],
        unit=signal.unit,
        marks=marks,
        height=_HEIGHT,
        controls=False,
        own=signal.per is Per.TRIAL,
    )


def _commands(label: str, commands: list[str]) -> Html:
    items = (element("li", with_code(command)) for command in commands[:-1])
    explain = element("li", element("code", commands[-1]))
    return element("div", element("h4", label), element("ul", *items, explain), class_="commands")


def _reasons(label: str, reasons: dict[str, str], *, is_open: bool = False) -> Html:
    if not reasons:
        return joined()
    head = element("summary", f"{label} ", element("span", str(len(reasons)), class_="count"))
    return element("details", head, pairs(list(reasons.items())), open=is_open)
