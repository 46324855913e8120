"""Printing: tells listeners what a script prints and logs. It changes nothing of it."""

import builtins
import logging
import sys
import time
from collections.abc import Callable
from numbers import Real
from typing import Any

from torch import Tensor

from holter.watching.taps import Tap

_LONGEST = 1000  # characters of a text that is read
_ENTRIES = 64  # of a mapping that are read
_SECONDS = 0.25  # that all texts together may take

Hearer = Callable[[str], None]


class Printing:
    """Listens to `print` and to loggers until it is stopped."""

    def __init__(self, *hearers: Hearer) -> None:
        self._hearers = list(hearers)
        self._left = _SECONDS
        self._taps = [
            Tap(builtins, "print", self._around_print),
            Tap(logging.Logger, "handle", self._around_handle),
        ]

    def stop(self) -> None:
        """Listen no more."""
        for tap in self._taps:
            tap.remove()

    def _around_print(self, original: Callable[..., None]) -> Callable[..., None]:
        def printed(*args: Any, **kwargs: Any) -> None:
            original(*args, **kwargs)
            file = kwargs.get("file")
            if file is None or file is sys.stdout or file is sys.stderr:
                self._tell(lambda: " ".join(map(_text, args)))

        return printed

    def _around_handle(self, original: Callable[..., None]) -> Callable[..., None]:
        def handle(logger: logging.Logger, record: logging.LogRecord) -> None:
            original(logger, record)
            self._tell(record.getMessage)

        return handle

    def _tell(self, text_of: Callable[[], str]) -> None:
        """Pass a text on; nothing may go wrong in a call of the script."""
        if self._left <= 0:
            return
        began = time.perf_counter()
        try:
            text = text_of()
        except Exception:  # objects of the script have texts of their own
            return
        if len(text) <= _LONGEST:
            for hear in tuple(self._hearers):
                try:
                    hear(text)
                except Exception:
                    self._hearers.remove(hear)
        self._left -= time.perf_counter() - began


def _text(value: Any) -> str:
    """The text of a value that costs little; a device is not waited for."""
    if isinstance(value, str | Real):
        return str(value)
    if isinstance(value, Tensor) and value.is_cpu and value.numel() == 1:
        return str(value.item())
    if isinstance(value, dict):
        return " ".join(f"{name} {_text(each)}" for name, each in list(value.items())[:_ENTRIES])
    return "|"
