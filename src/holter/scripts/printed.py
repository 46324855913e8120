"""Metrics of held-out data that a script prints or logs as text.

Only numbers under the name of a metric are kept, in lines that name a split that is held out. A
number that follows the name of the split alone is taken as a loss.
"""

import re
from collections.abc import Callable, Iterator

from holter.imports.readers.text import numbers as numbers_of
from holter.record.evaluations import PRINTED, is_split, split_of

_HELD_OUT = re.compile(r"val|dev|test|eval|hold", re.IGNORECASE)
_METRIC = re.compile(
    r"(balanced_)?acc(uracy)?|(macro_|weighted_|micro_)?f1(_?score)?|(roc_?)?auc|auroc|bacc"
    r"|average_precision|r2|rmse|mse|mae|(error|err)(_rate)?|loss"
)
_PARTS = re.compile(r"[A-Z]?[a-z]+[0-9]?|[A-Z]+(?![a-z])[0-9]?")
_NEUTRAL = ("set", "data", "split", "loader", "average", "avg", "mean", "token", "sample")

Log = Callable[[dict[str, float]], None]


def logging_metrics(log: Log) -> Callable[[str], None]:
    """Return what hears texts and logs the metrics of held-out data in them."""

    def hear(text: str) -> None:
        if _HELD_OUT.search(text):
            found = dict(metrics(text))
            if found:
                log(found)

    return hear


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
