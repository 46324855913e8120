"""Where in the user's program an operation stands: source line and module path."""

import linecache
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import graph

from holter.watching.collectors.naming import unwrapped

_HOLTER = str(Path(__file__).parents[2])
_TORCH = str(Path(torch.__file__).parent)
_DYNAMO = (f"{_TORCH}/_dynamo", f"{_TORCH}/_compile.py", f"{_TORCH}/utils/_contextlib.py")
_STDLIB = str(Path(sysconfig.get_path("stdlib")))
_GO_BETWEENS = ("/einops/", "/opt_einsum/")  # libraries that only hand on what was asked for
_ENGINE = graph._engine_run_backward.__code__  # noqa: SLF001  (below it, autograd is at work)


@dataclass(frozen=True, slots=True)
class CallSite:
    """A place in the program at which an operation was called."""

    code: CodeType | None = None
    instruction: int = 0
    number: int = 0
    module: str = ""
    operation: str = ""
    node: str = ""  # of autograd that was running
    derived: bool = False  # what was running was a gradient of the operation that stands here

    @property
    def where(self) -> str:
        """File and line, as people name them."""
        return f"{shortened(self.code.co_filename)}:{self.number}" if self.code else ""

    @property
    def line(self) -> str:
        """The source text of the line."""
        return linecache.getline(self.code.co_filename, self.number).strip() if self.code else ""

    @property
    def expression(self) -> str:
        """The part of the line that was being computed, where it stands on one line."""
        if self.code is None:
            return ""
        spans = list(self.code.co_positions())
        first, last, start, end = spans[self.instruction // 2]
        if first is None or first != last or start is None or end is None:
            return ""
        text = linecache.getline(self.code.co_filename, first).encode()
        return text[start:end].decode(errors="replace").strip()


class Sources:
    """Knows the line of the operation that is running, and of those whose gradient it is."""

    def __init__(self, models: Mapping[str, nn.Module], *, bottom: CodeType) -> None:
        self._ends = (_ENGINE, bottom)  # beyond `bottom`, nobody is of interest
        self._paths = dict(_paths(models))
        self._modules: list[str] = []  # that are running, the innermost last
        self._forward: dict[int, CallSite] = {}  # by the number of the autograd node
        self._latest = CallSite()  # of the node that ran last
        self._stack = ExitStack()

    def __enter__(self) -> "Sources":
        for module, path in self._paths.items():
            entered = module.register_forward_pre_hook(partial(self._entered, path))
            left = module.register_forward_hook(self._left, always_call=True)
            self._stack.callback(entered.remove)
            self._stack.callback(left.remove)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def module(self) -> str:
        """The path of the module that is running; empty outside of all."""
        return self._modules[-1] if self._modules else ""

    def remember(self, operation: str) -> None:
        """Keep the line of an operation for the node that computes its gradient."""
        number = torch._C._autograd._get_sequence_nr() - 1  # noqa: SLF001  (of the latest node)
        if number not in self._forward:
            self._forward[number] = self.here(operation)

    def here(self, operation: str) -> CallSite:
        """Where the running operation stands; a gradient stands where its operation does."""
        node: Any = torch._C._current_autograd_node()  # noqa: SLF001  (there is no public way)
        name = "" if node is None else node.name()
        if node is not None:
            self._latest = self._forward.get(node._sequence_nr(), self._latest)  # noqa: SLF001
        frame: FrameType | None = sys._getframe(1)  # noqa: SLF001
        inner: FrameType | None = None  # the innermost of torch's own
        while frame is not None and frame.f_code not in self._ends:
            file = frame.f_code.co_filename
            if not is_hidden(file):
                return self._site(frame, operation, name)
            if inner is None and not file.startswith((_HOLTER, *_DYNAMO)):
                inner = frame
            frame = frame.f_back
        in_engine = frame is not None and frame.f_code is _ENGINE
        if node is not None or in_engine:  # autograd's own doing
            return replace(self._latest, node=name, derived=True)
        return self._site(inner, operation, name) if inner else CallSite()

    def variable(self, tensor: Tensor) -> str:
        """The name that the running function has for a tensor; empty if it has none."""
        frame: FrameType | None = sys._getframe(1)  # noqa: SLF001
        while frame is not None and frame.f_code not in self._ends:
            if not is_hidden(frame.f_code.co_filename):
                names = [name for name, each in frame.f_locals.items() if each is tensor]
                return names[0] if names else ""
            frame = frame.f_back
        return ""

    def _site(self, frame: FrameType, operation: str, node: str) -> CallSite:
        code, last, line = frame.f_code, frame.f_lasti, frame.f_lineno
        return CallSite(code, last, line, self.module, operation, node)

    def _entered(self, path: str, *_: Any) -> None:
        self._modules.append(path)

    def _left(self, *_: Any) -> None:
        if self._modules:
            self._modules.pop()


def _paths(models: Mapping[str, nn.Module]) -> Iterator[tuple[nn.Module, str]]:
    """The path of each module; a model that has no name is called as its class."""
    for label, model in models.items():
        inner = unwrapped(model)
        for path, module in inner.named_modules():
            plain = path.replace("_orig_mod.", "").removesuffix("._orig_mod")
            whole = ".".join(part for part in (label, plain) if part)
            if not isinstance(module, torch.jit.ScriptModule):  # which take no hooks of Python
                yield module, whole or type(inner).__name__


@cache
def is_hidden(file: str) -> bool:
    """Whether a file is a part of torch, of holter, or of what comes with Python."""
    return (
        file.startswith((_HOLTER, _TORCH, "<frozen", "<string>"))
        or any(between in file for between in _GO_BETWEENS)
        or (file.startswith(_STDLIB) and "-packages" not in file)
    )


def shortened(file: str) -> str:
    """A path as short as it can be told: from here, from where packages lie, or the name."""
    # What is installed lies below the working directory, too, where that holds the environment.
    own = str(Path(_TORCH).parent) if file.startswith(_TORCH) else str(Path.cwd())
    for root in (own, *sorted(sys.path, key=len, reverse=True)):
        if root and file.startswith(f"{root}/"):
            return file[len(root) + 1 :]
    return Path(file).name
