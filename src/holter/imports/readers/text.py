r"""What a training prints: `epoch 3 step 120 loss 0.53 val_loss 0.61 lr 1e-3`, in most spellings.

A number belongs to the words directly before it. A word for a split (`Test set: average loss 0.2`)
holds for the rest of its line.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from holter.imports.log import MOST_NAMES, Log, Row
from holter.imports.names import role_of
from holter.record.evaluations import is_split, split_of
from holter.record.signals import ACCURACY, VAL_ACCURACY

KIND = "text log"
FILES = ("*.log", "*.out")

_LONGEST_LINE = 1 << 14  # bytes; longer ones are no sentence of a training loop
_MOST_NUMBERS = 100  # in a line
_KEY_WORDS = 3  # that may name a number
_OFTEN = 3  # numbers after which an unknown word is a name
_NO_NAME = re.compile(r"\w\w?|about|after|and|for|from|last|over|than|the|top|took|was|with", re.I)
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_TOKEN = re.compile(
    # Digits are bounded and never given back: a long row of them takes no longer to refuse.
    r"(?P<number>(?<![\w.])[-+]?(?>\d{1,40}(?:\.\d{0,40})?+|\.\d{1,40})(?:[eE][-+]?\d{1,4})?+(?!\w)"
    r"|(?<!\w)[-+]?(?:nan|inf)\b)"
    r"(?:\s?/\s?(?P<of>\d{1,40})|\s?(?P<percent>%))?+"
    r"|(?P<word>[A-Za-z_][\w./@^-]*)|(?P<end>[,;|)\]}\t]|[-=]{2,})|(?P<other>[^\s\w])",
    re.IGNORECASE,
)
# What says more about a name, before its number: `mean return (last 20) 0.4`.
_ASIDE = re.compile(r"(?<=[A-Za-z_])\s?\([^()]{1,40}\)(?=\s?[:=]?\s{0,8}[-+.]?\d)")
_COUNTERS = {
    "step": "step",
    "steps": "step",
    "global_step": "step",
    "iter": "step",
    "iters": "step",
    "iteration": "step",
    "it": "step",
    "update": "step",
    "batch": "step",
    "epoch": "epoch",
    "epochs": "epoch",
    "ep": "epoch",
}


def recognises(head: bytes) -> bool:
    """Return whether the beginning of a file is text."""
    return b"\0" not in head and bool(head.strip())


def read(path: Path, log: Log) -> None:
    """Read the lines that name a loss, a rate or an accuracy, and a number for it."""
    epoch = None
    unknown: Counter[str] = Counter()
    with path.open("rb") as file:
        while line := file.readline(_LONGEST_LINE):
            text = _ANSI.sub("", line.decode("utf-8", "replace"))
            for part in text.split("\r"):  # a progress bar is rewritten in place
                row = _row(part, log, unknown)
                epoch = row.setdefault("epoch", epoch)
                if set(row) - {"step", "epoch"}:
                    log.add_row(row)
    for name, count in unknown.items():
        if count >= _OFTEN:
            log.ignore(name)


def _row(line: str, log: Log, unknown: Counter[str]) -> Row:
    """Return the readings of a line, with its step and epoch; count the words that name others."""
    row: Row = {}
    for words, split, token in _numbers(line):
        name = words[-1]
        if _assign(row, words, split, token, log) or _NO_NAME.fullmatch(name):
            continue
        if name in unknown or len(unknown) < MOST_NAMES:
            unknown[name] += 1
    return row


def numbers(line: str) -> Iterator[tuple[list[str], str, float]]:
    """Yield each number of a line with the words before it, and the split it belongs to.

    A count such as `372/400` is a share, and so is `93 %`.
    """
    for words, split, token in _numbers(line):
        whole = 100.0 if token["percent"] else float(token["of"] or 0)
        yield words, split, float(token["number"]) / (whole or 1)


def _numbers(line: str) -> Iterator[tuple[list[str], str, re.Match[str]]]:
    """Yield the numbers of a line: the words before, the last split that was named, the token."""
    words: list[str] = []
    split = ""
    count = 0
    for token in _TOKEN.finditer(_ASIDE.sub("", line)):
        if (word := token["word"]) is not None:
            words.append(word)
            if is_split(word):
                split = word
        elif token["number"] is not None and words:
            count += 1
            if count > _MOST_NUMBERS:
                break
            yield words, split, token
            words = []
        elif token["end"] is not None:
            words = []


def _assign(row: Row, words: list[str], split: str, token: re.Match[str], log: Log) -> bool:
    """Add a number under the longest of its names that stands for something, if there is one."""
    number = token["number"]
    counter = _COUNTERS.get(words[-1].lower().strip("._-/"))
    if counter is not None:
        row.setdefault(counter, number)
        return True
    for length in range(min(len(words), _KEY_WORDS), 0, -1):
        name = " ".join(words[-length:])
        if name in log.mapping:
            row.setdefault(name, number)
            return True
        role, name = role_of(name), name.lower()
        if role is not None:
            is_share = role.signal in (ACCURACY, VAL_ACCURACY) and float(token["of"] or 0) > 0
            value = float(number) / float(token["of"]) if is_share else number
            row.setdefault(
                name if split_of(name) or not split else f"{split.lower()} {name}", value
            )
            return True
    return False
