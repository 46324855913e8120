"""The report of a preflight: a table of checks, then the leading cause."""

from collections import Counter
from collections.abc import Iterable

from holter.diagnosis.checklist import CHECKS, Row, Status, fails, rows
from holter.diagnosis.differential import diagnose
from holter.diagnosis.engine import Checkup
from holter.record import Run
from holter.record.events import ExperimentMade, ExperimentsChosen
from holter.reports._card import brief_card, full_card
from holter.reports._facts import ending
from holter.reports._lines import BLANK, Line, hanging, painted
from holter.reports._numbers import count
from holter.reports.text import WIDTH

_COLOR = {
    Status.ERROR: "bold magenta",
    Status.FAIL: "bold red",
    Status.WARN: "bold yellow",
    Status.PASS: "green",
    Status.NOT_APPLICABLE: "dim",
}
_NAME = max(len(check.name) for check in CHECKS) + 2
_EVIDENCE = 3  # lines of evidence on the card


def render(
    run: Run, checkup: Checkup, *, width: int = WIDTH, color: bool = False, whole: bool = False
) -> str:
    """Return every check with its answer, then the leading cause with its evidence."""
    answered = rows(run, checkup)
    diagnosis = diagnose(checkup)
    lines: list[Line] = []
    for row in answered:
        lines += _line(row, width, whole=whole)
    lines += [BLANK, ((_tally(answered), "bold"), (_cost(run), "dim"))]
    failed = [row for row in answered if row.status in (Status.FAIL, Status.WARN)]
    if diagnosis.leading is not None and failed:
        # The word of the table, not the severity: one report speaks one language.
        told = (diagnosis.leading, *diagnosis.explained)
        status = Status.FAIL if any(map(fails, told)) else Status.WARN
        word = (status.value, _COLOR[status])
        brief = brief_card(diagnosis, width, evidence=_EVIDENCE, word=word)
        lines += [BLANK, *(full_card(diagnosis, width, word=word) if whole else brief)]
        more = f"holter explain {diagnosis.leading.rule}"
        lines += hanging(more, width=width, lead=(("more   ", "dim"),))
    if end := ending(run):
        lines += [BLANK, *hanging(end, width=width, style="yellow")]
    for note in run.meta.notes:
        lines += hanging(note, width=width, lead=(("note  ", "dim"),))
    if run.path is not None:
        lines += [BLANK, ((f"run: {run.path}", "dim"),)]
    return painted(lines, color=color)


def _line(row: Row, width: int, *, whole: bool) -> list[Line]:
    """Return status, name and question, and below the answer; of a pass only in the whole."""
    style = "dim" if row.status is Status.NOT_APPLICABLE else ""
    name = (f"{row.check.name:<{_NAME}}", style or "bold")
    lead = ((f"{row.status.value:<6}", _COLOR[row.status]), name)
    lines = hanging(row.check.question, width=width, lead=lead, style=style)
    if row.status is not Status.PASS or whole:
        lines += hanging(row.says, width=width, lead=((" " * (6 + _NAME), ""),), style="dim")
    return lines


def _tally(answered: Iterable[Row]) -> str:
    numbers = Counter(row.status for row in answered)
    words = {
        Status.ERROR: "with an internal error",
        Status.FAIL: "failed",
        Status.WARN: "to look at",
        Status.PASS: "passed",
        Status.NOT_APPLICABLE: "not applicable",
    }
    return ", ".join(
        f"{numbers[status]} {word}" for status, word in words.items() if numbers[status]
    )


def _cost(run: Run) -> str:
    made = run.events_of(ExperimentMade)
    seconds = sum(event.what.seconds for event in made)
    seconds += sum(event.what.seconds for event in run.events_of(ExperimentsChosen))
    return f"  {count(run.steps, 'step')} and {count(len(made), 'experiment')} in {seconds:.1f} s"
