"""Figures: the numbers that a script prints, each with the words before it."""

import re
from collections.abc import Callable

from holter.record.events import FigurePrinted

_TOKEN = re.compile(
    r"(?P<word>[A-Za-z_][\w@/²^-]*)"
    r"|(?P<number>[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)(?:\s?(?P<percent>%)|/(?P<of>\d+))?"
    r"|(?P<other>[^\s:='\"])"
)
_WORDS = 4  # before a number that make its name
_NAMES = 64  # that are told apart
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
        """Return the figures under each name, of names that came more than once."""
        return [
            FigurePrinted(name, tuple(step for step, _ in read), tuple(value for _, value in read))
            for name, read in self._read.items()
            if len(read) > 1
        ]


def figures_in(text: str) -> list[tuple[str, float]]:
    """Return the numbers of a line that words stand before, with those words.

    A bracket, a comma or a number ends the words; a colon or an equals sign does not. `30/40` and
    `75 %` are 0.75.
    """
    found: list[tuple[str, float]] = []
    words: list[str] = []
    for token in _TOKEN.finditer(text):
        if token["word"]:
            words.append(token["word"].lower())
        else:
            if token["number"] and words:
                whole = 100.0 if token["percent"] else float(token["of"] or 1)
                value = float(token["number"]) / (whole or 1)
                found.append((" ".join(words[-_WORDS:]), value))
            words = []
    return found
