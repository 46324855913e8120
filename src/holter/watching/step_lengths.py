"""How long steps take on a GPU, and how much longer where more of them is read."""

import statistics
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

_KEPT = 15  # light steps of a kind whose median is their length
_FEWEST = 5  # of them, before lengths are compared
_EVERY = 4  # steps between two of a kind that are timed
_UNDER_WAY = 16  # at most; the GPU is far behind


class _Mark(NamedTuple):
    """The beginning of a step."""

    event: Any
    is_light: bool
    is_dense: bool  # its gradients are read by a fused launch


class Window:
    """The two steps around the reading of a deep one: its forward pass comes before its step."""

    def __init__(self, lengths: "StepLengths", before: _Mark, next_is_light: bool) -> None:
        self._lengths, self._before = lengths, before.event
        # Half of what a deep neighbour costs lies between the marks, too.
        self._share = 1 + 0.5 * (not before.is_light) + 0.5 * (not next_is_light)
        self.after: Any = None  # the event at its end, once that has come

    def stretch(self) -> float | None:
        """Return the seconds by which reading the step held up the GPU; None if not known."""
        light = self._lengths.of_light
        if light is None or self.after is None or not self.after.query():
            return None
        both: float = self._before.elapsed_time(self.after) / 1e3
        return max(both - 2 * light, 0.0) / self._share


class StepLengths:
    """Marks the beginning of each step on the GPU, and compares deep and dense steps with others.

    The host time of a step costs nothing while the GPU still has work from before, and all of it
    once it has none: how long the GPU took in all tells which part was lost. Nothing waits for it.
    """

    def __init__(self, event: Callable[[], Any] | None = None) -> None:
        self._event = event or _cuda_event
        self._marks: deque[_Mark] = deque(maxlen=2)
        # Of light steps, dense ones apart: seconds, and steps until the next one is timed.
        self._lengths = {dense: deque[float](maxlen=_KEPT) for dense in (False, True)}
        self._due = dict.fromkeys(self._lengths, 0)
        self._under_way: deque[tuple[bool, Any, Any]] = deque()
        self._windows: list[Window] = []  # that end when the next step begins

    @property
    def of_light(self) -> float | None:
        """The median length of a light step in seconds, None while few are known."""
        return self._median(dense=False)

    @property
    def of_dense_launch(self) -> float | None:
        """The seconds by which a fused launch makes light steps longer, None while unknown."""
        light, dense = self._median(dense=False), self._median(dense=True)
        return None if light is None or dense is None else max(dense - light, 0.0)

    def window(self, *, next_is_light: bool) -> Window | None:
        """Return what will time the step that ends now; None without two marks before it."""
        if len(self._marks) < 2:
            return None
        window = Window(self, self._marks[0], next_is_light)
        self._windows.append(window)
        return window

    def step_begins(self, *, is_light: bool, is_dense: bool) -> None:
        """Mark the beginning of a step, after all that was done for the one before."""
        self._read()
        event = self._event()
        for window in self._windows:
            window.after = event
        self._windows.clear()
        last = self._marks[-1] if self._marks else None
        if last is not None and last.is_light and is_light:
            self._due[last.is_dense] -= 1
            if self._due[last.is_dense] <= 0 and len(self._under_way) < _UNDER_WAY:
                is_known = len(self._lengths[last.is_dense]) >= _FEWEST
                self._due[last.is_dense] = _EVERY if is_known else 1
                self._under_way.append((last.is_dense, last.event, event))
        self._marks.append(_Mark(event, is_light, is_dense))

    def _median(self, *, dense: bool) -> float | None:
        lengths = self._lengths[dense]
        return statistics.median(lengths) if len(lengths) >= _FEWEST else None

    def _read(self) -> None:
        while self._under_way and self._under_way[0][2].query():
            dense, before, after = self._under_way.popleft()
            self._lengths[dense].append(before.elapsed_time(after) / 1e3)


def _cuda_event() -> Any:
    event: Any = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
    event.record()
    return event
