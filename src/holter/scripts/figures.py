"""Figures: the numbers that a script prints, each with the words before it."""

import builtins
import logging
import re
import sys
import time
from collections.abc import Callable
from numbers import Real
from typing import Any

from torch import Tensor

from holter.record.events import FigurePrinted
from holter.watching.taps import Tap

_TOKEN = re.compile(
    r"(?P<word>[A-Za-z_][\w@/²^-]*)"
    r"|(?P<number>[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)(?:\s?(?P<percent>%)|/(?P<of>\d+))?"
    r"|(?P<other>[^\s:='\"])"
)
_LONGEST = 500  # characters of a line that is read
_WORDS = 4  # before a number that make its name
_NAMES = 64  # that are told apart
_MOST = 128  # values of one name; beyond, every second one is dropped
_SECONDS = 0.25  # that all lines together may take


class Figures:
    """Reads what `print` and loggers are given while a script runs. It changes nothing of it."""

    def __init__(self, steps: Callable[[], int]) -> None:
        self._steps = steps
        self._read: dict[str, list[tuple[int, float]]] = {}
        self._left = _SECONDS
        self._taps = [
            Tap(builtins, "print", self._around_print),
            Tap(logging.Logger, "handle", self._around_handle),
        ]

    def take(self) -> list[FigurePrinted]:
        """Stop reading, and return the series of figures under each name."""
        for tap in self._taps:
            tap.remove()
        return [
            FigurePrinted(name, tuple(step for step, _ in read), tuple(value for _, value in read))
            for name, read in self._read.items()
            if len(read) > 1
        ]

    def _around_print(self, original: Callable[..., None]) -> Callable[..., None]:
        def printed(*args: Any, **kwargs: Any) -> None:
            original(*args, **kwargs)
            file = kwargs.get("file")
            if file is None or file is sys.stdout or file is sys.stderr:
                self._listen(lambda: " ".join(map(_text, args)))

        return printed

    def _around_handle(self, original: Callable[..., None]) -> Callable[..., None]:
        def handle(logger: logging.Logger, record: logging.LogRecord) -> None:
            original(logger, record)
            self._listen(record.getMessage)

        return handle

    def _listen(self, text_of: Callable[[], str]) -> None:
        if self._left <= 0:
            return
        began = time.perf_counter()
        try:
            self._hear(text_of())
        except Exception:  # of a class of the script: its figures are not read
            self._left = 0.0
        self._left -= time.perf_counter() - began

    def _hear(self, text: str) -> None:
        if len(text) > _LONGEST:
            return
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


def _text(value: Any) -> str:
    """The text of a value that costs little; a device is not waited for."""
    if isinstance(value, str | Real):
        return str(value)
    if isinstance(value, Tensor) and value.is_cpu and value.numel() == 1:
        return str(value.item())
    if isinstance(value, dict):
        return " ".join(f"{name} {_text(each)}" for name, each in list(value.items())[:_NAMES])
    return "|"


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
