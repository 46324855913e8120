"""Tables: `metrics.csv` of Lightning, CSVLogger of Keras, exports of W&B and TensorBoard."""

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from holter.imports.log import Log, number_of

KIND = "CSV table"
FILES = ("*metrics*.csv", "*log*.csv", "*history*.csv", "results.csv")

_LONGEST_LINE = 1 << 20  # characters
_MOST_COLUMNS = 10_000
_RUN = re.compile(r"^.* - (?=\S+$)")  # of an export of W&B: `run name - train/loss`
_BOUNDS = ("__MIN", "__MAX")  # columns beside each column of such an export


def recognises(head: bytes) -> bool:
    """Return whether the first line is a row of names and the second a row of values."""
    lines = head.decode("utf-8-sig", "replace").split("\n", 2)
    if len(lines) < 2:
        return False
    delimiter = _delimiter(lines[0])
    names, values = ([cell.strip(' "\r') for cell in line.split(delimiter)] for line in lines[:2])
    named = [name for name in names if name]  # an index may have no name
    is_header = len(named) > 1 and all(re.search("[A-Za-z]", name) for name in named)
    return is_header and any(number_of(value) is not None for value in values)


def read(path: Path, log: Log) -> None:
    """Read a table with a row of names."""
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        rows = csv.reader(_lines(file, log), delimiter=_delimiter(file.readline(_LONGEST_LINE)))
        file.seek(0)
        try:
            names = [_RUN.sub("", name.strip()) for name in next(rows, [])][:_MOST_COLUMNS]
            kept = [not name.endswith(_BOUNDS) for name in names]
            for row in rows:
                pairs = zip(names, row, kept, strict=False)
                log.add_row({name: text for name, text, keep in pairs if keep and text})
        except csv.Error:
            log.damaged += 1


def _lines(file: TextIO, log: Log) -> Iterator[str]:
    """Yield lines without NUL; one that is too long is left out."""
    while line := file.readline(_LONGEST_LINE):
        if len(line) >= _LONGEST_LINE and not line.endswith("\n"):
            log.damaged += 1
            while (rest := file.readline(_LONGEST_LINE)) and not rest.endswith("\n"):
                pass
            continue
        yield line.replace("\0", "")


def _delimiter(header: str) -> str:
    return max((",", ";", "\t"), key=header.count)
