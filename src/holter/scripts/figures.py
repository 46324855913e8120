"""Figures: the numbers that a script prints, each with the words before it."""

import math
from collections.abc import Callable

from holter.imports.readers.text import numbers
from holter.record.events import FigurePrinted

_WORDS = 6  # before a number that make its name
_NAMES = 128  # that are told apart
_MOST = 128  # values of one name; beyond, every second one is dropped


class Figures:
    """Gathers figures of texts by their names, each with the step at which it was printed."""

    def __init__(self, steps: Callable[[], int]) -> None:
        self._steps = steps
        self._read: dict[str, list[tuple[int, float]]] = {}

    def hear(self, text: str) -> None:
        """Keep the figures of a text."""
        step = self._steps()
        for name, value in figures_in(text):
            read = self._read.get(name)
            if read is None:
                if len(self._read) == _NAMES:
                    continue
                read = self._read[name] = []
            read.append((step, value))
            if len(read) > _MOST:
                del read[1:-1:2]

    def series(self) -> list[FigurePrinted]:
        """Return the figures under each name, in the order in which the names came."""
        return [
            FigurePrinted(name, tuple(step for step, _ in read), tuple(value for _, value in read))
            for name, read in self._read.items()
        ]


def figures_in(text: str) -> list[tuple[str, float]]:
    """Return the numbers of a text that words stand before, with the last of those words."""
    return [
        (" ".join(word.strip("._-/").lower() for word in words[-_WORDS:]), value)
        for line in text.splitlines()
        for words, _, value in numbers(line)
        if math.isfinite(value)
    ]
