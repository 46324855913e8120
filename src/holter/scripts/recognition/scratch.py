"""Scratch: a folder over the file system that takes what a script writes while it is examined."""

import errno
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_CACHES = ("XDG_CACHE_HOME", "HF_HOME", "TORCH_HOME", "KERAS_HOME")  # variables that name a folder
_DEVICES = ("/dev", "/proc", "/sys")
# Taken now: they are replaced while a script is examined.
_lstat, _listdir, _rename, _symlink = os.lstat, os.listdir, os.rename, os.symlink


@dataclass(eq=False)
class Scratch:
    """Maps paths: what is written goes to `folder`, what is read is looked for there first.

    Everything is protected but `free`: temporary files, caches of downloads, devices, and the
    folders that holter itself writes to. Of nested folders the innermost decides.
    """

    folder: str
    protected: Sequence[str]
    free: Sequence[str]
    gone: set[str] = field(default_factory=set)  # removed by the script, with all that is inside
    links: dict[str, str] = field(default_factory=dict)  # made by the script, and where they lead
    _inside: threading.local = field(default_factory=threading.local)

    @classmethod
    def over(cls, *protected: Path, free: Sequence[Path] = ()) -> "Scratch":
        """Make a scratch folder; `protected` is the script's folder and the working directory."""
        folder = os.path.realpath(tempfile.mkdtemp(prefix="holter-"))
        caches = [
            Path.home() / ".cache",
            *(Path(os.environ[n]) for n in _CACHES if n in os.environ),
        ]
        spared = (Path(tempfile.gettempdir()), *caches, *map(Path, _DEVICES), Path(folder), *free)
        return cls(
            folder,
            [os.path.realpath(each) for each in protected],
            [os.path.realpath(each) for each in spared],
        )

    @property
    def written(self) -> list[str]:
        """The files in it, by the paths that the script gave them."""
        return sorted(
            os.path.join("/", os.path.relpath(os.path.join(top, name), self.folder))
            for top, _, names in os.walk(self.folder)
            for name in names
        )

    def remove(self) -> None:
        """Delete the folder."""
        with self.aside():
            shutil.rmtree(self.folder, ignore_errors=True)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Work on the real file system: nothing is mapped inside."""
        before, self._inside.on = self.is_aside, True
        try:
            yield
        finally:
            self._inside.on = before

    @property
    def is_aside(self) -> bool:
        """Whether this thread works on the real file system."""
        return bool(vars(self._inside).get("on", False))

    def mapped(self, path: Any, *, follow: bool = True) -> str | None:
        """The full path if it is a protected one; None of anything else.

        Links of the script are followed; the last part of the path only with `follow`.
        """
        if self.is_aside or not isinstance(path, str | bytes | os.PathLike):
            return None
        with self.aside():
            full = os.path.abspath(os.fsdecode(path))
            folder, name = os.path.split(full)
            full = os.path.join(os.path.realpath(folder), name)
        for link, aim in self.links.items():
            if _is_in(full, link) and (follow or full != link):
                full = aim + full[len(link) :]
        return full if self._is_protected(full) else None

    def _is_protected(self, full: str) -> bool:
        innermost = max((len(root) for root in self.protected if _is_in(full, root)), default=0)
        return not any(len(root) > innermost for root in self.free if _is_in(full, root))

    def place(self, full: str) -> str:
        """The path inside the scratch folder."""
        return self.folder + full

    def is_gone(self, full: str) -> bool:
        """Whether the script has removed it, or a folder around it."""
        return any(_is_in(full, root) for root in self.gone)

    def is_below(self, full: str) -> bool:
        """Whether there is such a file or folder of the user that the script can see."""
        return _is_there(full) and not self.is_gone(full)

    def exists(self, full: str) -> bool:
        """Whether the script sees a file or folder there."""
        return _is_there(self.place(full)) or self.is_below(full)

    def names(self, full: str) -> list[str]:
        """What the script sees in a folder."""
        found = set(_listdir(self.place(full))) if os.path.isdir(self.place(full)) else set()
        if self.is_below(full):
            below = _listdir(full)
            found.update(n for n in below if not self.is_gone(os.path.join(full, n)))
        return sorted(found)

    def for_reading(self, full: str) -> str:
        """The path to read."""
        return full if self.is_below(full) and not _is_there(self.place(full)) else self.place(full)

    def for_writing(self, full: str, *, keep: bool) -> str:
        """The path to write; with `keep` what is there is copied first, a folder whole."""
        place = self.place(full)
        with self.aside():
            if self.exists(os.path.dirname(full)):
                Path(place).parent.mkdir(parents=True, exist_ok=True)
            if keep and self.is_below(full):
                self._copy(full, place)
        return place

    def _copy(self, full: str, place: str) -> None:
        if os.path.isdir(full):
            Path(place).mkdir(parents=True, exist_ok=True)
            for name in self.names(full):
                inner = os.path.join(full, name)
                if self.is_below(inner):
                    self._copy(inner, self.place(inner))
        elif not _is_there(place):
            shutil.copy2(full, place)

    def delete(self, full: str) -> None:
        """Let a file or folder be gone for the script."""
        place = self.place(full)
        self.links.pop(full, None)
        with self.aside():
            if os.path.isdir(place) and not os.path.islink(place):
                shutil.rmtree(place)
            elif _is_there(place):
                Path(place).unlink()
            if self.is_below(full):
                self.gone.add(full)

    def move(self, source: str | None, target: str | None, paths: tuple[Any, Any]) -> None:
        """Rename; of each side the full path if it is protected, and as the script gave it."""
        with self.aside():
            here = paths[0] if source is None else self.for_writing(source, keep=True)
            there = paths[1] if target is None else self.for_writing(target, keep=False)
            if target is not None and os.path.isdir(here) and self.exists(target):
                if self.names(target):
                    raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), str(paths[1]))
                self.delete(target)
            try:
                _rename(here, there)
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
                shutil.move(here, there)
            if source is not None and self.is_below(source):
                self.gone.add(source)

    def link(self, target: Any, full: str) -> None:
        """Make a symbolic link."""
        aim = os.path.join(os.path.dirname(full), os.fsdecode(target))
        protected = self.mapped(aim)
        if protected is not None:
            self.links[full] = protected
        _symlink(
            aim if protected is None else self.place(protected), self.for_writing(full, keep=False)
        )


def _is_in(full: str, root: str) -> bool:
    return full == root or full.startswith(root.rstrip(os.sep) + os.sep)


def _is_there(path: str) -> bool:
    try:
        _lstat(path)
    except (OSError, ValueError):
        return False
    return True
