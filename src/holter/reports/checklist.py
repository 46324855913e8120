"""The report of a preflight: a table of checks, then the one cause to look at first."""

from collections import Counter
from collections.abc import Iterable

from holter.diagnosis.checklist import Row, Status, rows
from holter.diagnosis.differential import diagnose
from holter.diagnosis.engine import Checkup
from holter.record import Run
from holter.record.events import ExperimentMade
from holter.reports._facts import count, ending
from holter.reports._lines import BLANK, Line, hanging, painted
from holter.reports.text import WIDTH, card

_COLOR = {
    Status.FAIL: "bold red",
    Status.WARN: "bold yellow",
    Status.PASS: "green",
    Status.NOT_APPLICABLE: "dim",
}
_MOST = 160  # characters of an answer; the card and the json report have all of it


def render(
    run: Run, checkup: Checkup, *, width: int = WIDTH, color: bool = False, whole: bool = False
) -> str:
    """Every check with what was measured, then the leading cause with its evidence."""
    answered = rows(run, checkup)
    leading = diagnose(checkup).leading
    lines: list[Line] = []
    for row in answered:
        lines += _line(row, width, whole=whole)
    lines += [BLANK, ((_tally(answered), "bold"), (_cost(run), "dim"))]
    failed = [row for row in answered if row.status in (Status.FAIL, Status.WARN)]
    if leading is not None and failed:
        lines += [BLANK, *card(leading, diagnose(checkup), width, whole=whole)]
    if said := ending(run):
        lines += [BLANK, *hanging(said, width=width, style="yellow")]
    for note in run.meta.notes:
        lines += hanging(note, width=width, lead=(("note  ", "dim"),))
    if run.path is not None:
        lines += [BLANK, ((f"run: {run.path}", "dim"),)]
    return painted(lines, color=color)


def _line(row: Row, width: int, *, whole: bool) -> list[Line]:
    lead = ((f"{row.status.value:<5}", _COLOR[row.status]), (f"{row.check.name:<21} ", "bold"))
    says = row.says
    if not whole and len(says) > _MOST:
        says = says[: _MOST - 3].rstrip() + "..."
    style = "dim" if row.status is Status.NOT_APPLICABLE else ""
    return hanging(says, width=width, lead=lead, style=style)


def _tally(answered: Iterable[Row]) -> str:
    numbers = Counter(row.status for row in answered)
    words = {
        Status.FAIL: "failed",
        Status.WARN: "to look at",
        Status.PASS: "passed",
        Status.NOT_APPLICABLE: "not applicable",
    }
    said = [f"{numbers[status]} {word}" for status, word in words.items() if numbers[status]]
    return ", ".join(said)


def _cost(run: Run) -> str:
    made = run.events_of(ExperimentMade)
    seconds = sum(event.what.seconds for event in made)
    return f"  {count(run.steps, 'step')} and {count(len(made), 'experiment')} in {seconds:.1f} s"
