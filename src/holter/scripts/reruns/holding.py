"""Holds numbers of a script that runs: whatever it sets them to, they stay what they were."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from types import CodeType, FrameType, FunctionType
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from holter.lab.changes import Altered
from holter.lab.changes._hooks import Group, settings_in_steps
from holter.scripts.reruns.numbers import Place, ScriptNumber, as_number, is_script, part_of


@dataclass(frozen=True, slots=True)
class HeldNumber:
    """A number of a script, and what it is held at."""

    number: ScriptNumber
    value: float


@contextmanager
def held(numbers: tuple[HeldNumber, ...], altered: Altered) -> Iterator[None]:
    """Hold one number, in all places where the script keeps it."""
    keys = {each.number.path[0] for each in numbers if each.number.place == Place.OPTION}
    others = [each for each in numbers if each.number.place != Place.OPTION]
    with settings_in_steps(_as_first(keys), altered):
        holder = _Holder(others, altered)
        if others:
            holder.begin()
        yield


def _as_first(keys: set[str]) -> Callable[[Optimizer, Group], dict[str, Any]]:
    """Return what keeps options as they are when an optimizer steps for the first time."""
    first: dict[tuple[int, int, str], Any] = {}

    def settings(optimizer: Optimizer, group: Group) -> dict[str, Any]:
        place = next(n for n, own in enumerate(optimizer.param_groups) if own is group)
        return {
            key: first.setdefault((id(optimizer), place, key), group[key])
            for key in keys
            if key in group and not isinstance(group[key], Tensor)
        }

    return settings


class _Holder:
    """Puts numbers back after each line of the script."""

    def __init__(self, numbers: list[HeldNumber], altered: Altered) -> None:
        self._altered = altered
        self._roots: dict[tuple[str, str], list[HeldNumber]] = {}
        self._returned = [each for each in numbers if each.number.place == Place.RETURNED]
        for each in numbers:
            if each.number.place != Place.RETURNED:
                where = (each.number.file, each.number.function)
                self._roots.setdefault(where, []).append(each)
        self._owners: dict[HeldNumber, Any] = {}  # of attributes

    def begin(self) -> None:
        """Hold them in the frames that are running, and in those that will."""
        frame: FrameType | None = sys._getframe(1)  # noqa: SLF001
        sys.settrace(self._entered)
        spaces: dict[int, dict[str, Any]] = {}
        while frame is not None:
            if is_script(frame):
                frame.f_trace = self._follow
                frame.f_trace_lines = True
                for space in (frame.f_globals, frame.f_locals):
                    spaces[id(space)] = space
            frame = frame.f_back
        for each in self._returned:
            for space in spaces.values():
                self._replace(each, space)

    def _entered(self, frame: FrameType, event: str, arg: Any) -> Any:
        return self._follow(frame, event, arg) if is_script(frame) else None

    def _follow(self, frame: FrameType, event: str, _arg: Any) -> Any:
        try:
            code = frame.f_code
            self._hold_in(self._roots.get((code.co_filename, code.co_qualname), ()), frame, event)
            self._hold_in(self._roots.get((code.co_filename, "<module>"), ()), frame, event)
            for held_number, owner in self._owners.items():
                self._put(owner, held_number)
        except Exception:  # an object of the script that cannot be set
            return self._follow
        return self._follow

    def _hold_in(self, chosen: Any, frame: FrameType, event: str) -> None:
        if not chosen:
            return
        own = frame.f_code.co_qualname
        scope = None  # read once: a second time would undo what was set
        for each in chosen:
            if each.number.function == "<module>" and own != "<module>":
                space = frame.f_globals
            else:
                scope = frame.f_locals if scope is None else scope
                space = scope
            first, *others = each.number.path
            if first not in space:
                continue
            if not others:
                if event != "return":
                    self._put(space, HeldNumber(_entry(each.number), each.value))
                continue
            owner = space[first]
            try:
                for part in others[:-1]:
                    owner = part_of(owner, part)
            except (LookupError, AttributeError, TypeError):
                continue
            self._owners[each] = owner

    def _put(self, owner: Any, held_number: HeldNumber) -> None:
        part = held_number.number.path[-1]
        try:
            now = part_of(owner, part)
        except (LookupError, AttributeError, TypeError):
            return
        read = as_number(now)
        if read is None or read == held_number.value:
            return
        self._altered()
        value = _like(now, held_number.value)
        if part[0] == "[":
            owner[part[1:-1]] = value
        else:
            setattr(owner, part, value)

    def _replace(self, each: HeldNumber, space: dict[str, Any]) -> None:
        """Let a function of the script return the same number at each call."""
        for name, value in list(space.items()):
            if _is_of(value, each.number):
                space[name] = self._returning(value, each.value)
            elif isinstance(value, type):
                for own, method in list(vars(value).items()):
                    if _is_of(method, each.number):
                        setattr(value, own, self._returning(method, each.value))
                    elif isinstance(method, staticmethod) and _is_of(method.__func__, each.number):
                        wrapped = self._returning(method.__func__, each.value)
                        setattr(value, own, staticmethod(wrapped))

    def _returning(self, function: Callable[..., Any], value: float) -> Callable[..., Any]:
        @wraps(function)
        def same(*args: Any, **kwargs: Any) -> Any:
            made = function(*args, **kwargs)
            if as_number(made) in (None, value):
                return made
            self._altered()
            return _like(made, value)

        return same


def _entry(number: ScriptNumber) -> ScriptNumber:
    """Return a variable as an entry of its scope."""
    return ScriptNumber(number.place, (f"[{number.path[0]}]",))


def _is_of(value: Any, number: ScriptNumber) -> bool:
    if not isinstance(value, FunctionType):
        return False
    code: CodeType = value.__code__
    return (code.co_filename, code.co_qualname) == (number.file, number.function)


def _like(now: Any, value: float) -> Any:
    """Return a value in the type of the one that it replaces."""
    if isinstance(now, Tensor):
        return torch.full_like(now, value)
    if isinstance(now, int) and not value.is_integer():
        return value
    kind: Any = type(now)
    return kind(value)
