"""The report for people: how the run went, the cause, the fix; everything else with `whole`."""

from collections.abc import Iterable, Sequence
from itertools import islice

from holter.diagnosis.differential import Diagnosis, diagnose
from holter.diagnosis.engine import Checkup, all_rules
from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.ending import exception_line
from holter.diagnosis.facts.outcome import OutcomeState
from holter.diagnosis.signal_words import in_words
from holter.record import Run
from holter.record.events import ExperimentMade
from holter.record.findings import Finding, Severity
from holter.record.signals import CATALOGUE
from holter.reports._card import COLOR, brief_card, full_card, on_card, some, tag
from holter.reports._evaluation import evaluation_tables
from holter.reports._facts import (
    by_rule,
    clear_rules,
    cost,
    ending,
    steps_read,
    tally,
)
from holter.reports._lines import BLANK, Line, hanging, painted
from holter.reports._numbers import count
from holter.reports._outcome import headline
from holter.reports._performance import sentences
from holter.reports._sparklines import sparklines
from holter.reports._tables import table_lines
from holter.reports.experiments import all_results

WIDTH = 96
SCREEN = 25  # lines of the first screen, tables of an experiment aside
_EVIDENCE = 3  # lines of evidence on it
_MOST_ROWS = 12  # of a table on it
_CURVES = 8  # drawn at most


def render(
    run: Run, checkup: Checkup, *, width: int = WIDTH, color: bool = False, whole: bool = False
) -> str:
    """Return the first screen of the report, or the `whole` of it."""
    diagnosis = diagnose(checkup)
    if whole:
        return painted(_joined(_everything(run, checkup, diagnosis, width)), color=color)
    top, body = _top(run, checkup, width), _body(run, checkup, diagnosis, width, _EVIDENCE)
    if (excess := len(top) + 1 + len(body) - SCREEN) > 0:
        body = _body(run, checkup, diagnosis, width, max(_EVIDENCE - excess, 0))
    tables = _experiments(run, width, whole=False)
    if diagnosis.leading is None and not tables:  # a few lines for a healthy run
        return painted([*top, *body], color=color)
    return painted(_joined([top, *tables, body]), color=color)


def _body(
    run: Run, checkup: Checkup, diagnosis: Diagnosis, width: int, evidence: int
) -> list[Line]:
    if diagnosis.leading is None:
        return [
            *_cost_line(run, checkup, width),
            *_advice(run, checkup, width),
            *_details(run, checkup, width),
        ]
    return [*brief_card(diagnosis, width, evidence=evidence), *_more(run, diagnosis, width)]


def _everything(run: Run, checkup: Checkup, diagnosis: Diagnosis, width: int) -> list[list[Line]]:
    """Return all sections; a rule is named once, in the first one it belongs to."""
    named = on_card(diagnosis)
    others = [finding for finding in diagnosis.others if finding.rule not in named]
    named |= {finding.rule for finding in others}
    normal = {rule: says for rule, says in by_rule(checkup.normal).items() if rule not in named}
    named |= set(normal)
    return [
        _top(run, checkup, width),
        [] if diagnosis.leading is None else full_card(diagnosis, width),
        _section("curves", _curves(run, width)),
        *_experiments(run, width, whole=True),
        *(table_lines(table, width) for table in evaluation_tables(Facts(run))),
        _section("also found", _findings(others, width)),
        _section("odd but normal", _pairs(normal.items(), width)),
        _section("clear", _clear(checkup, named, width)),
        _section("not examined", _unexamined(checkup, named, width)),
        _section(
            "time and memory", [line for each in sentences(run) for line in _item(each, width)]
        ),
        _section("steps read", _steps_read(run, width)),
        _section("not recorded", [line for note in run.meta.notes for line in _item(note, width)]),
        _footer(run, checkup, width),
    ]


def _top(run: Run, checkup: Checkup, width: int) -> list[Line]:
    """Return how the run went; where it did not end by itself, that too."""
    line = headline(run, checkup)
    lead = (("holter: ", ""), (f"{line.state}. ", "bold"))
    lines = hanging(line.numbers, width=width, lead=lead, indent=8)
    if (end := ending(run)) and exception_line(run) is None:  # else the first line has it
        lines += hanging(end, width=width, lead=((" " * 8, ""),), style="yellow")
    for failure in checkup.failures:
        lines += hanging(failure, width=width, lead=((" " * 8, ""),), style="yellow")
    if run.steps == 0:
        for note in run.meta.notes:
            lines += hanging(note, width=width, lead=((" " * 8, ""),))
    return lines


def _curves(run: Run, width: int) -> list[Line]:
    """Return a line for each of the main curves, all of one width."""
    names = [name for name, _ in sparklines(run, 0)][:_CURVES]
    column = min(max(map(len, names), default=0), width // 3)
    drawn = islice(sparklines(run, min(width - column - 4, 60)), _CURVES)
    return [((f"  {name[:column]:<{column}}  ", ""), (line, "cyan")) for name, line in drawn]


def _experiments(run: Run, width: int, *, whole: bool) -> list[list[Line]]:
    """Return the results of experiments; on the first screen only those of a single experiment."""
    tables = all_results(run)
    names = {table.experiment for table in tables}
    if not whole and (len(names) != 1 or len(run.events_of(ExperimentMade)) > 1):
        return []
    rows = None if whole else _MOST_ROWS
    return [table_lines(table, width, most_rows=rows) for table in tables]


def _advice(run: Run, checkup: Checkup, width: int) -> list[Line]:
    """Return what to run first although no rule reports anything; nothing in a run that learned."""
    if not checkup.advice or (
        run.meta.source is None and checkup.outcome.state is OutcomeState.LEARNED
    ):
        return []
    return hanging(checkup.advice, width=width, lead=(("next:    ", "dim"),))


def _details(run: Run, checkup: Checkup, width: int) -> list[Line]:
    """Return the last line of a report without findings: the command that shows everything."""
    hidden = []
    if checkup.normal:
        hidden.append(f"{len(checkup.normal)} odd but normal")
    if run.steps and run.meta.notes:
        hidden.append(f"{len(run.meta.notes)} not recorded")
    more = (f"({', '.join(hidden)})",) if hidden else ()
    return _unbroken("details: ", (_command(run), *more), width, between=" ")


def _cost_line(run: Run, checkup: Checkup, width: int) -> list[Line]:
    """Return steps, what was found, and the cost of watching, for a report without findings."""
    line = headline(run, checkup)
    parts = [count(run.steps, "step")] if run.steps else []
    found = ", ".join([*parts, *filter(None, (line.remark,))])
    spent = cost(run).says if run.steps else ""
    text = "; ".join(filter(None, (found, spent)))
    return hanging(text, width=width, lead=((" " * 8, ""),)) if text else []


def _more(run: Run, diagnosis: Diagnosis, width: int) -> list[Line]:
    assert diagnosis.leading is not None
    lines: list[Line] = []
    named = {finding.rule for finding in (diagnosis.leading, *diagnosis.explained)}
    others = [finding for finding in diagnosis.others if finding.rule not in named]
    if others:
        names: dict[str, str] = {}
        for finding in others:
            names.setdefault(finding.rule, _named(diagnosis, finding))
        found = f"found: {some(list(names.values()))}"
        lines += hanging(found, width=width, lead=(("also   ", "dim"),))
    lines += _unbroken(
        "more   ", (f"holter explain {diagnosis.leading.rule}", _command(run)), width
    )
    return [*lines, BLANK, ((f"{count(run.steps, 'step')} · {cost(run).says}", "dim"),)]


def _named(diagnosis: Diagnosis, finding: Finding) -> str:
    """Return the rule of a finding beside the leading one, with a severity that is higher."""
    worse = finding.severity > diagnosis.severity
    return f"{finding.rule} ({f'{finding.severity}'.upper()})" if worse else finding.rule


def _unbroken(label: str, parts: Sequence[str], width: int, *, between: str = " · ") -> list[Line]:
    """Return parts in a row after a label; a command is never broken, so that it can be copied."""
    rows: list[str] = []
    for part in parts:
        if rows and len(label) + len(rows[-1]) + len(between) + len(part) <= width:
            rows[-1] += f"{between}{part}"
        else:
            rows.append(part)
    indents = [label, *(" " * len(label) for _ in rows[1:])]
    return [((indent, "dim"), (row, "")) for indent, row in zip(indents, rows, strict=True)]


def _command(run: Run) -> str:
    """Return the command that shows everything about this run."""
    if run.path is None:
        return "holter check --all"
    rank = f" --rank {run.rank}" if len(run.ranks) > 1 else ""
    return f"holter check {run.path}{rank} --all"


def _findings(findings: Sequence[Finding], width: int) -> list[Line]:
    """Return findings by rule: the first with its severity, of the others what they say."""
    lines: list[Line] = []
    shown: set[str] = set()
    for finding in sorted(findings, key=lambda each: _first(findings, each.rule)):
        if finding.rule not in shown:
            severity = (f"  {f'{finding.severity}'.upper():<9}", COLOR[finding.severity])
            since = (f" · since step {finding.onset}", "dim")
            lines.append((severity, (tag(finding), "bold"), since))
        shown.add(finding.rule)
        for text in (finding.summary, *([f"fix: {finding.fix}"] if finding.fix else [])):
            lines += hanging(text, width=width, lead=((" " * 11, ""),))
    return lines


def _first(findings: Sequence[Finding], rule: str) -> int:
    return next(place for place, finding in enumerate(findings) if finding.rule == rule)


def _clear(checkup: Checkup, named: set[str], width: int) -> list[Line]:
    """Return the rules that found nothing with what was measured, the most severe first."""
    severity = {name: rule.severity for name, rule in all_rules().items()}
    measured = {rule: says for rule, says in clear_rules(checkup).items() if rule not in named}
    order = sorted(measured, key=lambda rule: -severity.get(rule, Severity.INFO))
    bare = [rule for rule in order if not measured[rule]]
    lines = _pairs(((rule, measured[rule]) for rule in order if measured[rule]), width)
    return [*lines, *(_item(", ".join(bare), width) if bare else [])]


def _unexamined(checkup: Checkup, named: set[str], width: int) -> list[Line]:
    """Return the rules that could not be applied, by reason."""
    reasons = by_rule(verdict for verdict in checkup.not_examined if verdict.rule not in named)
    rules: dict[str, list[str]] = {}
    for rule, because in reasons.items():
        rules.setdefault(because, []).append(rule)
    return [
        line
        for because, names in rules.items()
        for line in _item(f"{because}: {', '.join(names)}", width)
    ]


def _steps_read(run: Run, width: int) -> list[Line]:
    """Return how often signals were read: expensive ones are sampled."""
    total = f"{run.steps:,}"
    lines: list[Line] = []
    for read, names in steps_read(run):
        lead = ((f"  {read:>{len(total)},} of {total}  ", ""),)
        words = dict.fromkeys(in_words(CATALOGUE[name]) for name in names if name in CATALOGUE)
        lines += hanging(", ".join(words), width=width, lead=lead, indent=2 * len(total) + 8)
    return lines


def _pairs(pairs: Iterable[tuple[str, str]], width: int) -> list[Line]:
    """Return rule and sentence in two columns."""
    rows = list(pairs)
    column = max((len(rule) for rule, _ in rows), default=0) + 4
    lines: list[Line] = []
    for rule, text in rows:
        lines += hanging(text, width=width, lead=((f"  {rule}", "bold"),), indent=min(column, 40))
    return lines


def _footer(run: Run, checkup: Checkup, width: int) -> list[Line]:
    parts = [count(run.steps, "step"), count(len(checkup.findings), "finding"), tally(checkup)]
    lines = hanging(", ".join([*parts, cost(run).says]), width=width, style="dim")
    if run.path is not None:
        others = f" (rank {run.rank} of {len(run.ranks)})" if len(run.ranks) > 1 else ""
        lines.append(((f"run: {run.path}{others}", "dim"),))
    return lines


def _section(heading: str, lines: list[Line]) -> list[Line]:
    return [((heading, "bold"),), *lines] if lines else []


def _item(text: str, width: int) -> list[Line]:
    return hanging(text, width=width, lead=(("  ", ""),), hang=2)


def _joined(blocks: Iterable[list[Line]]) -> list[Line]:
    lines: list[Line] = []
    for block in filter(None, blocks):
        lines += [BLANK, *block] if lines else block
    return lines
