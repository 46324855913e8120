"""Tracer: follows the lines of some code of a script, and what its functions return."""

import os
import sys
from collections.abc import Callable, Sequence
from functools import cache
from types import CodeType, FrameType
from typing import Any

from holter.scripts.recognition.capturing import StepCapture
from holter.scripts.recognition.kinds import is_library
from holter.scripts.recognition.rollouts import Rollouts


def place_of(frame: FrameType) -> tuple[int, int] | None:
    """Line and column of the instruction that a frame is at."""
    line, _, column, _ = _positions(frame.f_code)[frame.f_lasti // 2]
    return None if line is None or column is None else (line, column)


@cache
def _positions(code: CodeType) -> list[tuple[int | None, ...]]:
    return list(code.co_positions())


class Tracer:
    """Follows the lines of some code of the script, and of no other.

    Where several statements share a line it follows single instructions.
    """

    def __init__(self, failed: Callable[[Exception], None]) -> None:
        # By identity, with the code itself: its hash takes long, and every call is looked at.
        self._captures: dict[int, tuple[CodeType, list[StepCapture]]] = {}
        self._frames: list[FrameType] = []
        self._earlier: Any = None
        self._on = False
        self._process = os.getpid()
        self._failed = failed
        self._returned: Callable[[FrameType, Any], None] | None = None
        self._rollouts: Rollouts | None = None
        self._lines: Callable[[FrameType], None] | None = None
        self._borrowed: list[FrameType] = []  # followed for their lines alone

    def notice_lines(
        self, frames: Sequence[FrameType], noticed: Callable[[FrameType], None]
    ) -> None:
        """Tell of each line of these frames before it is run."""
        if self._on:
            self._lines = noticed
            self._borrowed = [frame for frame in frames if frame.f_trace is None]
            for frame in self._borrowed:
                frame.f_trace = self._line

    def ignore_lines(self) -> None:
        """Tell of lines no more."""
        self._lines = None
        for frame in self._borrowed:
            frame.f_trace = None
        self._borrowed = []

    def notice_returns(self, returned: Callable[[FrameType, Any], None]) -> None:
        """Tell of all that functions of the user return, from their next call on."""
        self._returned = returned
        self._begin()

    def notice_calls(self, rollouts: Rollouts) -> None:
        """Tell of all calls of functions of the user, from the next one on."""
        self._rollouts = rollouts
        self._begin()

    def _begin(self) -> None:
        if not self._on:
            self._earlier, self._on = sys.gettrace(), True
            sys.settrace(self._call)

    def follow(self, capture: StepCapture, frame: FrameType) -> None:
        """Follow the code of a frame, in this frame and whenever it is called again."""
        code = frame.f_code
        self._captures.setdefault(id(code), (code, []))[1].append(capture)
        self._begin()
        frame.f_trace = self._line
        frame.f_trace_opcodes = capture.shares_lines
        self._frames.append(frame)

    def stop(self) -> None:
        """Follow nothing any more, and let whoever traced before trace again."""
        if self._on:
            self._on = False
            self.ignore_lines()
            sys.settrace(self._earlier)
            for frame in self._frames:
                frame.f_trace = None
        self._frames.clear()

    def _call(self, frame: FrameType, _event: str, _argument: Any) -> Any:
        known = self._captures.get(id(frame.f_code))
        if not self._on or os.getpid() != self._process:
            return None
        listens = self._returned is not None or self._rollouts is not None
        users = listens and not is_library(frame.f_code.co_filename)
        if users and self._rollouts is not None:
            self._rollouts.begin(frame)
        if known is None:
            return self._line if users else None
        for each in known[1]:
            each.restart()
        frame.f_trace_opcodes = any(each.shares_lines for each in known[1])
        return self._line

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if not self._on:
            return None
        try:
            if event == "line" and self._lines is not None:
                self._lines(frame)
            moves = event in ("line", "opcode")
            if moves and (known := self._captures.get(id(frame.f_code))) is not None:
                for capture in known[1]:
                    if capture.shares_lines == (event == "opcode"):
                        capture.at(place_of(frame) if event == "opcode" else frame.f_lineno, frame)
            elif event == "return":
                if self._returned is not None:
                    self._returned(frame, argument)
                if self._rollouts is not None:
                    self._rollouts.end(frame)
        except Exception as error:
            self._failed(error)
        return self._line
