"""What the terminal can show, and how a report gets there or into a file."""

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


FOR_PEOPLE = ("text", "checklist")  # reports that a terminal is there for


def wants_color(stream: TextIO) -> bool:
    """Whether to style what is written to `stream`: NO_COLOR, FORCE_COLOR, then what it is."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def text_width(stream: TextIO) -> int:
    """Columns to write in: those of the terminal up to 100, 96 where there is none."""
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
) -> None:
    """Render a checkup to the file `output`, else to `stream` or standard output."""
    from holter import reports

    render: Callable[..., str] = reports.report(report)
    if report in FOR_PEOPLE:
        render = functools.partial(render, whole=whole)
    if output is not None:
        try:
            output.write_text(render(run, checkup), encoding="utf-8")
        except OSError as error:
            raise HolterError(f"Cannot write {output}: {error.strerror or error}.") from error
        tell(f"report written to {output}")
        return
    stream = sys.stdout if stream is None else stream
    if report in FOR_PEOPLE:
        render = functools.partial(render, width=text_width(stream), color=wants_color(stream))
    stream.write(render(run, checkup))
