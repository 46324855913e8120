"""Belongings: what objects of a script keep, such as an environment its position, put back."""

import random
from collections import deque
from collections.abc import Callable, Iterable
from types import FunctionType, MethodType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from holter.scripts.recognition.kinds import PLAIN, is_users, used_by

_MOST = 20_000  # objects that are followed
_MOST_BYTES = 64 * 2**20  # of one array: a larger one is data, and nobody changes it

Undo = Callable[[], None]


class Belongings:
    """The state of plain objects, and of all that can be reached from them, at one moment."""

    def __init__(self, roots: Iterable[object]) -> None:
        self._undo: list[Undo] = []
        self._held: list[object] = []  # so that no identity is used twice
        self.complete = True
        seen: set[int] = set()
        waiting = list(roots)
        while waiting:
            each = waiting.pop()
            if isinstance(each, PLAIN) or id(each) in seen:
                continue
            if len(seen) >= _MOST:
                self.complete = False
                break
            seen.add(id(each))
            self._held.append(each)
            waiting += self._keep(each)

    def restore(self) -> None:
        """Put everything back as it was."""
        for undo in reversed(self._undo):
            undo()

    def _keep(self, value: Any) -> list[object]:
        """Note how to restore one object; what it refers to."""
        match value:
            case Tensor():
                self._undo += _tensor(value)
            case np.ndarray():
                self._undo += _array(value)
            case torch.Generator():
                state = value.get_state()
                self._undo.append(lambda: _ignore(value.set_state(state)))
            case np.random.Generator():
                position = value.bit_generator.state
                self._undo.append(lambda: setattr(value.bit_generator, "state", position))
            case random.Random():
                drawn = value.getstate()
                self._undo.append(lambda: value.setstate(drawn))
            case FunctionType() | MethodType():
                own = [value.__self__] if isinstance(value, MethodType) else []
                return [*own, *used_by(value)]
            case list() | deque():
                items = list(value)
                self._undo.append(lambda: _refill(value, items))
                return items
            case dict():
                pairs = dict(value)
                self._undo.append(lambda: _refill_dict(value, pairs))
                return list(pairs.values())
            case set():
                members = set(value)
                self._undo.append(lambda: _refill_set(value, members))
            case tuple():
                return list(value)
            case _ if is_users(value):
                held = dict(vars(value))
                self._undo.append(lambda: _refill_dict(vars(value), held))
                return list(held.values())
            case _:
                pass
        return []


def _ignore(_: object) -> None:
    return None


def _tensor(value: Tensor) -> list[Undo]:
    if value.requires_grad or value.numel() * value.element_size() > _MOST_BYTES:
        return []
    kept, version = value.detach().clone(), value._version  # noqa: SLF001

    def undo() -> None:
        if value._version != version:  # noqa: SLF001
            value.data.copy_(kept)

    return [undo]


def _array(value: Any) -> list[Undo]:
    if value.nbytes > _MOST_BYTES or not value.flags.writeable:
        return []
    kept = value.copy()

    def undo() -> None:
        value[...] = kept

    return [undo]


def _refill(value: Any, items: list[object]) -> None:
    if len(value) != len(items) or any(a is not b for a, b in zip(value, items, strict=True)):
        value.clear()
        value.extend(items)


def _refill_dict(value: dict[Any, object], pairs: dict[Any, object]) -> None:
    value.clear()
    value.update(pairs)


def _refill_set(value: set[object], members: set[object]) -> None:
    value.clear()
    value.update(members)
