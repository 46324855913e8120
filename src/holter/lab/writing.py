"""Lab: the open run that experiments write their measurements to, with a progress line."""

import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TypeVar

import numpy as np

from holter.lab.sharing import WHOLE, Share
from holter.record import Run, Writer
from holter.record.events import Occurrence
from holter.record.journal import read_meta
from holter.record.meta import Environment, Meta
from holter.record.notices import Progress
from holter.record.signals import Signal

_T = TypeVar("_T")


class Lab:
    """An open run that experiments write to. Use it as a context manager.

    Of an experiment that is handed out, `share` says which trials to make here, and `elsewhere`
    holds the runs of shares that other processes have made.
    """

    def __init__(
        self,
        path: Path,
        *,
        environment: Environment | None = None,
        quiet: bool = True,
        share: Share = WHOLE,
        elsewhere: Sequence[Run] = (),
    ):
        self.share, self.elsewhere = share, tuple(elsewhere)
        self._before = Meta.of(read_meta(path)).status  # of a training that has ended already
        self._writer = Writer(path, environment=environment, resume=True)
        self._progress = Progress(quiet=quiet)
        self._stage = ""

    @property
    def path(self) -> Path:
        """The folder of the run."""
        return self._writer.path

    def write(
        self, signal: Signal, values: Sequence[float], *, trial: str = "", first: int = 0
    ) -> None:
        """Write the readings of one trial; its steps are counted from `first`."""
        with np.errstate(over="ignore"):  # what float32 does not hold is infinite
            table = np.asarray(values, np.float32).reshape(-1, 1)
        steps = range(first, first + len(table))
        self._writer.write_many(
            signal.stream, steps, [time.time()] * len(table), [(signal.name, (trial,))], table
        )

    def take_over(self, run: Run, signals: Iterable[Signal], trial: str) -> None:
        """Write the readings that another process has made in a trial."""
        for signal in signals:
            series = run[signal].get(trial) if signal in run else None
            if series is None:
                continue
            table = np.asarray(series.values, np.float32).reshape(-1, 1)
            steps = [int(step) for step in series.steps]
            self._writer.write_many(
                signal.stream, steps, [time.time()] * len(steps), [(signal.name, (trial,))], table
            )

    def write_each(self, signal: Signal, values: dict[str, float]) -> None:
        """Write one reading for each of several trials."""
        for trial, value in values.items():
            self.write(signal, [value], trial=trial)

    def event(self, what: Occurrence) -> None:
        """Write an event."""
        self._writer.event(what, 0)

    def begin(self, stage: str) -> None:
        """Name what is being done, for the progress line."""
        self._stage = stage
        self._progress.show(stage)

    def progress(self, items: Iterable[_T], what: str, *, total: int | None = None) -> Iterator[_T]:
        """Yield `items`, and show how many were taken."""
        count = len(items) if total is None and isinstance(items, Sequence | range) else total
        for number, item in enumerate(items):
            done = f"{number}/{count}" if count else f"{number}"
            share = number / count if count else None
            text = f"{self._stage}{' · ' if self._stage else ''}{what} {done}"
            self._progress.show(text, share=share)
            yield item

    def clear(self) -> None:
        """Remove the progress line."""
        self._progress.clear()

    def close(self, status: str = "finished") -> None:
        """Close the run; safe to call twice."""
        self.clear()
        ended = self._before not in (None, "running")
        self._writer.update_meta(status=self._before if ended else status)
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
