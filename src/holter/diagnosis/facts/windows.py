"""Tables of long runs, read in windows of bounded size."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from holter.record import Rows
from holter.record.signals import Signal

if TYPE_CHECKING:
    from holter.diagnosis.facts import Facts

SMALLEST = 512  # steps in a window
CELLS = 1 << 21  # readings in a window: 8 MB


def recent(facts: "Facts", signal: Signal, steps: int, *, least: int = 20) -> Rows:
    """Return the rows of the last `steps` steps; of long runs, at least the last `least` rows."""
    table, first = facts.run[signal], facts.run.steps - steps
    one = next(iter(table.values()))  # what is sampled is sampled of all at once
    return table.rows(min(first, int(one.steps[-least:][0])) if len(one) else first)


def windows(facts: "Facts", signal: Signal) -> Iterator[Rows]:
    """Yield all rows of `signal`, the last window first: the caller may stop at any time."""
    table = facts.run[signal]
    width = max(SMALLEST, CELLS // max(len(table), 1))
    starts = range(0, facts.run.steps, width)
    for start in (*starts[-1:], *starts[:-1]):
        yield table.rows(start, start + width - 1)
