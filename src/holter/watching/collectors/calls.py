"""The calls of some modules, seen by a hook before their forwards while it is attached."""

import contextlib
import sys
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.utils.hooks import RemovableHandle

_K = TypeVar("_K")


class Calls(Generic[_K]):
    """Tells what the modules it knows are called with, each under the key it was given.

    The hook is torch's global one, as a hook on a module would travel with copies and checkpoints
    of it; all that listen share it. The global hook does not see arguments given by name: where
    `heard` finds nothing to its liking among the others, a hook on the module, there for this one
    call, tells it of those.
    With `returned`, that hook tells of all arguments and of the output instead.
    """

    def __init__(
        self,
        heard: Callable[[_K, nn.Module, Any], bool],
        returned: Callable[[_K, nn.Module, tuple[Any, Any], Any], None] | None = None,
    ) -> None:
        self.spent = 0.0  # seconds inside the hooks
        self._heard = heard
        self._told = returned
        self._known: dict[int, tuple[weakref.ref[nn.Module], _K]] = {}
        self._after: RemovableHandle | None = None
        self._error: Exception | None = None

    @property
    def listens(self) -> bool:
        """Whether a hook is there."""
        return self in _listening

    def know(self, modules: Iterable[tuple[nn.Module, _K]]) -> None:
        """Mind these modules, and no others."""
        self._known = {id(module): (weakref.ref(module), key) for module, key in modules}

    def listen(self) -> None:
        """Hear the calls of the known modules from here on."""
        if self._known:
            _join(self)

    def stop(self) -> None:
        """Listen no more."""
        _leave(self)
        if self._after is not None:
            self._after.remove()
            self._after = None

    def check(self) -> None:
        """Raise what went wrong in a hook, where nothing may be raised."""
        if self._error is not None:
            raise self._error

    def called(self, module: nn.Module, args: Any) -> None:
        """A module of the process is called."""
        entry = self._known.get(id(module))
        if entry is None or entry[0]() is not module:
            return
        known = self._safely(lambda: self._heard(entry[1], module, args))
        if known or self._after or not self.listens:
            return
        if not isinstance(module, torch.jit.ScriptModule):
            self._after = module.register_forward_hook(self._returned, with_kwargs=True)

    def _returned(self, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        if self._after is not None:
            self._after.remove()
            self._after = None
        entry = self._known.get(id(module))
        if entry is None:
            return
        told = self._told
        if told is None:
            self._safely(lambda: self._heard(entry[1], module, kwargs))
        else:
            self._safely(lambda: told(entry[1], module, (args, kwargs), output))

    def _safely(self, tell: Callable[[], bool | None]) -> bool:
        """Whether there is nothing more to tell of this call."""
        began = time.thread_time()
        try:
            return tell() is not False
        except Exception as error:  # never into training; `check` tells
            self._error = error
            self.stop()
            return True
        finally:
            self.spent += time.thread_time() - began


_listening: list[Calls[Any]] = []
_hook: list[RemovableHandle] = []  # while any listen


def _join(calls: Calls[Any]) -> None:
    if calls not in _listening:
        _listening.append(calls)
    if not _hook:
        _hook.append(register_module_forward_pre_hook(_called))


def _leave(calls: Calls[Any]) -> None:
    if calls in _listening:
        _listening.remove(calls)
        if not _listening:
            _hook.pop().remove()


def _called(module: nn.Module, args: Any) -> None:
    if torch.compiler.is_compiling():  # first, so that nothing below becomes part of the graph
        return
    if not _silence:
        for calls in tuple(_listening):
            calls.called(module, args)


_silence: list[None] = []  # an element for each that is going on


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """While it lasts, calls of modules are no part of the training: hooks do not hear them."""
    _silence.append(None)
    try:
        yield
    finally:
        _silence.pop()


def is_silent() -> bool:
    """Whether calls of modules are no part of the training."""
    return bool(_silence)


_compiled: dict[int, bool] = {}  # by the identity of the model, for the length of one moment


def moment_comes() -> None:
    """Look again for compiled models, since the last moment some may have been."""
    _compiled.clear()


def is_compiled(model: nn.Module) -> bool:
    """Whether the model or a part of it is compiled: global hooks make those compile again."""
    dynamo = sys.modules.get("torch._dynamo.eval_frame")
    if dynamo is None:  # not imported: nothing is compiled
        return False
    found = _compiled.get(id(model))
    if found is None:
        found = _compiled[id(model)] = any(
            isinstance(module, dynamo.OptimizedModule) or module._compiled_call_impl is not None  # noqa: SLF001
            for module in model.modules()
            if not isinstance(module, torch.jit.ScriptModule)
        )
    return found
