"""Tables of long runs, read in windows of bounded size."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from holter.record import Rows
from holter.record.signals import Signal

if TYPE_CHECKING:
    from holter.diagnosis.facts import Facts

SMALLEST = 512  # steps in a window
CELLS = 1 << 21  # readings in a window: 8 MB


def windows(facts: "Facts", signal: Signal) -> Iterator[Rows]:
    """Yield all rows of `signal`, the last window first: the caller may stop at any time."""
    table = facts.run[signal]
    width = max(SMALLEST, CELLS // max(len(table), 1))
    starts = range(0, facts.run.steps, width)
    for start in (*starts[-1:], *starts[:-1]):
        yield table.rows(start, start + width - 1)
