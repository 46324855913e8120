"""The kinds of patterns in a source that a test writes."""

import re
from textwrap import dedent
from types import ModuleType

from holter.scripts.reading import read
from holter.scripts.reading.source.registry import Reader
from holter.scripts.reading.source.tree import Source

_DEFINED = re.compile(r"^def (\w+)", re.M)


def kinds(text: str) -> set[str]:
    """Return the kinds in a source whose functions are used."""
    text = dedent(text)
    found = read(text + f"\nused = [{', '.join(_DEFINED.findall(text))}]")
    return {each.kind for each in found}


def kinds_by(text: str, *modules: ModuleType) -> set[str]:
    """Return the kinds that the readers of some modules find in a source."""
    source = Source(dedent(text))
    readers = [value for module in modules for value in vars(module).values()
               if isinstance(value, Reader)
               and value.function.__module__ == module.__name__]  # fmt: skip
    return {pattern.kind for reader in readers for pattern in reader(source)}
