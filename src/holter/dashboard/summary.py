"""A run in one row of a list: how it went, the cause, the curve of its loss."""

from dataclasses import dataclass, field

import numpy as np

from holter.diagnosis.differential import diagnose
from holter.diagnosis.engine import Checkup
from holter.diagnosis.facts.ending import exception_line
from holter.record import Run, Series
from holter.record.findings import Finding
from holter.reports._card import title
from holter.reports._facts import ending
from holter.reports._outcome import headline
from holter.reports.html._sampling import thinned

_POINTS = 120  # of the small curve
_EMPTY = Series(np.empty(0, np.int64), np.empty(0, np.float32))


@dataclass(frozen=True, slots=True)
class Summary:
    """A run in one row."""

    status: str = ""  # "running", "finished", "failed", "interrupted"
    steps: int = 0
    started: str = ""  # ISO 8601
    duration: float | None = None  # seconds
    command: tuple[str, ...] = ()
    state: str = ""  # how it went, in a word or two
    numbers: str = ""  # the measurement behind it
    bad: bool = False
    ended: str = ""  # how the training ended, if it did not finish
    remark: str = ""  # what it means that nothing was found
    cause: str = ""  # the condition of the leading rule
    leading: Finding | None = None
    known: bool = False  # whether the leading finding is a cause
    curve: Series = field(default_factory=lambda: _EMPTY)
    error: str = ""  # why the run cannot be read


def summary_of(run: Run, checkup: Checkup) -> Summary:
    """Return the row of a run."""
    line, diagnosis, environment = headline(run, checkup), diagnose(checkup), run.meta.environment
    leading = diagnosis.leading
    cause = "" if leading is None else title(leading) if diagnosis.known else "Cause unknown"
    return Summary(
        status=run.meta.status or "",
        steps=run.steps,
        started=environment.started or "",
        duration=run.meta.duration,
        command=tuple(environment.command),
        state=line.state,
        numbers=line.numbers,
        bad=checkup.outcome.bad,
        ended=ending(run) if exception_line(run) is None else "",
        remark=line.remark,
        cause=cause,
        leading=leading,
        known=diagnosis.known,
        curve=_curve(run, checkup),
    )


def _curve(run: Run, checkup: Checkup) -> Series:
    """Return the loss that the outcome is read from, with few points; spikes are kept."""
    outcome = checkup.outcome
    if outcome.signal not in run or outcome.owner not in run[outcome.signal]:
        return _EMPTY
    curve = thinned(run[outcome.signal][outcome.owner], most=_POINTS)
    return Series(curve.steps, curve.values)
