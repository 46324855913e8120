"""Files: the source of a script and of the modules beside it that it has imported."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path

from holter.record.events import CodePattern, CodeRead, Occurrence
from holter.scripts.reading.reader import read, readers
from holter.scripts.running import Script

_MOST_FILES = 40
_MOST_BYTES = 400_000  # of a file
_LONGEST = 0.3  # seconds after which no further file is begun
_OTHERS = ("site-packages", "dist-packages", ".venv", "lib/python")


def events(script: Script) -> Iterator[Occurrence]:
    """Yield what was read, and each pattern that was found in it; then raise what went wrong."""
    failures: list[Exception] = []
    lines, files, found = 0, 0, []
    readers()  # imported before the clock starts
    began = time.perf_counter()
    for path, text in _sources(script):
        if time.perf_counter() - began > _LONGEST:
            break
        files, lines = files + 1, lines + text.count("\n")
        for kind, line, code, subject in read(text, failures=failures):
            found.append(CodePattern(kind, f"{path.name}:{line}", code, subject))
    if files:
        yield CodeRead(files, lines)
    yield from found
    if failures:
        raise failures[0]


def _sources(script: Script) -> Iterator[tuple[Path, str]]:
    yield Path(str(script.main.__file__)), script.source.decode("utf-8", "replace")
    folder, count = Path(script.folder).resolve(), 1
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if module is script.main or not file or not str(file).endswith(".py"):
            continue
        path = Path(file)
        if not path.is_relative_to(folder) or any(part in path.as_posix() for part in _OTHERS):
            continue
        if count >= _MOST_FILES or path.stat().st_size > _MOST_BYTES:
            continue
        count += 1
        yield path, path.read_text(encoding="utf-8", errors="replace")
