"""Lab: the open run that experiments write their measurements to, with a progress bar."""

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TypeVar

import numpy as np

from holter.record import Writer
from holter.record.events import Occurrence
from holter.record.meta import Environment
from holter.record.signals import Signal

_T = TypeVar("_T")
_WIDTH = 24  # characters of a progress bar


class Lab:
    """An open run that experiments write to. Use it as a context manager."""

    def __init__(self, path: Path, *, environment: Environment | None = None, quiet: bool = True):
        self._writer = Writer(path, environment=environment, resume=True)
        self._quiet = quiet or not sys.stderr.isatty()
        self._shown = 0.0

    @property
    def path(self) -> Path:
        """The folder of the run."""
        return self._writer.path

    def write(
        self, signal: Signal, values: Sequence[float], *, trial: str = "", first: int = 0
    ) -> None:
        """Write the readings of one trial; its steps are counted from `first`."""
        table = np.asarray(values, np.float32).reshape(-1, 1)
        steps = range(first, first + len(table))
        self._writer.write_many(
            signal.stream, steps, [time.time()] * len(table), [(signal.name, (trial,))], table
        )

    def write_each(self, signal: Signal, values: dict[str, float]) -> None:
        """Write one reading for each of several trials."""
        for trial, value in values.items():
            self.write(signal, [value], trial=trial)

    def event(self, what: Occurrence) -> None:
        """Write an event."""
        self._writer.event(what, 0)

    def progress(self, items: Iterable[_T], what: str, *, total: int | None = None) -> Iterator[_T]:
        """Yield `items`, with a progress bar on a terminal."""
        count = len(items) if total is None and isinstance(items, Sequence | range) else total
        for number, item in enumerate(items):
            self._show(number, count, what)
            yield item
        self.clear()

    def clear(self) -> None:
        """Remove the progress bar."""
        if self._shown:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
            self._shown = 0.0

    def _show(self, number: int, count: int | None, what: str) -> None:
        if self._quiet or time.monotonic() - self._shown < 0.1:
            return
        self._shown = time.monotonic()
        done = f"{number}"
        if count:
            full = round(_WIDTH * min(number / count, 1))
            done = f"{'━' * full}{'╌' * (_WIDTH - full)} {number}/{count}"
        sys.stderr.write(f"\r\033[K{what}  {done}")
        sys.stderr.flush()

    def close(self, status: str = "finished") -> None:
        """Close the run; safe to call twice."""
        self.clear()
        self._writer.update_meta(status=status)
        self._writer.close()

    def __enter__(self) -> "Lab":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close("finished" if error is None else "interrupted")
