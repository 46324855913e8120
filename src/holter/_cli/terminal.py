"""The terminal's capabilities, and writing a report to it or to a file."""

import functools
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from holter.record.errors import HolterError
from holter.record.notices import tell

if TYPE_CHECKING:
    from holter.diagnosis.engine import Checkup
    from holter.record import Run


FOR_PEOPLE = ("text", "checklist")  # reports that adapt to a terminal
WITH_READINGS = "json"  # the report that can hold the readings of evidence


def wants_color(stream: TextIO) -> bool:
    """Return whether to colour `stream`: NO_COLOR, then FORCE_COLOR, then whether it is a TTY."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def text_width(stream: TextIO) -> int:
    """Return the width for text: the terminal's columns up to 100, or 96 without a terminal."""
    if not stream.isatty():
        return 96
    return max(40, min(shutil.get_terminal_size().columns - 1, 100))


def write_report(
    run: "Run",
    checkup: "Checkup",
    *,
    report: str = "text",
    output: Path | None = None,
    stream: TextIO | None = None,
    whole: bool = False,
    readings: bool = False,
) -> None:
    """Render a checkup to the file `output`, else to `stream` or standard output.

    `whole` is for people, `readings` of the evidence for programs.
    """
    from holter import reports

    render: Callable[..., str] = reports.report(report)
    if report in FOR_PEOPLE:
        render = functools.partial(render, whole=whole)
    stream = sys.stdout if stream is None else stream
    if output is None and report == "html" and run.path is not None and stream.isatty():
        output = run.path / "report.html"
    if report == WITH_READINGS:
        render = functools.partial(render, readings=readings)
    if output is not None:
        try:
            output.write_text(render(run, checkup), encoding="utf-8")
        except OSError as error:
            raise HolterError(f"Cannot write {output}: {error.strerror or error}.") from error
        tell(f"report written to {output}")
        return
    if report in FOR_PEOPLE:
        render = functools.partial(render, width=text_width(stream), color=wants_color(stream))
    stream.write(render(run, checkup))
