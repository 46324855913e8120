"""Tap: one attribute of torch, replaced so that its calls can be heard, and put back."""

import functools
import inspect
import types
import weakref
from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch.jit import _builtins

from holter.watching.forks import home

Call = Callable[..., Any]


class Wanted(Protocol):
    """Says whether calls are of interest now."""

    @property
    def is_on(self) -> bool:
        """Whether they are."""


class Interest:
    """Whether calls are of interest now: one attribute, because some functions are called often."""

    __slots__ = ("is_on",)

    def __init__(self) -> None:
        self.is_on = True


class Tap:
    """One replaced attribute. A tap that another has covered lets calls pass once removed."""

    def __init__(
        self,
        target: object,
        name: str,
        around: Callable[[Callable[..., Any]], Callable[..., Any]],
        *,
        guarded: bool = True,
        interest: Wanted | None = None,
    ) -> None:
        self._target, self._name = target, name
        self._inherited = isinstance(target, type) and name not in vars(target)
        self._original = original = inspect.getattr_static(target, name)
        self._removed = False
        wanted: Wanted = interest or Interest()
        watched = around(original)
        here, compiler = home(), torch.compiler
        is_traced, is_compiling = compiler.is_dynamo_compiling, compiler.is_compiling

        def tapped(*args: Any, **kwargs: Any) -> Any:
            # Compiled code and forked workers are left alone. What dynamo sees first decides: it
            # would compile again whenever an attribute changes that it has looked at.
            if is_traced() or not wanted.is_on or self._removed or here.is_left or is_compiling():
                return original(*args, **kwargs)
            return watched(*args, **kwargs)

        wrapper: Any = watched  # which must check for itself whether it is still wanted
        if guarded:
            # With the globals of the original, torch.jit.script compiles one as it would the other.
            code, closure = tapped.__code__, tapped.__closure__
            scope = getattr(original, "__globals__", globals())
            wrapper = types.FunctionType(code, scope, name, None, closure)
            _script_as(original, wrapper)
        functools.update_wrapper(wrapper, original)
        wrapper.holter_tap = self  # after the update, which copies that of a tap below
        setattr(target, name, wrapper)

    def remove(self) -> None:
        """Put the original back, past all taps that have been removed; safe to call twice."""
        self._removed = True
        current = inspect.getattr_static(self._target, self._name)
        bottom = self
        while (tap := getattr(current, "holter_tap", None)) is not None and tap._removed:  # noqa: SLF001
            bottom, current = tap, tap._original  # noqa: SLF001
        if not bottom._inherited or current is not bottom._original:  # noqa: SLF001
            setattr(self._target, self._name, current)
        elif self._name in vars(self._target):
            delattr(self._target, self._name)


def _script_as(original: Any, wrapper: Any) -> None:
    """Let torch.jit.script take the wrapper of a function of torch's core for that function."""
    builtins: Any = _builtins  # without types
    table = builtins._get_builtin_table()  # noqa: SLF001
    name = table.get(id(original))
    if name is not None:
        table[id(wrapper)] = name
        weakref.finalize(wrapper, table.pop, id(wrapper), None).atexit = False
