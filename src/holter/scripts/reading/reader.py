"""Read: all patterns in the source of a file."""

import pkgutil
from functools import cache
from importlib import import_module

from holter.scripts.reading.source.registry import Reader
from holter.scripts.reading.source.tree import Pattern, Source

_PACKAGE = __name__.rpartition(".")[0]


@cache
def readers() -> tuple[Reader, ...]:
    """Return every reader of this package; its modules are imported the first time."""
    found: dict[Reader, None] = {}  # a module may import the reader of another one
    path = import_module(_PACKAGE).__path__
    for info in pkgutil.walk_packages(path, f"{_PACKAGE}."):
        module = import_module(info.name)
        found |= dict.fromkeys(each for each in vars(module).values() if isinstance(each, Reader))
    return tuple(found)


def read(text: str, *, failures: list[Exception] | None = None) -> list[Pattern]:
    """Return the patterns in a source, in the order of their lines; none if it does not parse.

    A reader that fails raises, or with `failures` leaves its error there beside what others find.
    """
    try:
        source = Source(text)
    except (SyntaxError, ValueError, RecursionError):
        return []
    found: set[Pattern] = set()
    for reader in readers():
        try:
            found.update(reader(source))
        except Exception as error:
            if failures is None:
                raise
            failures.append(error)
    # A function that nothing calls is itself a pattern; what it holds is none.
    found = {pattern for pattern in found if pattern.kind == "unused helper"
             or not source.is_optional(pattern.line)}  # fmt: skip
    return sorted(found, key=lambda pattern: (pattern.line, *pattern))
