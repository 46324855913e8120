"""Registry: how a function becomes a reader."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from holter.scripts.reading.source.tree import Pattern, Source


@dataclass(frozen=True, slots=True)
class Reader:
    """A function that finds one kind of mistake in a source."""

    function: Callable[[Source], Iterator[Pattern]]

    def __call__(self, source: Source) -> Iterator[Pattern]:
        """Yield the patterns in a source."""
        return self.function(source)


def reads(function: Callable[[Source], Iterator[Pattern]]) -> Reader:
    """Make a function a reader: `read` calls it, in whatever module of the package it is."""
    return Reader(function)
