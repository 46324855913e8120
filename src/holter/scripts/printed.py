"""Metrics of held-out data that a script prints or logs as text.

Only numbers under the name of a metric are kept, in lines that name a split that is held out. A
number that follows the name of the split alone is taken as a loss.
"""

import builtins
import logging
import numbers
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

from holter.imports.readers.text import numbers as numbers_of
from holter.record.evaluations import PRINTED, is_split, split_of
from holter.watching.taps import Tap

_HELD_OUT = re.compile(r"val|dev|test|eval|hold", re.IGNORECASE)
_LONGEST = 1000  # characters of a line
_METRIC = re.compile(
    r"(balanced_)?acc(uracy)?|(macro_|weighted_|micro_)?f1(_?score)?|(roc_?)?auc|auroc|bacc"
    r"|average_precision|r2|rmse|mse|mae|(error|err)(_rate)?|loss"
)
_PARTS = re.compile(r"[A-Z]?[a-z]+[0-9]?|[A-Z]+(?![a-z])[0-9]?")
_NEUTRAL = ("set", "data", "split", "loader", "average", "avg", "mean", "token", "sample")

Log = Callable[[dict[str, float]], None]


def tap_printing(log: Log) -> list[Tap]:
    """Have metrics of held-out data logged when the script prints them."""

    def printing(original: Callable[..., None]) -> Callable[..., None]:
        def printed(*args: Any, **kwargs: Any) -> None:
            original(*args, **kwargs)
            if kwargs.get("file") in (None, sys.stdout, sys.stderr):
                _note(lambda: " ".join(map(_text, args)), log)

        return printed

    def handling(original: Callable[..., None]) -> Callable[..., None]:
        def handled(self: logging.Logger, record: logging.LogRecord) -> None:
            original(self, record)
            _note(record.getMessage, log)

        return handled

    return [Tap(builtins, "print", printing), Tap(logging.Logger, "handle", handling)]


def _note(text: Callable[[], str], log: Log) -> None:
    """Log what is found in a text; nothing may go wrong in a call of the script."""
    try:
        made = text()
        if len(made) <= _LONGEST and _HELD_OUT.search(made):
            found = dict(metrics(made))
            if found:
                log(found)
    except Exception:  # objects of the script have texts of their own
        return


def _text(part: object) -> str:
    """Return what is printed of a text or of a single number; a separator for anything else."""
    if isinstance(part, str):
        return part
    if isinstance(part, numbers.Number) or getattr(part, "ndim", None) == 0:
        return repr(float(part))  # type: ignore[arg-type]
    return ";"


def metrics(text: str) -> Iterator[tuple[str, float]]:
    """Yield the metrics of held-out data that a text names, each with its value."""
    for line in text.splitlines():
        for words, split, value in numbers_of(line):
            parts = [part.lower() for word in words for part in _PARTS.findall(word)]
            own = split_of(" ".join(words)) or split_of(split)
            rest = [part for part in parts if not is_split(part)]
            name = "_".join(part for part in rest if part not in _NEUTRAL) if rest else "loss"
            if own in ("validation", "test") and _METRIC.fullmatch(name):
                yield f"{PRINTED}{'test' if own == 'test' else 'val'}_{name}", value
