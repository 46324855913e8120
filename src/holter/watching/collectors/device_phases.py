"""Where the time of a step goes on a GPU: CUDA events, read when they have passed."""

from collections import deque
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor
from torch.optim import Optimizer

from holter.record.signals import (
    SYNC_CALLS,
    TIME_COPY,
    TIME_DEVICE_BACKWARD,
    TIME_DEVICE_FORWARD,
    TIME_DEVICE_IDLE,
    TIME_DEVICE_OPTIMIZER,
    TIME_SYNC,
    Signal,
)
from holter.watching.collectors import STEP
from holter.watching.collectors.lane import Lane
from holter.watching.collectors.moments import Depth
from holter.watching.collectors.roster import Roster, Subject

_EVERY = 8  # steps between two that are timed
_MOST = 16  # intervals that may be under way


class _Interval(NamedTuple):
    """Two events around some work, and what its time is."""

    signal: Signal
    before: Any
    after: Any


class DevicePhases:
    """Records events around the passes of some steps. Nothing waits for them.

    Once the GPU has reached them, their times are filed under the step that is open then.
    """

    emits: ClassVar[tuple[Signal, ...]] = (
        TIME_DEVICE_FORWARD,
        TIME_DEVICE_BACKWARD,
        TIME_DEVICE_OPTIMIZER,
        TIME_DEVICE_IDLE,
        TIME_COPY,
        TIME_SYNC,
        SYNC_CALLS,
    )

    def __init__(self) -> None:
        self._joined = False
        self._step = self._due = 0
        self._is_due = True  # the step that is coming or open
        self._is_timed = False  # the same step
        self._under_way: deque[_Interval] = deque()
        self._last: Any = None  # the event at the end of the last pass, update or fetch
        self._before_update: Any = None  # the event there, in steps that are due or read deeply
        self._syncs: list[float] = []  # seconds of each
        self._is_full = False  # reads of the GPU are heard in the coming step

    def join(self, lane: Lane) -> None:
        """Wait for a model on a GPU."""
        self._lane, self._row = lane, lane.row
        lane.at_roster.append(self._attend)

    def _attend(self, roster: Roster) -> None:
        if self._joined or not any(parameter.is_cuda for parameter in roster.parameters):
            return
        self._joined, lane = True, self._lane
        self._places = {signal: lane.places(signal)[STEP] for signal in self.emits}
        lane.at_fetch.append(self._fetched)
        lane.at_backward.append(self._backward_begins)
        lane.at_backward_end.append(self._backward_ends)
        lane.at_update.append(self._update_begins)
        lane.at_update_end.append(self._update_ends)
        lane.at_sync.append(self._synchronised)
        lane.at_copy.append(self._copied)

    def _fetched(self, loader: str, samples: int, waited: float) -> None:  # noqa: ARG002
        if self._is_timed:
            self._last = _event()

    def _backward_begins(self, roots: Sequence[Tensor], opens: bool, depth: Depth) -> None:  # noqa: ARG002
        self._read()
        if self._is_timed:
            self._pass(TIME_DEVICE_FORWARD)

    def _backward_ends(self) -> None:
        if self._is_timed:
            self._pass(TIME_DEVICE_BACKWARD)

    def _update_begins(self, subject: Subject, optimizer: Optimizer, depth: Depth) -> None:  # noqa: ARG002
        if self._is_due or depth > Depth.LIGHT:
            self._before_update = _event()
        if self._is_timed:
            self._last = self._before_update

    def _update_ends(self, subject: Subject, depth: Depth) -> None:  # noqa: ARG002
        if self._before_update is not None:
            self._row[self._places[TIME_DEVICE_IDLE]] = float(self._before_update.query())
            self._before_update = None
        if self._is_timed:
            self._pass(TIME_DEVICE_OPTIMIZER)
        if self._is_full:
            self._row[self._places[TIME_SYNC]] = sum(self._syncs)
            self._row[self._places[SYNC_CALLS]] = len(self._syncs)
        self._syncs = []
        self._step += 1
        was_full, self._is_full = self._is_full, depth is Depth.FULL
        self._is_due = self._step >= self._due
        # Steps that are read whole are slowed down by our own kernels, which reach into the next.
        self._is_timed = self._is_due and not self._is_full and not was_full
        if self._is_timed:
            self._due = self._step + _EVERY
        self._last = _event() if self._is_timed else None

    def _synchronised(self, seconds: float) -> None:
        self._syncs.append(seconds)

    def _copied(self, before: Any, after: Any) -> None:
        self._put(_Interval(TIME_COPY, before, after))

    def _pass(self, signal: Signal) -> None:
        now = _event()
        if self._last is not None:
            self._put(_Interval(signal, self._last, now))
        self._last = now

    def _put(self, interval: _Interval) -> None:
        if len(self._under_way) < _MOST:  # the GPU is far behind: what came first is enough
            self._under_way.append(interval)

    def _read(self) -> None:
        """File the times of intervals that the GPU has passed."""
        times: dict[Signal, float] = {}
        while self._under_way and self._under_way[0].after.query():
            signal, before, after = self._under_way.popleft()
            times[signal] = times.get(signal, 0.0) + before.elapsed_time(after) / 1e3
        for signal, seconds in times.items():
            self._row[self._places[signal]] = seconds


def _event() -> Any:
    cuda: Any = torch.cuda  # whose events have no types
    event = cuda.Event(enable_timing=True)
    event.record()
    return event
