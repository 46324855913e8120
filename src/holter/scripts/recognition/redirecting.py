"""Redirects what a script writes to a scratch folder, at the functions that touch files."""

import atexit
import builtins
import errno
import io
import multiprocessing.spawn
import os
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import FunctionType
from typing import Any

from holter.scripts.recognition.listing import listing, named, scanning
from holter.scripts.recognition.scratch import Scratch
from holter.scripts.running import AfterTorch

Call = Callable[..., Any]
Wrap = Callable[[Scratch, Call], Call]

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_READERS = ("stat", "access", "statvfs", "chdir", "getxattr", "listxattr")
_CHANGERS = ("truncate", "chmod", "utime", "chown", "setxattr", "removexattr", "mkfifo")


@contextmanager
def redirected(scratch: Scratch) -> Iterator[Callable[[Any], None]]:
    """Let everything that this process writes to protected folders go to a scratch folder.

    Call what is given with torch once it is imported: torch writes files in C++, too.
    """
    were: list[tuple[Any, str, Any]] = []
    now: dict[Any, Call] = {}

    def replace(owner: Any, name: str, wrap: Wrap) -> None:
        if (original := vars(owner).get(name)) is not None:
            were.append((owner, name, original))
            now[original] = wrap(scratch, original)
            setattr(owner, name, now[original])

    for name in _READERS:
        replace(os, name, _reading)
    for name in _CHANGERS:
        replace(os, name, _changing)
    for name, wrap in _WRAPPERS.items():
        replace(os, name, wrap)
    for owner in (builtins, io):
        replace(owner, "open", _file)
    replace(shutil, "rmtree", _rmtree)
    replace(sqlite3, "connect", _connect)
    replace(multiprocessing.spawn, "get_command_line", _spawning)
    for function in vars(tempfile._TemporaryFileCloser).values():  # type: ignore[attr-defined]  # noqa: SLF001
        if isinstance(function, FunctionType) and function.__defaults__:
            # It removes its file by a function that it took when it was defined.
            given = tuple(now.get(each, each) for each in function.__defaults__)
            were.append((function, "__defaults__", function.__defaults__))
            function.__defaults__ = given
    with suppress(ImportError):
        import safetensors

        replace(safetensors, "serialize_file", _serialize)
        replace(safetensors, "safe_open", _native_reader)
    if scratch.mapped(tempfile.gettempdir()) is not None:  # a script in the folder of such files
        were.append((tempfile, "tempdir", tempfile.tempdir))
        tempfile.tempdir = f"{scratch.folder}/temporary"
        Path(tempfile.tempdir).mkdir()

    def add_torch(torch: Any) -> None:
        replace(torch._C, "PyTorchFileWriter", _native_writer)  # noqa: SLF001
        replace(torch._C, "PyTorchFileReader", _native_reader)  # noqa: SLF001

    try:
        yield add_torch
    finally:
        for owner, name, original in reversed(were):
            setattr(owner, name, original)


def continue_in_child(folder: str, protected: list[str], free: list[str], gone: list[str]) -> None:
    """Redirect in a process that the script has spawned; it lasts as long as the process."""
    lasting = redirected(Scratch(folder, protected, free, set(gone)))
    add_torch = lasting.__enter__()
    atexit.register(lasting.__exit__, None, None, None)
    sys.meta_path.insert(0, AfterTorch(lambda: add_torch(sys.modules["torch"])))


def _reading(scratch: Scratch, original: Call, *, follow: bool = True) -> Call:
    def call(path: Any, *args: Any, **kwargs: Any) -> Any:
        followed = follow and kwargs.get("follow_symlinks", True)
        at = kwargs.get("dir_fd") is not None
        full = None if at else scratch.mapped(path, follow=followed)
        if full is None:
            return original(path, *args, **kwargs)
        with named(scratch, path):
            return original(scratch.for_reading(full), *args, **kwargs)

    return call


def _changing(scratch: Scratch, original: Call) -> Call:
    def call(path: Any, *args: Any, **kwargs: Any) -> Any:
        full = None if kwargs.get("dir_fd") is not None else scratch.mapped(path)
        if full is None:
            return original(path, *args, **kwargs)
        with named(scratch, path):
            if os.path.isdir(full) and not os.path.isdir(scratch.place(full)):
                return None  # modes and times of the user's folders stay
            return original(scratch.for_writing(full, keep=True), *args, **kwargs)

    return call


def _open(scratch: Scratch, original: Call) -> Call:
    def call(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        full = None if dir_fd is not None else scratch.mapped(path)
        if full is None:
            fd: int = original(path, flags, mode, dir_fd=dir_fd)
            return fd
        with named(scratch, path):
            if not flags & _WRITES:
                fd = original(scratch.for_reading(full), flags, mode)
                return fd
            exists, place = scratch.exists(full), scratch.place(full)
            if os.path.isdir(scratch.for_reading(full)):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
            if exists and flags & os.O_EXCL and flags & os.O_CREAT:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
            place = scratch.for_writing(full, keep=not flags & os.O_TRUNC)
            fd = original(place, flags if not exists else flags | os.O_CREAT, mode)
            return fd

    return call


def _file(scratch: Scratch, original: Call) -> Call:
    def call(
        file: Any,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
        closefd: bool = True,
        opener: Any = None,
    ) -> Any:
        if opener is None and scratch.mapped(file) is not None:
            opener = _open_plainly
        return original(file, mode, buffering, encoding, errors, newline, closefd, opener)

    return call


def _open_plainly(path: str, flags: int) -> int:
    """Open a file with the mode that `open` gives new ones."""
    return os.open(path, flags, 0o666)


def _mkdir(scratch: Scratch, original: Call) -> Call:
    def call(path: Any, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        full = None if dir_fd is not None else scratch.mapped(path)
        if full is None:
            original(path, mode, dir_fd=dir_fd)
        elif scratch.exists(full):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        else:
            with named(scratch, path):
                original(scratch.for_writing(full, keep=False), mode)

    return call


def _remove(scratch: Scratch, original: Call) -> Call:
    def call(path: Any, *, dir_fd: int | None = None) -> None:
        full = None if dir_fd is not None else scratch.mapped(path, follow=False)
        if full is None:
            original(path, dir_fd=dir_fd)
            return
        seen = scratch.for_reading(full)
        if os.path.isdir(seen) and not os.path.islink(seen):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if not scratch.exists(full):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        scratch.delete(full)

    return call


def _rmdir(scratch: Scratch, original: Call) -> Call:
    def call(path: Any, *, dir_fd: int | None = None) -> None:
        full = None if dir_fd is not None else scratch.mapped(path)
        if full is None:
            original(path, dir_fd=dir_fd)
        elif not os.path.isdir(scratch.for_reading(full)):
            with named(scratch, path):
                original(scratch.place(full))
        elif scratch.names(full):
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), path)
        else:
            scratch.delete(full)

    return call


def _rename(scratch: Scratch, original: Call) -> Call:
    def call(src: Any, dst: Any, **kwargs: Any) -> None:
        source, target = (scratch.mapped(each, follow=False) for each in (src, dst))
        if (source is None and target is None) or any(v is not None for v in kwargs.values()):
            original(src, dst, **kwargs)
            return
        with named(scratch, src):
            scratch.move(source, target, (src, dst))

    return call


def _link(scratch: Scratch, original: Call) -> Call:
    def call(src: Any, dst: Any, **kwargs: Any) -> None:
        if scratch.mapped(src) is None and scratch.mapped(dst) is None:
            original(src, dst, **kwargs)
        else:
            shutil.copy2(src, dst)

    return call


def _symlink(scratch: Scratch, original: Call) -> Call:
    def call(src: Any, dst: Any, *args: Any, **kwargs: Any) -> None:
        full = scratch.mapped(dst, follow=False)
        if full is None:
            original(src, dst, *args, **kwargs)
        elif scratch.exists(full):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), dst)
        else:
            scratch.link(src, full)

    return call


def _rmtree(scratch: Scratch, original: Call) -> Call:
    def call(path: Any, *args: Any, **kwargs: Any) -> None:
        full = scratch.mapped(path)
        if full is not None and os.path.isdir(scratch.for_reading(full)):
            scratch.delete(full)
        else:
            with named(scratch, path):
                original(path if full is None else scratch.place(full), *args, **kwargs)

    return call


def _connect(scratch: Scratch, original: Call) -> Call:
    def call(database: Any, *args: Any, **kwargs: Any) -> Any:
        special = isinstance(database, str) and database.startswith((":", "file:"))
        full = None if special else scratch.mapped(database)
        place = database if full is None else scratch.for_writing(full, keep=True)
        return original(place, *args, **kwargs)

    return call


def _serialize(scratch: Scratch, original: Call) -> Call:
    def call(tensors: Any, filename: Any, *args: Any, **kwargs: Any) -> Any:
        full = scratch.mapped(filename)
        place = filename if full is None else scratch.for_writing(full, keep=False)
        return original(tensors, place, *args, **kwargs)

    return call


def _native_writer(scratch: Scratch, original: Call) -> Call:
    def call(file: Any, *args: Any, **kwargs: Any) -> Any:
        full = scratch.mapped(file)
        place = file if full is None else scratch.for_writing(full, keep=False)
        return original(place, *args, **kwargs)

    return call


def _native_reader(scratch: Scratch, original: Call) -> Call:
    def call(file: Any, *args: Any, **kwargs: Any) -> Any:
        full = scratch.mapped(file)
        return original(file if full is None else scratch.for_reading(full), *args, **kwargs)

    return call


def _spawning(scratch: Scratch, original: Call) -> Call:
    def call(**kwargs: Any) -> Any:
        command = list(original(**kwargs))
        given = (scratch.folder, list(scratch.protected), list(scratch.free), sorted(scratch.gone))
        if "-c" in command:
            place = command.index("-c") + 1
            begin = f"from {__name__} import continue_in_child as c; c{given!r}; "
            command[place] = begin + command[place]
        return command

    return call


_WRAPPERS: dict[str, Wrap] = {
    "lstat": partial(_reading, follow=False),
    "readlink": partial(_reading, follow=False),
    "open": _open,
    "mkdir": _mkdir,
    "remove": _remove,
    "unlink": _remove,
    "rmdir": _rmdir,
    "rename": _rename,
    "replace": _rename,
    "link": _link,
    "symlink": _symlink,
    "listdir": listing,
    "scandir": scanning,
}
