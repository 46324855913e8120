"""Reshapes that give a dimension other elements: `x.reshape(b, c, t)` of what is (b, t, c)."""

import math
import sys
from collections.abc import Callable, Iterable, Sequence
from types import FrameType
from typing import Any, ClassVar

import torch
from torch import Tensor

from holter.record.events import AxisMoved
from holter.record.signals import RESHAPE_MOVED, Signal
from holter.watching.collectors import STEP, Reading
from holter.watching.collectors.calls import is_compiled
from holter.watching.collectors.moments import AfterUpdate, BackwardBegins, Closing, Depth, Joined
from holter.watching.frames import Frames, place
from holter.watching.tap import Tap

_WINDOWS = 3  # steps whose forward is heard
_TOLD = 4  # lines that become events
_SMALLEST = 3  # size of a dimension: smaller ones are often made by chance

Call = Callable[..., Any]


class Reshapes:
    """Hears `view` and `reshape` as the script calls them, in the forward of a few steps.

    A reshape keeps elements in their order. A dimension that has one size before and after, and
    another distance between its elements, is another one: what was moved is its name alone.
    """

    emits: ClassVar[tuple[Signal, ...]] = (RESHAPE_MOVED,)
    at: ClassVar[tuple[type, ...]] = (Joined, AfterUpdate, BackwardBegins, Closing)
    depth: ClassVar[Depth] = Depth.FULL
    wakes_at: ClassVar[tuple[type, ...]] = ()

    def __init__(self) -> None:
        self._frames = Frames()
        self._taps: list[Tap] = []
        self._left = _WINDOWS
        self._count = 0  # in the window
        self._found: list[AxisMoved] = []
        self._told: set[str] = set()  # lines

    def read(
        self, moment: Joined | AfterUpdate | BackwardBegins | Closing
    ) -> Iterable[Reading | AxisMoved]:
        """Yield how many reshapes moved a dimension, and their lines, when the backward begins."""
        if isinstance(moment, BackwardBegins | Closing):
            was_heard = bool(self._taps)
            self._stop()
            if was_heard and isinstance(moment, BackwardBegins) and moment.opens_step:
                found, self._found = self._found, []
                return (Reading(RESHAPE_MOVED, STEP, [float(self._count)]), *found)
            return ()
        depth = moment.depth if isinstance(moment, Joined) else moment.next_depth
        if depth is Depth.FULL and self._left and not self._taps:
            self._left -= 1
            if not any(is_compiled(model.module) for model in moment.roster.models):
                self._count = 0
                self._taps = [
                    Tap(target, name, self._around)
                    for target, name in (
                        (Tensor, "view"),
                        (Tensor, "reshape"),
                        (torch, "reshape"),
                    )
                ]
        return ()

    def _stop(self) -> None:
        taps, self._taps = self._taps, []
        for tap in taps:
            tap.remove()

    def _around(self, original: Call) -> Call:
        def reshaped(*args: Any, **kwargs: Any) -> Any:
            made = original(*args, **kwargs)
            given = args[0] if args else kwargs.get("input")
            if isinstance(given, Tensor) and isinstance(made, Tensor):
                self._see(given.shape, made.shape, sys._getframe(2))  # noqa: SLF001  (the caller)
            return made

        return reshaped

    def _see(self, before: Sequence[int], after: Sequence[int], caller: FrameType) -> None:
        if min(len(before), len(after)) < 2 or moved(before, after) is None:
            return
        if not self._frames.is_script(caller):
            return  # torch knows what it does
        self._count += 1
        where = place(caller)
        if where not in self._told and len(self._told) < _TOLD:
            self._told.add(where)
            self._found.append(AxisMoved(where, tuple(before), tuple(after)))


def moved(before: Sequence[int], after: Sequence[int]) -> int | None:
    """Return the size of a dimension that a reshape gives other elements, or None.

    Only sizes that are there once before and once after tell which dimension is which.
    """
    for place_after, size in enumerate(after):
        if size >= _SMALLEST and list(after).count(size) == list(before).count(size) == 1:
            place_before = list(before).index(size)
            if math.prod(before[place_before + 1 :]) != math.prod(after[place_after + 1 :]):
                return size
    return None
