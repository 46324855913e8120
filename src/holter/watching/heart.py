"""Heart: signs of life of a process that trains with others, and its stack when it is silent."""

import contextlib
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from holter.record.events import SilenceSeen
from holter.record.heartbeat import (
    FILE,
    INTERVAL,
    LINE,
    STACKS,
    Activity,
    activity_line,
    alive_line,
)
from holter.record.portable import BINARY, write_at
from holter.watching.collectors.lane import Lane
from holter.watching.frames import is_of_script, place

_FIRST = 120.0  # seconds of silence before the first update, when kernels are compiled
_LEAST = 20.0  # seconds of silence that are reported, if they are
_LONGER = 10.0  # times as long as the longest pause so far
_DISTRIBUTED = str(Path(torch.__file__).parent / "distributed")
_WRAPPER = "wrapper"  # functions of torch.distributed are decorated


class Heart:
    """Notes what the training does, in a file that is overwritten in place.

    A thread adds that the process is alive. After a silence it writes the stack of every thread to
    `stacks.txt`, and an event. The thread never waits for another one, holds no lock and dies with
    the process.
    """

    def __init__(
        self,
        folder: Path,
        step: Callable[[], int],
        event: Callable[[SilenceSeen], None],
        *,
        silence: float | None = None,
    ) -> None:
        self._folder, self._step, self._event, self._silence = folder, step, event, silence
        self._activity, self._last, self._longest = Activity.STARTED, time.monotonic(), 0.0
        self._training = threading.get_ident()  # the thread that trains
        self._is_updated = self._is_silent = False
        self._stopped = threading.Event()
        self._file = os.open(folder / FILE, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | BINARY, 0o644)
        write_at(self._file, activity_line(step(), Activity.STARTED) + alive_line(), 0)
        interval = INTERVAL if silence is None else min(INTERVAL, silence / 4)
        thread = threading.Thread(
            target=self._live, args=(interval,), name="holter heartbeat", daemon=True
        )
        thread.start()

    def join(self, lane: Lane) -> None:
        """Hear of what the training does."""
        lane.at_fetch.append(self._fetched)
        lane.at_validation.append(self._validated)
        lane.at_backward.append(self._backward)
        lane.at_backward_end.append(self._gradients)
        lane.at_update_end.append(self._updated)

    def _fetched(self, *_: object) -> None:
        self._beat(Activity.FETCHED)

    def _validated(self) -> None:
        self._beat(Activity.VALIDATED)

    def _backward(self, *_: object) -> None:
        self._beat(Activity.BACKWARD)

    def _gradients(self) -> None:
        self._beat(Activity.GRADIENTS)

    def _updated(self, *_: object) -> None:
        self._beat(Activity.UPDATED)
        self._is_updated = True

    def _beat(self, activity: Activity) -> None:
        now = time.monotonic()
        self._longest = max(self._longest, now - self._last)
        self._activity, self._last, self._is_silent = activity, now, False
        write_at(self._file, activity_line(self._step(), activity), 0)

    def close(self) -> None:
        """Stop the thread, without waiting for it."""
        self._stopped.set()

    def _live(self, interval: float) -> None:
        with contextlib.suppress(Exception):  # a folder that vanishes, an interpreter that ends
            while not self._stopped.wait(interval):
                write_at(self._file, alive_line(), LINE)
                silence = time.monotonic() - self._last
                if not self._is_silent and silence > self._limit:
                    self._is_silent = True
                    self._tell(silence)
        if self._stopped.is_set():  # else the training may still write to it
            with contextlib.suppress(OSError):
                os.close(self._file)

    @property
    def _limit(self) -> float:
        if self._silence is not None:
            return self._silence
        return max(_LEAST if self._is_updated else _FIRST, _LONGER * self._longest)

    def _tell(self, silence: float) -> None:
        frames = sys._current_frames()  # noqa: SLF001  (the one way to see other threads)
        self._event(_described(frames.get(self._training), silence, self._activity))
        stacks = [f"no activity for {silence:.1f} s; last: {self._activity}\n"]
        for thread, frame in frames.items():
            if thread != threading.get_ident():
                name = "training" if thread == self._training else str(thread)
                stacks += [f"\nthread {name}, outermost call first:\n"]
                stacks += traceback.format_stack(frame)
        (self._folder / STACKS).write_text("".join(stacks))


def _described(frame: Any, silence: float, activity: Activity) -> SilenceSeen:
    where = collective = ""
    function = frame.f_code.co_qualname if frame is not None else ""
    while frame is not None:
        file, name = frame.f_code.co_filename, frame.f_code.co_name
        if not collective and file.startswith(_DISTRIBUTED) and name != _WRAPPER:
            collective = name
        if is_of_script(file):
            where = place(frame)
            break
        frame = frame.f_back
    return SilenceSeen(round(silence, 1), str(activity), where, function, collective)
