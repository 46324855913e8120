"""The call stack of the script: where a call comes from, and how the script names its data."""

import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

import torch

_NOT_THE_SCRIPT = tuple(
    str(folder) + os.sep for folder in (Path(torch.__file__).parent, Path(__file__).parents[1])
)
_SNAPSHOTS = sys.version_info < (3, 13)  # before, `f_locals` leaves a copy of them in the frame
_READERS_OF_LOCALS = frozenset(("locals", "vars", "dir", "eval", "exec"))
_DEEPEST = 24  # frames of the script that are searched for a name

Chain = int  # equal for two calls if both came through the same calls of the script


class Frames:
    """Walks the frames of the script, without those of torch and holter."""

    def __init__(self) -> None:
        self._is_script = _Files()

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


class _Files(dict[str, bool]):
    """Whether a file is part of the script."""

    def __missing__(self, file: str) -> bool:
        self[file] = is_script = not file.startswith(_NOT_THE_SCRIPT)
        return is_script


def read_locals(frame: FrameType, read: Callable[[Mapping[str, Any]], Any]) -> Any:
    """Return what `read` makes of the variables of a frame, and leave the frame as it was.

    A function that asks for its own variables shares the copy that Python keeps in the frame before
    3.13: then they are not read, because reading them would change that copy.
    """
    code = frame.f_code
    if not code.co_flags & inspect.CO_OPTIMIZED:  # a module: these are its globals
        return read(frame.f_locals)
    if not _SNAPSHOTS:
        return read(frame.f_locals)
    if not _READERS_OF_LOCALS.isdisjoint(code.co_names):
        return read({})
    variables = frame.f_locals
    try:
        return read(variables)
    finally:
        variables.clear()  # or the frame would keep tensors alive


def place(frame: FrameType) -> str:
    """Return the file and line that a frame is at."""
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
