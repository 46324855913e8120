"""Publisher: tells collectors of the moments of a loop, and gathers what they read."""

from collections.abc import Callable, Collection, Iterable
from typing import Any

import torch

from holter.record.events import Occurrence
from holter.watching.collectors import Collector, Hooked, Reading, Tally
from holter.watching.collectors.calls import moment_comes
from holter.watching.collectors.moments import (
    Attended,
    Closing,
    Depth,
    Moment,
    Rectified,
    StepEnds,
)

_SHORT = (Attended, Rectified)  # many in a step, and little work each: not timed on a GPU
Listening = dict[Depth, dict[type, tuple[Collector, ...]]]


class Publisher:
    """Keeps collectors by what they listen to. One that raises is reported once and dropped."""

    def __init__(
        self,
        collectors: Iterable[Collector],
        fail: Callable[[str, Exception], None],
        event: Callable[[Occurrence], None],
    ) -> None:
        self._collectors, self._fail, self._event = list(collectors), fail, event
        self._asleep: frozenset[Collector] = frozenset()
        self._known: dict[frozenset[Collector], Listening] = {}  # by who is asleep
        # For each depth of a step, the moments that somebody listens to, or wakes at.
        self.heard: Listening = {}
        self._sleep(collector for collector in self._collectors if collector.wakes_at)
        self._readings: list[Reading] = []
        self._tallies: list[Tally] = []
        self._timers: list[tuple[Any, Any]] = []
        self._timers_ahead: list[tuple[Any, Any]] = []  # around work for the step after this one
        self._hook_time = 0.0

    @property
    def has_readings(self) -> bool:
        """Whether anything was read of the open step."""
        return bool(self._readings or self._tallies or self._timers)

    def publish(self, moment: Moment, depth: Depth, *, on_gpu: bool, ahead: bool = False) -> None:
        """Let all who listen read; the work of a GPU is put between two of its events.

        What is done `ahead` is the work of the step after the open one.
        """
        kind = type(moment)
        if kind in self._wakers:
            self._wake(kind)
        listening = self.heard[depth].get(kind, ())
        moment_comes()
        timed = on_gpu and depth > Depth.LIGHT and bool(listening) and kind not in _SHORT
        began = _gpu_event() if timed else None
        for collector in listening:
            try:
                for reading in collector.read(moment):
                    if isinstance(reading, Occurrence):
                        self._event(reading)
                        continue
                    if isinstance(reading, Tally):
                        self._tallies.append(reading)
                        continue
                    if depth > Depth.LIGHT:  # runs begin with full steps: by now it is known
                        reading.check()
                    self._readings.append(reading)
            except Exception as error:
                if collector in self._collectors:
                    self._collectors.remove(collector)
                    self._known.clear()
                    self._sleep(self._asleep - {collector})
                    self._fail(f"the collector {type(collector).__name__.lower()}", error)
        if timed:
            timers = self._timers_ahead if ahead else self._timers
            timers.append((began, _gpu_event()))
        if kind is StepEnds and any(map(_sleeps_again, listening)):
            self._sleep(self._asleep.union(filter(_sleeps_again, listening)))

    def take(self) -> tuple[list[Reading], list[Tally], list[tuple[Any, Any]]]:
        """The readings and tallies of the step that ends, and the events around a GPU's work."""
        taken = self._readings, self._tallies, self._timers
        self._readings, self._tallies = [], []
        self._timers, self._timers_ahead = self._timers_ahead, []
        return taken

    def spent_in_hooks(self) -> float:
        """Seconds that collectors took outside of `read` since this was last asked."""
        total = sum(
            collector.spent for collector in self._collectors if isinstance(collector, Hooked)
        )
        fresh, self._hook_time = total - self._hook_time, total
        return fresh

    def declined(self) -> list[str]:
        """What collectors cannot read in this training, a sentence each."""
        hooked = [collector for collector in self._collectors if isinstance(collector, Hooked)]
        return [sentence for collector in hooked for sentence in collector.declined]

    def _wake(self, kind: type) -> None:
        self._sleep(collector for collector in self._asleep if kind not in collector.wakes_at)

    def _sleep(self, collectors: Iterable[Collector]) -> None:
        """Let these collectors sleep, and no others."""
        asleep = self._asleep = frozenset(collectors)
        listening = self._known.get(asleep)
        if listening is None:
            listening = self._known[asleep] = _by_depth(self._collectors, asleep)
        self.heard = listening
        self._wakers = {kind for collector in asleep for kind in collector.wakes_at}


def _sleeps_again(collector: Collector) -> bool:
    """Whether a collector that has read the end of a step has nothing to do at most others."""
    return bool(collector.wakes_at) and collector.depth is Depth.LIGHT


def _by_depth(collectors: Iterable[Collector], asleep: Collection[Collector]) -> Listening:
    """For each depth of a step, who listens to which moment; who closes up always does."""
    listening: Listening = {}
    for depth in Depth:
        kinds = listening[depth] = {}
        for collector in collectors:
            heard = collector.wakes_at if collector in asleep else collector.at
            for kind in heard:
                if collector.depth <= depth or kind is Closing or kind in collector.wakes_at:
                    kinds[kind] = (*kinds.get(kind, ()), collector)
    return listening


def _gpu_event() -> Any:
    cuda: Any = torch.cuda  # whose events have no types
    event = cuda.Event(enable_timing=True)
    event.record()
    return event
