"""Rollouts: calls of the script before a step that have computed what the loss is made of.

A policy that saves log probabilities while it plays, or a learner whose callbacks leave the loss in
an attribute: such a step is repeated by making the same calls again, with the same random numbers.
"""

import inspect
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import CellType, FrameType, FunctionType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from holter.lab.randomness import RandomState
from holter.scripts.recognition.kinds import has_graph, is_plain, is_users, tensors

ROLLOUT = "__holter_rollout__"  # the name under which a row has it
_MOST = 4096  # calls that are kept

_NOT_CALLS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


@dataclass(frozen=True, eq=False)
class Call:
    """A function to be called again, and the random numbers it drew from."""

    function: FunctionType
    names: tuple[str, ...]  # of its keyword-only arguments
    random: RandomState

    def again(self, arguments: list[Any], others: dict[str, Any]) -> None:
        """Call it as it was called."""
        self.random.restore()
        self.function(*arguments, **others)


@dataclass(frozen=True, eq=False)
class Slot:
    """A place that keeps data from one call to another: an attribute, or a list or dictionary."""

    owner: Any
    name: str | None  # of the attribute; None for a container itself

    def get(self) -> Any:
        """What is in it."""
        return vars(self.owner).get(self.name) if self.name is not None else _copied(self.owner)

    def put(self, value: Any) -> None:
        """Put something in; containers stay the same objects."""
        held = self.owner if self.name is None else vars(self.owner).get(self.name)
        if isinstance(held, list | deque) and isinstance(value, list | deque):
            kept = list(value)
            held.clear()
            held.extend(kept)
        elif isinstance(held, dict) and isinstance(value, dict):
            kept_items = dict(value)
            held.clear()
            held.update(kept_items)
        elif self.name is not None:
            vars(self.owner)[self.name] = value


@dataclass(eq=False)
class _Open:
    frame: FrameType
    call: Call
    arguments: list[Any]
    others: dict[str, Any]
    sequence: int
    first: int  # how many calls were kept when it began: those after are part of it
    spoiled: bool = False  # whether it calls backward itself


@dataclass(eq=False)
class Rollouts:
    """The outermost calls since the last backward that have built a graph."""

    kept: list[Any] = field(default_factory=list)
    _open: list[_Open] = field(default_factory=list)

    def begin(self, frame: FrameType) -> None:
        """A function of the user is called."""
        code = frame.f_code
        if code.co_flags & _NOT_CALLS or not code.co_flags & inspect.CO_NEWLOCALS:
            return
        own = frame.f_locals
        count, keywords = code.co_argcount, code.co_kwonlyargcount
        names = code.co_varnames
        arguments = [own.get(name) for name in names[:count]]
        after = count + keywords
        if code.co_flags & inspect.CO_VARARGS:
            arguments += own.get(names[after], ())
            after += 1
        only = names[count : count + keywords]
        others = {name: own.get(name) for name in only}
        if code.co_flags & inspect.CO_VARKEYWORDS:
            others |= own.get(names[after], {})
        cells = tuple(CellType(own.get(name)) for name in code.co_freevars)
        function = FunctionType(code, frame.f_globals, code.co_name, None, cells)
        call = Call(function, only, RandomState.now())
        self._open.append(
            _Open(frame, call, _copied(arguments), _copied(others), _sequence(), len(self.kept))
        )

    def end(self, frame: FrameType) -> None:
        """It returns: a call that has built a graph stands for all calls inside of it."""
        while self._open and self._open[-1].frame is not frame:
            if not any(each.frame is frame for each in self._open):
                return
            self._open.pop()
        if not self._open:
            return
        done = self._open.pop()
        if done.spoiled:
            return
        if _sequence() > done.sequence and len(self.kept) < _MOST:
            del self.kept[done.first :]
            self.kept.append([done.call, done.arguments, done.others])

    def backward(self) -> None:
        """The graph is used up; functions that call backward are no part of a rollout."""
        self.kept.clear()
        for each in self._open:
            each.spoiled, each.first = True, 0


def slots(names: Mapping[str, Any], wanted: Iterable[str]) -> list[Slot]:
    """The places in which variables keep data that functions leave there."""
    found = []
    for name in sorted(wanted):
        value = names.get(name)
        if isinstance(value, list | deque | dict):
            found.append(Slot(value, None))
        elif isinstance(value, nn.Module) or is_users(value):
            found += [
                Slot(value, attribute)
                for attribute, each in vars(value).items()
                if not (isinstance(value, nn.Module) and attribute.startswith("_"))
                and not isinstance(each, nn.Parameter)
                and (isinstance(each, list | deque | dict | np.ndarray) or tensors(each))
                and (has_graph(each) or is_plain(each) or tensors(each))
            ]
    return found


def carried(places: Iterable[Slot]) -> set[Any]:
    """The nodes of the graphs that values in them have."""
    held_tensors = (each for place in places for each in tensors(place.get()))
    return {each.grad_fn for each in held_tensors if each.grad_fn is not None}


def held(places: Iterable[Slot]) -> list[Any]:
    """What is in them, without what has a graph: that is computed again."""
    return [[place, _emptied(place.get())] for place in places]


class Repeated:
    """Makes the calls of a rollout again; afterwards all places hold what they held."""

    def __init__(self, rollout: Mapping[str, Any]) -> None:
        self._rollout = rollout
        self._were: list[tuple[Slot, Any]] = []

    def __enter__(self) -> None:
        for place, value in self._rollout["held"]:
            self._were.append((place, _shallow(place.get())))
            place.put(_copied(value))
        for call, arguments, others in self._rollout["calls"]:
            call.again(_copied(arguments), _copied(others))

    def __exit__(self, *_: object) -> None:
        for place, was in reversed(self._were):
            place.put(was)


def _shallow(value: Any) -> Any:
    return type(value)(value) if isinstance(value, list | deque | dict) else value


def _emptied(value: Any) -> Any:
    if isinstance(value, list | deque | dict):
        return type(value)() if has_graph(value) else _copied(value)
    return None if has_graph(value) else _copied(value)


def _copied(value: Any) -> Any:
    """The same structure with copies of tensors and arrays; objects are used as they are."""
    return pytree.tree_map(_leaf, value)


def _leaf(value: Any) -> Any:
    if isinstance(value, Tensor) and not isinstance(value, nn.Parameter):
        return value if value.grad_fn is not None else value.detach().clone()
    return value.copy() if isinstance(value, np.ndarray) else value


def _sequence() -> int:
    """How many nodes of autograd this thread has made."""
    autograd: Any = torch._C._autograd  # noqa: SLF001
    count: int = autograd._get_sequence_nr()  # noqa: SLF001
    return count
