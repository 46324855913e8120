"""Imports: logs of other tools as runs.

What belongs here reads a log, finds out which name is which signal, and concludes nothing. No log
is executed, and memory is bounded. Nothing imports torch, or the tools that wrote the logs.

- `readers/`: one kind of log a file. `finding`: which reader a path takes.
- `names`: which signal a name stands for. `log`: readings while they are read.
- `assembling`: the run that they make.
"""

from collections.abc import Mapping
from pathlib import Path

from holter.imports.assembling import assembled, saved, summary
from holter.imports.finding import any_log, files_of, reader_of
from holter.imports.log import Log
from holter.imports.names import parse_mapping
from holter.record import Run
from holter.record.errors import HolterError
from holter.record.signals import Signal

__all__ = ["holds_log", "import_log", "open_run", "parse_mapping", "saved", "summary"]


def import_log(path: str | Path, mapping: Mapping[str, Signal] | None = None) -> Run:
    """Return the run that a log tells of; `mapping` gives the signal of names in the log.

    The kind of the log is recognised by its content. What can go wrong with it is one sentence.
    """
    place = Path(path)
    log = Log(mapping or {})
    kind = ""
    for file in files_of(place):
        reader = reader_of(file)
        if reader is None:
            raise HolterError(_unknown(file))
        reader.read(file, log)
        kind = reader.KIND
    return assembled(log, place, kind)


def open_run(path: str | Path) -> Run:
    """Return a recorded run by its folder, or the run that a log tells of."""
    return import_log(path) if holds_log(Path(path)) else Run.load(path)


def holds_log(path: Path) -> bool:
    """Return whether a path is a log or a folder with logs, rather than a run or runs of holter."""
    if path.is_dir():
        return not any(path.glob("rank-*")) and not any(path.glob("*/rank-*")) and any_log(path)
    return path.exists()


def _unknown(file: Path) -> str:
    if not file.exists():
        return f"There is no file or folder {file}."
    if not file.is_file():
        return f"{file} is neither a file nor a folder."
    return f"{file} is no log that can be imported: it is empty, or of an unknown format."
