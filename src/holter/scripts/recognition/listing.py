"""Folders as a script sees them: what is there, and what it has written on top."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from holter.scripts.recognition.scratch import Scratch

Call = Callable[..., Any]


@contextmanager
def named(scratch: Scratch, path: Any) -> Iterator[None]:
    """Name the script's own path in errors."""
    try:
        yield
    except OSError as error:
        if isinstance(error.filename, str) and error.filename.startswith(scratch.folder):
            error.filename = path
        raise


def listing(scratch: Scratch, original: Call) -> Call:
    """Stand in for os.listdir."""

    def call(path: Any = ".") -> Any:
        full = None if isinstance(path, bytes) else scratch.mapped(path)
        if full is None or not os.path.isdir(scratch.place(full)):
            seen = path if full is None else scratch.for_reading(full)
            with named(scratch, path):
                found = original(seen)
            return found if full is None else scratch.names(full)
        return scratch.names(full)

    return call


class _Entry:
    """An entry of a folder, as os.scandir gives it, by the script's own path."""

    def __init__(self, scratch: Scratch, folder: Any, full: str, name: str) -> None:
        self.name = name
        self.path = os.path.join(os.fspath(folder), name)
        self._seen = scratch.for_reading(os.path.join(full, name))

    def __fspath__(self) -> str:
        return self.path

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return os.path.isdir(self._seen) and (follow_symlinks or not self.is_symlink())

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        return os.path.isfile(self._seen) and (follow_symlinks or not self.is_symlink())

    def is_symlink(self) -> bool:
        return os.path.islink(self._seen)

    def is_junction(self) -> bool:
        return False

    def inode(self) -> int:
        return self.stat(follow_symlinks=False).st_ino

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        return os.stat(self._seen, follow_symlinks=follow_symlinks)


class _Entries:
    """What os.scandir returns: an iterator that can be closed."""

    def __init__(self, entries: Iterator[_Entry]) -> None:
        self._entries = entries

    def __iter__(self) -> Iterator[_Entry]:
        return self._entries

    def __next__(self) -> _Entry:
        return next(self._entries)

    def __enter__(self) -> "_Entries":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._entries = iter(())


def scanning(scratch: Scratch, original: Call) -> Call:
    """Stand in for os.scandir."""

    def call(path: Any = ".") -> Any:
        full = None if isinstance(path, bytes) else scratch.mapped(path)
        if full is None or not os.path.isdir(scratch.for_reading(full)):
            with named(scratch, path):
                return original(path if full is None else scratch.for_reading(full))
        return _Entries(_Entry(scratch, path, full, name) for name in scratch.names(full))

    return call
