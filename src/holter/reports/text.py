"""The report an engineer acts on: one screen, the verdict first."""

import pkgutil
from collections.abc import Iterable, Sequence
from importlib import import_module

from holter.diagnosis.differential import Diagnosis, diagnose
from holter.diagnosis.engine import Checkup, all_rules
from holter.record import Run
from holter.record.findings import Confidence, Evidence, Finding, NotExamined, Severity
from holter.record.signals import CATALOGUE, Per
from holter.reports import experiments as _trial_reports
from holter.reports._facts import (
    by_reason,
    by_rule,
    clear_rules,
    cost,
    count,
    ending,
    step_range,
    tally,
    without_findings,
)
from holter.reports._lines import BLANK, Line, hanging, painted

WIDTH = 96
_COLUMN = 16  # where the text of a card begins, after its labels
_MOST = 6  # items of one kind on the screen; `whole` and the json report have all
_COLOR = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.INFO: "bold blue"}


def render(
    run: Run, checkup: Checkup, *, width: int = WIDTH, color: bool = False, whole: bool = False
) -> str:
    """The verdict with its evidence, then all else that is worth knowing of the run.

    It fits a screen: of long lists the beginning is shown, unless the `whole` is asked for.
    """
    diagnosis = diagnose(checkup)
    leading = diagnosis.leading
    blocks = [
        _nothing(run, checkup, width)
        if leading is None
        else card(leading, diagnosis, width, whole=whole),
        hanging(ending(run), width=width, style="yellow") if ending(run) else [],
        *_trials(run, width),
        _section("also found", _each_on_a_line(diagnosis.others, width)),
        _section("normal", _pairs(((n.rule, n.summary) for n in checkup.normal), width)),
        _section("clear", _clear(checkup, width, whole=whole)) if leading is None or whole else [],
        _section("not examined", _unexamined(checkup, diagnosis, width, whole=whole))
        if run.steps
        else [],
        _section("could not see", [line for note in run.meta.notes for line in _item(note, width)]),
        _footer(run, checkup, width),
    ]
    lines: list[Line] = []
    for block in filter(None, blocks):
        lines += [BLANK, *block] if lines else block
    return painted(lines, color=color)


def card(finding: Finding, diagnosis: Diagnosis, width: int, *, whole: bool) -> list[Line]:
    """A finding with its evidence, what it explains, what was ruled out, and what to do."""
    unknown = "" if diagnosis.known else "  cause unknown"
    sure = f"({finding.confidence}, {finding.level}, since step {finding.onset})"
    lines: list[Line] = [
        (
            (f"{finding.severity}".upper(), _COLOR[finding.severity]),
            (f"  {finding.rule}", "bold"),
            (unknown, "bold magenta"),
            (f"  {_preview(finding)}".rstrip(), "magenta"),
            (f"  {sure}", ""),
        ),
        *hanging(finding.summary, width=width, lead=(("  ", ""),)),
        BLANK,
    ]
    causes = by_rule(diagnosis.ruled_out), by_rule(_open_causes(diagnosis, whole))
    experiments = list(diagnosis.experiments)
    lines += _labelled("evidence", _evidence(finding.evidence, width), width)
    lines += _labelled(
        "explains",
        _capped(
            [f"{each.rule}: {_preview(each)}{each.summary}" for each in diagnosis.explained], whole
        ),
        width,
    )
    for label, reasons in zip(("ruled out", "not examined"), causes, strict=True):
        lines += _labelled(
            label, _capped([f"{rule}: {why}" for rule, why in reasons.items()], whole), width
        )
    lines += _labelled("confirm" if diagnosis.known else "would tell", experiments, width)
    lines += _labelled(
        "fix" if diagnosis.known else "meanwhile", [finding.fix] if finding.fix else [], width
    )
    lines += _labelled("more", [f"holter explain {finding.rule}"], width)
    return lines


def _trials(run: Run, width: int) -> list[list[Line]]:
    """What experiments measured, of those whose readings are in the run."""
    if not any(signal.per is Per.TRIAL and signal in run for signal in CATALOGUE.values()):
        return []
    names = sorted(each.name for each in pkgutil.iter_modules(_trial_reports.__path__))
    modules = [import_module(f"{_trial_reports.__name__}.{name}") for name in names]
    return [module.lines(run, width) for module in modules]


def _open_causes(diagnosis: Diagnosis, whole: bool) -> list[NotExamined]:
    """Causes that were not examined, where that leaves a doubt."""
    if diagnosis.leading is None or diagnosis.leading.confidence is Confidence.CERTAIN:
        return [*diagnosis.unexamined] if whole else []
    return [each for each in diagnosis.unexamined if whole or not each.lacks]


def _evidence(evidence: Sequence[Evidence], width: int) -> list[str | Line]:
    """Signal, owner and steps in columns, with what they say beside them or, if long, below."""
    cells = [(each.signal.name, each.owner, step_range(each.steps)) for each in evidence]
    widths = [max(len(cell) for cell in column) for column in zip(*cells, strict=True)]
    sources = [
        "  ".join(cell.ljust(size) for cell, size in zip(row, widths, strict=True) if size)
        for row in cells
    ]
    room = width - _COLUMN - len(sources[0]) - 3 if sources else 0
    if all(len(each.says) <= room for each in evidence):
        return [
            ((source, "cyan"), (f"   {each.says}", ""))
            for source, each in zip(sources, evidence, strict=True)
        ]
    lines: list[str | Line] = []
    for source, each in zip(sources, evidence, strict=True):
        lines += [((source, "cyan"),), f"  {each.says}"]
    return lines


def _labelled(label: str, items: Sequence[str | Line], width: int) -> list[Line]:
    lines: list[Line] = []
    for number, item in enumerate(items):
        lead: Line = (("  ", ""), ((label if number == 0 else "").ljust(_COLUMN - 2), "dim"))
        if isinstance(item, str):
            extra = len(item) - len(item.lstrip())
            lines += hanging(
                item.lstrip(),
                width=width,
                lead=(*lead, (" " * extra, "")),
                hang=2 if len(items) > 1 and not extra else 0,
            )
        else:
            lines.append((*lead, *item))
    return lines


def _nothing(run: Run, checkup: Checkup, width: int) -> list[Line]:
    heading, measure = without_findings(run, checkup)
    return hanging(measure, width=width, lead=((heading, "bold"), ("  ", "")))


def _each_on_a_line(findings: Sequence[Finding], width: int) -> list[Line]:
    lines: list[Line] = []
    for each in findings[:_MOST]:
        severity = (f"  {f'{each.severity}'.upper():<9}", _COLOR[each.severity])
        lead = (severity, (each.rule, "bold"), ("  ", ""), (_preview(each), "magenta"))
        text = f"{each.summary} ({each.confidence}, since step {each.onset})"
        lines += hanging(text, width=width, lead=lead, indent=11)
    return lines + [line for text in _more(findings) for line in _item(text, width)]


def _clear(checkup: Checkup, width: int, *, whole: bool) -> list[Line]:
    """Rules that found nothing with what was measured, those that guard against the worst first."""
    severity = {name: each.severity for name, each in all_rules().items()}
    measured = clear_rules(checkup)
    order = sorted(measured, key=lambda rule: -severity.get(rule, Severity.INFO))
    told = [(rule, measured[rule]) for rule in order if measured[rule]]
    shown = told if whole else told[: 2 * _MOST]
    rest = [rule for rule in order if rule not in {each for each, _ in shown}]
    return [
        *_pairs(shown, width),
        *(_item(_some(rest, whole=whole), width) if rest else []),
    ]


def _pairs(pairs: Iterable[tuple[str, str]], width: int) -> list[Line]:
    """Rule and sentence, in two columns."""
    rows = list(pairs)
    column = max((len(rule) for rule, _ in rows), default=0) + 4
    lines: list[Line] = []
    for rule, text in rows:
        lines += hanging(text, width=width, lead=((f"  {rule}", "bold"),), indent=min(column, 40))
    return lines


def _unexamined(checkup: Checkup, diagnosis: Diagnosis, width: int, *, whole: bool) -> list[Line]:
    """The rules that could not be applied, by reason; what was not recorded is one reason."""
    told = _open_causes(diagnosis, whole)  # on the card
    rest = [each for each in checkup.not_examined if each not in told]
    reasons = by_reason(each for each in rest if whole or not each.lacks)
    items = [f"{because}: {_some(rules, whole=whole)}" for because, rules in reasons.items()]
    lacking = [each.rule for each in rest if each.lacks]
    lines = [line for text in _capped(items, whole) for line in _item(text, width)]
    if lacking and not whole:
        lines += _item(f"nothing to go by in this run: {_some(lacking, whole=whole)}", width)
        lines += _item("`holter check RUN --all` lists everything", width)
    return lines


def _footer(run: Run, checkup: Checkup, width: int) -> list[Line]:
    said = []
    if checkup.findings:
        said.append(f"{count(run.steps, 'step')}, {count(len(checkup.findings), 'finding')}")
        said.append(tally(checkup))
    spent = cost(run)
    if spent.share is not None:
        brief = (
            f" ({spent.seconds:.1f} s; the first 2 s are free)"
            if spent.share > 0.02 and spent.seconds
            else ""
        )
        said.append(f"watching cost {100 * spent.share:.2g} % of the time{brief}")
    elif spent.seconds is not None:
        said.append(f"watching took {spent.seconds:.2g} s")
    else:
        said.append("cost of watching not measured")
    lines = hanging(", ".join(said), width=width, style="dim")
    if run.path is not None:
        others = f" (rank {run.rank} of {len(run.ranks)})" if len(run.ranks) > 1 else ""
        lines.append(((f"run: {run.path}{others}", "dim"),))
    return lines


def _section(title: str, lines: list[Line]) -> list[Line]:
    return [((title, "bold"),), *lines] if lines else []


def _item(text: str, width: int) -> list[Line]:
    return hanging(text, width=width, lead=(("  ", ""),), hang=2)


def _capped(items: list[str], whole: bool) -> list[str]:
    return items if whole else items[:_MOST] + _more(items)


def _some(names: Sequence[str], *, whole: bool) -> str:
    """Names in a row; of many the first and how many more."""
    shown = names if whole or len(names) <= _MOST + 1 else names[:_MOST]
    more = f" and {len(names) - len(shown)} more" if len(shown) < len(names) else ""
    return ", ".join(shown) + more


def _more(items: Sequence[object]) -> list[str]:
    return [f"and {len(items) - _MOST} more"] if len(items) > _MOST else []


def _preview(finding: Finding) -> str:
    return "preview  " if finding.preview else ""
