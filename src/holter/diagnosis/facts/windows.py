"""Per-parameter tables of long runs, read in pieces of bounded size."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from holter.record import Rows
from holter.record.signals import Signal

if TYPE_CHECKING:
    from holter.diagnosis.facts import Facts

SMALLEST = 512  # steps
CELLS = 1 << 21  # readings in one piece: 8 MB


def windows(facts: "Facts", signal: Signal) -> Iterator[Rows]:
    """All rows of `signal`, the last piece first: leave the loop as soon as it has told enough."""
    table = facts.run[signal]
    width = max(SMALLEST, CELLS // max(len(table), 1))
    starts = range(0, facts.run.steps, width)
    for start in (*starts[-1:], *starts[:-1]):
        yield table.rows(start, start + width - 1)
