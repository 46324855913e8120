"""The call stack of the script: where a call comes from, and how the script names its data."""

import dis
import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, TypeVar

import torch

_NOT_THE_SCRIPT = tuple(
    str(folder) + os.sep for folder in (Path(torch.__file__).parent, Path(__file__).parents[1])
)
_COPIES = sys.version_info < (3, 13)  # before, `f_locals` leaves a copy of them in the frame
_ASK_FOR_LOCALS = frozenset(("locals", "vars", "dir", "eval", "exec"))
_DEEPEST = 24  # frames of the script that are searched for a name

T = TypeVar("T")
Chain = int  # equal for two calls if both came through the same calls of the script


class Frames:
    """Walks the frames of the script, without those of torch and holter."""

    def __init__(self) -> None:
        self._is_script = _Files()
        self._sharing: dict[int, bool] = {}  # by code: whether it may ask for its own variables

    def chain(self) -> Chain:
        """Return what tells the places of a call and of all its callers from others.

        Instructions rather than lines: two calls may be on one line.
        """
        chain = 0
        is_script = self._is_script
        frame: FrameType | None = sys._getframe(1)  # noqa: SLF001
        while frame is not None:
            code = frame.f_code
            if is_script[code.co_filename]:
                chain = hash((chain, id(code), frame.f_lasti))
            frame = frame.f_back
        return chain

    def all(self) -> Iterator[FrameType]:
        """Yield the frames of the script, the innermost first."""
        frame: FrameType | None = sys._getframe(1)  # noqa: SLF001
        count = 0
        while frame is not None and count < _DEEPEST:
            if self._is_script[frame.f_code.co_filename]:
                count += 1
                yield frame
            frame = frame.f_back

    def is_script(self, frame: FrameType) -> bool:
        """Whether a frame is one of the script."""
        return self._is_script[frame.f_code.co_filename]

    def read(self, frame: FrameType, read: Callable[[Mapping[str, Any]], T]) -> T:
        """Return what `read` makes of the variables of a frame, and leave the frame as it was.

        Before Python 3.13 the frame keeps a copy of them, which a function that asks for its own
        variables shares: those of such a function are not read, and other copies are emptied, as
        they would keep tensors alive.
        """
        code = frame.f_code
        if not _COPIES or not code.co_flags & inspect.CO_OPTIMIZED:  # a module has its globals
            return read(frame.f_locals)
        if self._shares_copy(code):
            return read({})
        variables = frame.f_locals
        try:
            return read(variables)
        finally:
            variables.clear()

    def _shares_copy(self, code: CodeType) -> bool:
        shares = self._sharing.get(id(code))
        if shares is None:
            shares = self._sharing[id(code)] = any(
                instruction.argval in _ASK_FOR_LOCALS
                for instruction in dis.get_instructions(code)
                if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME")
            )
        return shares


class _Files(dict[str, bool]):
    """Whether a file is part of the script."""

    def __missing__(self, file: str) -> bool:
        self[file] = is_script = is_of_script(file)
        return is_script


def is_of_script(file: str) -> bool:
    """Whether a file belongs to the script, not to torch or holter."""
    return not file.startswith(_NOT_THE_SCRIPT)


def place(frame: FrameType, line: int | None = None) -> str:
    """Return the file of a frame, and the line that it is at or that is given."""
    return f"{Path(frame.f_code.co_filename).name}:{line or frame.f_lineno}"
