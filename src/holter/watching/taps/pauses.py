"""Taps on what interrupts a training loop: checkpoints that are saved, garbage collection."""

import gc
import time
from collections.abc import Mapping
from typing import Any, Protocol

import torch

from holter.record.signals import TIME_CHECKPOINT, TIME_GARBAGE, Signal
from holter.watching.tap import Call, Tap

_OLDEST = 2  # generation: collecting the younger ones takes microseconds


class PauseListener(Protocol):
    """Hears of interruptions."""

    def paused(self, signal: Signal, seconds: float) -> None:
        """An interruption whose time is a reading of `signal` is over."""


class CollectorTap:
    """A callback of the garbage collector."""

    def __init__(self, listener: PauseListener) -> None:
        self._listener, self._began = listener, 0.0
        gc.callbacks.append(self._called)

    def _called(self, phase: str, info: Mapping[str, int]) -> None:
        if info["generation"] < _OLDEST:
            return
        if phase == "start":
            self._began = time.perf_counter()
        else:
            self._listener.paused(TIME_GARBAGE, time.perf_counter() - self._began)

    def remove(self) -> None:
        """Remove the callback; safe to call twice."""
        if self._called in gc.callbacks:
            gc.callbacks.remove(self._called)


def tap_pauses(listener: PauseListener) -> list[Tap | CollectorTap]:
    """Tap `torch.save` and the garbage collector."""

    def around(original: Call) -> Call:
        def save(*args: Any, **kwargs: Any) -> Any:
            began = time.perf_counter()
            result = original(*args, **kwargs)
            listener.paused(TIME_CHECKPOINT, time.perf_counter() - began)
            return result

        return save

    return [Tap(torch, "save", around), CollectorTap(listener)]
