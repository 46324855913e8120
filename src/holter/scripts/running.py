"""Run a script as Python does: same `__main__`, exit code and traceback."""

import builtins
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from holter.record.errors import HolterError

INTERRUPTED = 130  # the exit code after Ctrl-C
_PACKAGE = str(Path(__file__).parent.parent)


@dataclass(frozen=True, slots=True)
class Script:
    """A script or module that is ready to run."""

    name: str  # for display
    argument: str  # sys.argv[0]
    folder: str  # sys.path[0]
    source: bytes
    main: types.ModuleType

    def run(self, arguments: Sequence[str]) -> BaseException | None:
        """Run it as `__main__`; return the exception that ended it (also SystemExit), or None."""
        sys.argv = [self.argument, *arguments]
        sys.path[0] = self.folder
        sys.modules["__main__"] = self.main
        try:
            code = compile(self.source, str(self.main.__file__), "exec", dont_inherit=True)
            exec(code, self.main.__dict__)  # noqa: S102  (running the script is the point)
        except BaseException as error:
            return error
        return None


def find_script(path: str) -> Script:
    """Return a script, or a folder with a `__main__.py`, as `python path` would run it."""
    # Like Python: joined to the working directory, not normalised.
    file = os.path.join(os.getcwd(), path)  # noqa: PTH109, PTH118
    package = Path(path).is_dir()
    if package:
        file = os.path.join(os.getcwd(), os.path.normpath(path), "__main__.py")  # noqa: PTH109, PTH118
    try:
        source = Path(file).read_bytes()
    except OSError as error:
        raise HolterError(
            f"Cannot read {path} ({error.strerror}); pass a script, then its arguments."
        ) from error
    main = _main(file, importlib.machinery.SourceFileLoader("__main__", file))
    folder = str(Path(path).resolve().parent)
    if package:
        main.__package__, folder = "", str(Path(file).parent)
        main.__spec__ = importlib.util.spec_from_loader("__main__", main.__loader__)
    return Script(Path(path).resolve().stem, path, folder, source, main)


def find_module(name: str) -> Script:
    """Return a module or package, as `python -m name` would run it."""
    sys.path.insert(0, str(Path.cwd()))
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
    except ImportError:
        spec = None
    finally:
        del sys.path[0]
    if (
        spec is None
        or spec.origin is None
        or not isinstance(spec.loader, importlib.abc.SourceLoader)
    ):
        raise HolterError(f"No module {name} can be run from {Path.cwd()}.")
    main = _main(spec.origin, spec.loader)
    main.__spec__, main.__package__ = spec, spec.parent
    source = Path(spec.origin).read_bytes()
    return Script(name.rpartition(".")[2], spec.origin, str(Path.cwd()), source, main)


def report_end(error: BaseException | None) -> int:
    """Print the traceback of a script that failed, as Python does, and return its exit code."""
    if error is None:
        return 0
    if isinstance(error, SystemExit):
        if error.code is None or isinstance(error.code, int):
            return error.code or 0
        sys.stderr.write(f"{error.code}\n")
        return 1
    error.__traceback__ = _without_us(error.__traceback__)
    sys.stdout.flush()
    sys.excepthook(type(error), error, error.__traceback__)
    return INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1


class AfterTorch(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Call `then` once, right after torch is imported."""

    def __init__(self, then: Callable[[], None]) -> None:
        self._then = then

    def find_spec(
        self,
        fullname: str,
        path: object = None,  # noqa: ARG002  (part of the protocol)
        target: object = None,  # noqa: ARG002
    ) -> importlib.machinery.ModuleSpec | None:
        """Intercept the import of torch, and of nothing else."""
        if fullname != "torch" or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec("torch")
        if spec is None or spec.loader is None:
            return None
        self._loader = spec.loader
        spec.loader = self
        return spec

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType | None:
        """Delegate to torch's own loader."""
        return self._loader.create_module(spec)

    def exec_module(self, module: types.ModuleType) -> None:
        """Import torch, then call `then`."""
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._then()


def _main(file: str, loader: Any) -> types.ModuleType:
    main = types.ModuleType("__main__")
    main.__file__, main.__loader__ = file, loader
    main.__dict__.update(__builtins__=builtins, __annotations__={}, __cached__=None)
    return main


def _without_us(trace: types.TracebackType | None) -> types.TracebackType | None:
    """Return the traceback without holter's own frames."""
    kept: list[types.TracebackType] = []
    while trace is not None:  # a loop: the traceback may be as deep as the stack
        if not trace.tb_frame.f_code.co_filename.startswith(_PACKAGE):
            kept.append(trace)
        trace = trace.tb_next
    for before, following in pairwise(kept):
        before.tb_next = following
    if kept:
        kept[-1].tb_next = None
    return kept[0] if kept else None
