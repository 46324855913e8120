"""Buffers of samples whose elements hold the same arrays, which the loop overwrites in place."""

import sys
import zlib
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import partial
from itertools import islice
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from holter.record.signals import SAMPLE_ALIASED, Signal
from holter.watching.collectors import Reading
from holter.watching.collectors.calls import Calls, is_compiled
from holter.watching.collectors.holdings import FRAMES, lists_in, named_values
from holter.watching.collectors.inputs import roots
from holter.watching.collectors.moments import AfterUpdate, BackwardBegins, Closing, Depth, Joined
from holter.watching.collectors.roster import Roster
from holter.watching.frames import Frames, is_of_script

_LOOKED_AT = 64  # elements of a container, the last
_FEWEST = 16  # of them
_FIELDS = 16  # of an element
_ATTRIBUTES = 64  # of an object
_CONTAINERS = 64  # in one look
_SEARCHED = 1024  # elements, for the one that was last at the last look
_SAMPLED = 64  # values of an array
_NAMED = 8  # variables with a name of their own
_CALLS, _LOOKS = 4, 24  # of a model without gradients, for one look; looks before one step

_Field = int | str
_WHOLE = ""  # the field of an element that is an array itself


class _Place(NamedTuple):
    """Where an array lies."""

    address: int
    shape: tuple[int, ...]


class _Mark(NamedTuple):
    """The last element of a container at a look, without a reference to it."""

    length: int  # of the container
    element: int  # its id
    numbers: tuple[float, ...]  # in its fields
    contents: dict[_Field, tuple[_Place, int]]  # its arrays, with a checksum of each


class Aliases:
    """Looks for arrays that many elements of a container share and that change while they do.

    The last element of a container is remembered by its address and the checksums of its arrays.
    If it is still there at the next look, behind newer elements, and an array of it that newer
    elements hold as well has changed, the elements that share their arrays are counted.

    A look is taken at `backward()`, and before steps that are read whole at calls of a model
    without gradients: a function that plays episodes has returned when `backward()` is called.
    """

    emits: ClassVar[tuple[Signal, ...]] = (SAMPLE_ALIASED,)
    at: ClassVar[tuple[type, ...]] = (Joined, BackwardBegins, AfterUpdate, Closing)
    depth: ClassVar[Depth] = Depth.FULL
    wakes_at: ClassVar[tuple[type, ...]] = ()

    def __init__(self) -> None:
        self.declined: list[str] = []
        self._frames = Frames()
        self._calls: Calls[str] = Calls(self._called)
        self._count = 0  # of calls without gradients before the coming step
        self._counted: int | None = None  # the id of the module whose calls they are
        self._marks: dict[int, _Mark] = {}  # by id of the container
        self._marks_of_calls: dict[int, _Mark] = {}
        self._seen: dict[str, float] = {}  # shares at calls before the coming step, the largest
        self._owners: dict[str, tuple[str, ...]] = {}

    @property
    def spent(self) -> float:
        """Seconds inside the hooks, which no moment sees."""
        return self._calls.spent

    def read(self, moment: Joined | BackwardBegins | AfterUpdate | Closing) -> Iterator[Reading]:
        """Yield the share of aliased elements of each container that was added to."""
        if not isinstance(moment, BackwardBegins):
            self._listen(moment)
        elif moment.opens_step:
            self._calls.check()
            self._calls.stop()
            self._marks, shares = self._look(self._marks)
            seen, self._seen = self._seen, {}
            for name, share in {**seen, **shares}.items():
                if name not in self._owners and len(self._owners) < _NAMED:
                    self._owners[name] = (name,)
                if name in self._owners:
                    largest = max(share, seen.get(name, 0.0))
                    yield Reading(SAMPLE_ALIASED, self._owners[name], [largest])

    def _listen(self, moment: Joined | AfterUpdate | Closing) -> None:
        """Hear calls of the models before a step that is read whole."""
        self._calls.stop()
        if isinstance(moment, Closing):
            return
        depth = moment.depth if isinstance(moment, Joined) else moment.next_depth
        roster: Roster = moment.roster
        if depth < self.depth or any(is_compiled(model.module) for model in roster.models):
            return
        self._count, self._counted, self._marks_of_calls = 0, None, {}
        # A model that is called through methods is called part by part.
        parts = ((part, model.label) for model in roster.models for part in model.module.modules())
        self._calls.know([*parts, *roots(roster)])
        self._calls.listen()

    def _called(self, _: str, module: nn.Module, __: object) -> bool:
        if not torch.is_grad_enabled():
            if self._counted is None:
                self._counted = id(module)
            if self._counted != id(module):
                return True
            self._count += 1
            if self._count % _CALLS == 0:
                self._marks_of_calls, shares = self._look(self._marks_of_calls)
                for name, share in shares.items():
                    self._seen[name] = max(share, self._seen.get(name, 0.0))
            if self._count >= _CALLS * _LOOKS:
                self._calls.stop()
        return True

    def _look(self, before: Mapping[int, _Mark]) -> tuple[dict[int, _Mark], dict[str, float]]:
        """Return the marks of all containers, and the share of aliased elements of some."""
        marks: dict[int, _Mark] = {}
        shares: dict[str, float] = {}
        for frame in islice(self._frames.all(), FRAMES):
            read = partial(_shares, before, marks)
            for name, share in self._frames.read(frame, read):
                shares.setdefault(name, share)
        return marks, shares


def _shares(
    known: Mapping[int, _Mark], marks: dict[int, _Mark], variables: Mapping[str, Any]
) -> list[tuple[str, float]]:
    """Return shares by name, and add the marks of the containers of these variables."""
    shares = []
    containers = list(_containers(variables))
    for name, container in containers:
        if id(container) in marks or len(marks) >= _CONTAINERS:
            continue
        before = known.get(id(container))
        with suppress(IndexError, RuntimeError):  # another thread may change it meanwhile
            if before is not None and _is_last(container, before):
                marks[id(container)] = before
                continue
            share = None if before is None else _share(container, before)
            if share and _WHOLE in _values(container[-1]) and not _goes_on(container, containers):
                share = 0.0
            mark = _mark(container)
            if mark is not None:
                marks[id(container)] = mark
                if share is not None:
                    shares.append((name, share))
    return shares


def _goes_on(container: Sequence[Any], others: Sequence[tuple[str, Any]]) -> bool:
    """Whether another list is filled together with one of plain arrays, with other elements.

    Its elements are of different times, then; a list may hold one array many times on purpose.
    """
    for _, other in others:
        if other is container or abs(len(other) - len(container)) > 1:
            continue
        tokens = [_token(other[-n]) for n in range(1, min(len(other), _FEWEST) + 1)]
        if len(set(tokens)) > len(tokens) // 2:
            return True
    return False


def _containers(variables: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the lists and deques among variables, in dicts, and in objects of the script."""
    for name, value in named_values(variables):
        if type(value) in (list, deque):
            lists = [(name, value)]
        elif type(value) is dict:
            lists = list(lists_in(name, value))
        elif _is_own(type(value)):
            attributes = list(vars(value).items())[:_ATTRIBUTES]
            lists = [(f"{name}.{word}", each) for word, each in attributes]
        else:
            continue
        yield from (each for each in lists if type(each[1]) in (list, deque) and each[1])


def _is_own(kind: type) -> bool:
    """Whether a class is one of the script, and its objects have attributes."""
    if not kind.__dictoffset__ or issubclass(kind, type):
        return False
    if kind.__module__ == "__main__":
        return True
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return isinstance(file, str) and is_of_script(file)


def _is_last(container: Sequence[Any], mark: _Mark) -> bool:
    return len(container) == mark.length and id(container[-1]) == mark.element


def _mark(container: Sequence[Any]) -> _Mark | None:
    """Return what tells the last element of a container, or None if it has no arrays."""
    values = _values(container[-1])
    contents = {
        field: (place, checksum)
        for field, value in values.items()
        if (place := _place(value)) is not None and (checksum := _checksum(value)) is not None
    }
    if not contents:
        return None
    return _Mark(len(container), id(container[-1]), _numbers(values), contents)


def _share(container: Sequence[Any], before: _Mark) -> float | None:
    """Return the largest share of elements that share arrays which change, if any were added."""
    marked = _marked(container, before)
    if marked is None:
        return None
    count = min(len(container), _LOOKED_AT)
    newest = [container[-n] for n in range(1, count + 1)]
    # An element that is there twice, as in a batch with replacement, counts once.
    last = newest if _WHOLE in marked else list({id(each): each for each in newest}.values())
    if len(last) < _FEWEST:
        return None
    changed = {
        field: place
        for field, (place, checksum) in before.contents.items()
        if _place(marked.get(field)) == place and _checksum(marked[field]) != checksum
    }
    if not changed:
        return 0.0
    elements = [
        {field: _token(value) for field, value in _values(element).items()} for element in last
    ]
    shares = [0.0]
    for field, place in changed.items():
        holders = [element for element in elements if element.get(field) == place]
        if field == _WHOLE or _varies(holders, field):
            # Several environments that are stepped together have an array each.
            held = Counter(element.get(field) for element in elements)
            shared = [n for token, n in held.items() if n > 1 and type(token) is _Place]
            shares.append(sum(shared) / len(elements))
    return max(shares)


def _varies(elements: list[dict[_Field, Any]], constant: _Field) -> bool:
    """Whether elements differ in a field beside one."""
    others = {field for element in elements for field in element if field != constant}
    return any(len({element.get(field) for element in elements}) > 1 for field in others)


def _marked(container: Sequence[Any], mark: _Mark) -> dict[_Field, Any] | None:
    """Return the fields of the element that was last at the last look, if newer ones follow it."""
    place = mark.length - 1
    if place < len(container) - 1 and id(container[place]) == mark.element:
        element = container[place]
    else:  # a container of fixed length, which loses its oldest elements
        older = islice(reversed(container), 1, _SEARCHED)
        element = next((each for each in older if id(each) == mark.element), None)
    values = _values(element)
    # The address may be that of a new element by now.
    return values if values and _numbers(values) == mark.numbers else None


def _values(element: Any) -> dict[_Field, Any]:
    """Return the fields of an element, by position or name; an array is its only field."""
    kind = type(element)
    if kind in (np.ndarray, Tensor):
        return {_WHOLE: element}
    if kind is list or isinstance(element, tuple):
        return dict(enumerate(islice(element, _FIELDS)))
    if kind is dict:
        items = islice(list(element.items()), _FIELDS)
        return {key: value for key, value in items if type(key) in (int, str)}
    if is_dataclass(kind):
        names = [field.name for field in fields(kind)[:_FIELDS]]
        return {name: getattr(element, name, None) for name in names}
    return {}


def _numbers(values: Mapping[_Field, Any]) -> tuple[float, ...]:
    return tuple(value for value in values.values() if type(value) in (bool, int, float))


def _token(value: Any) -> Any:
    """Return what is equal for two fields only if they hold the same array, number or object."""
    place = _place(value)
    if place is not None:
        return place
    if isinstance(value, np.integer | np.floating | np.bool_):
        return value.item()
    return value if type(value) in (bool, int, float, str) else id(value)


def _place(value: Any) -> _Place | None:
    """Return where an array or a CPU tensor of several elements lies."""
    if type(value) is np.ndarray:
        if value.size < 2 or value.dtype.hasobject:
            return None
        return _Place(value.__array_interface__["data"][0], value.shape)
    if type(value) not in (Tensor, nn.Parameter) or value.layout is not torch.strided:
        return None
    if value.device.type != "cpu" or value.numel() < 2:
        return None
    try:
        return _Place(value.data_ptr(), tuple(value.shape))
    except RuntimeError:  # one of torch.func, which has no memory of its own
        return None


def _checksum(value: Any) -> int | None:
    """Return a checksum of a few elements of an array or a CPU tensor."""
    count = value.size if type(value) is np.ndarray else value.numel()
    stride = max(1, count // _SAMPLED) | 1  # odd: not always the same column of an image
    if type(value) is np.ndarray:
        return zlib.crc32(value.flat[::stride].tobytes())
    try:
        sample = value.detach().take(torch.arange(0, count, stride, device="cpu"))
        return zlib.crc32(sample.view(torch.uint8).numpy().tobytes())
    except (RuntimeError, TypeError):  # a type that has no such operations
        return None
