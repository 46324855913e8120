"""Variables of the training loop that keep results of earlier steps, with or without graphs."""

import dis
import linecache
import sys
from collections import deque
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from holter.record.events import ResultsKept
from holter.record.signals import GRAPH_KEPT, MEMORY_HELD, Signal
from holter.watching.collectors import Reading
from holter.watching.collectors.moments import BackwardBegins, Depth
from holter.watching.frames import Frames
from holter.watching.nodes import number_of

FRAMES = 6  # of the script, the innermost first
_VARIABLES = 256  # of a frame or an object
_VALUES = 32  # of a dict
_TERMS = 1024  # of a sum
_KEPT = 8  # variables with a name of their own
_TELLING = 4  # results of earlier steps from which on the line is looked for
_OLDEST = 8  # elements of a container, among which is one with a graph
# Nodes of sums and averages of losses: what lies below them are the terms.
_SUMS = frozenset(("AddBackward0", "SubBackward0", "MulBackward0", "DivBackward0"))
_ADDERS = frozenset(("append", "extend", "add", "setdefault", "appendleft"))


class _Held(NamedTuple):
    """What a variable holds."""

    results: int  # elements of a container, or terms of a sum
    size: float  # bytes, estimated by the last element; 0 for a sum
    has_graph: bool
    is_sum: bool


class Holdings:
    """Looks at the variables of the frames that call backward().

    Only a variable that holds more than when it was last looked at is recorded: batches, models and
    data sets stay as they are. Graphs count if the oldest was there at the last look, which the
    number says that autograd gives each node: the terms of a longer rollout are all of this step.
    """

    emits: ClassVar[tuple[Signal, ...]] = (GRAPH_KEPT, MEMORY_HELD)
    at: ClassVar[tuple[type, ...]] = (BackwardBegins,)
    depth: ClassVar[Depth] = Depth.FULL
    wakes_at: ClassVar[tuple[type, ...]] = ()

    def __init__(self) -> None:
        self._frames = Frames()
        self._before: dict[str, int] = {}  # counts by variable
        self._newest = -1  # number of the newest node that was there at the last look
        self._owners: dict[str, tuple[str, ...]] = {}
        self._told: set[str] = set()

    def read(self, moment: BackwardBegins) -> Iterator[Reading | ResultsKept]:
        """Yield how much each variable holds that has grown and, once, the line that adds to it."""
        if not moment.opens_step:
            return
        counts: dict[str, int] = {}
        holdings = partial(_holdings, newest=self._newest)
        for frame in islice(self._frames.all(), FRAMES):
            for name, held in self._frames.read(frame, holdings).items():
                if name in counts:  # of a frame further inside
                    continue
                counts[name] = held.results
                if held.results <= self._before.get(name, held.results):
                    continue
                yield from self._readings(name, held)
                if held.results >= _TELLING and name not in self._told:
                    self._told.add(name)
                    yield self._line(name, held, frame)
        self._before = counts
        nodes = (number_of(root.grad_fn) for root in moment.roots if root.grad_fn is not None)
        self._newest = max(nodes, default=self._newest)

    def _readings(self, name: str, held: _Held) -> Iterator[Reading]:
        if name not in self._owners and len(self._owners) < _KEPT:
            self._owners[name] = (name,)
        owner = self._owners.get(name)
        if owner is None:
            return
        if held.has_graph:
            yield Reading(GRAPH_KEPT, owner, [held.results])
        if held.size:
            yield Reading(MEMORY_HELD, owner, [held.size])

    def _line(self, name: str, held: _Held, frame: FrameType) -> ResultsKept:
        """Return the line that adds to a variable, as far as it can be found."""
        codes = [frame.f_code]
        word, _, attribute = name.partition("[")[0].partition(".")
        if attribute:
            owner = self._frames.read(frame, lambda variables: variables.get(word))
            methods = vars(type(owner)).values()
            codes += [each.__code__ for each in methods if isinstance(each, FunctionType)]
        for code in codes:
            line = _line_that_adds(code, attribute or word)
            if line is not None:
                where = f"{Path(code.co_filename).name}:{line}"
                source = linecache.getline(code.co_filename, line).strip()
                return ResultsKept(name, where, source, held.is_sum)
        return ResultsKept(name, is_sum=held.is_sum)


def named_values(variables: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield variables by name, those of `self` included."""
    for name, value in list(variables.items())[:_VARIABLES]:
        yield f"{name}", value
    owner = variables.get("self")
    if owner is not None and hasattr(owner, "__dict__"):
        for name, value in list(vars(owner).items())[:_VARIABLES]:
            yield f"self.{name}", value


def lists_in(name: str, value: dict[Any, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the lists of a dict, such as a history of several, each with a name."""
    for key, part in list(value.items())[:_VALUES]:
        if type(part) in (list, deque):
            yield f"{name}[{key!r}]", part


def _holdings(variables: Mapping[str, Any], newest: int) -> dict[str, _Held]:
    """Return what variables hold, those of `self` included."""
    holdings: dict[str, _Held] = {}
    for name, value in named_values(variables):
        held = _held(value, newest)
        if held is not None:
            holdings[name] = held
        elif type(value) is dict:
            parts = ((each, _held(part, newest)) for each, part in lists_in(name, value))
            holdings |= {each: held for each, held in parts if held is not None}
    return holdings


def _held(value: Any, newest: int) -> _Held | None:
    """Return what a sum, or a container of tensors or arrays, holds."""
    if isinstance(value, Tensor):
        terms, oldest = (0, 0) if value.grad_fn is None else _terms(value.grad_fn)
        is_kept = terms > 1 and oldest <= newest
        return _Held(terms, 0.0, has_graph=True, is_sum=True) if is_kept else None
    if type(value) not in (list, deque, dict) or not value:
        return None
    last = _result(next(reversed(value.values())) if type(value) is dict else value[-1])
    if isinstance(last, Tensor):
        size = float(last.nbytes) if last.layout is torch.strided and not last.is_meta else 0.0
        has_graph = last.grad_fn is not None and _oldest(value) <= newest
    elif isinstance(last, np.ndarray):
        size, has_graph = float(last.nbytes), False
    else:
        return None
    return _Held(len(value), size * len(value), has_graph, is_sum=False)


def _result(element: Any) -> Any:
    """Return an element of a container, or what comes first if it is a tuple."""
    return element[0] if type(element) is tuple and element else element


def _oldest(container: Any) -> int:
    """Return the number of the node of the first element that has a graph."""
    elements = container.values() if type(container) is dict else container
    results = map(_result, islice(elements, _OLDEST))
    nodes = (each.grad_fn for each in results if isinstance(each, Tensor))
    return next((number_of(node) for node in nodes if node is not None), sys.maxsize)


def _terms(root: Any) -> tuple[int, int]:
    """Return how many terms a sum has that is still connected to their graphs, and the oldest."""
    terms, oldest, frontier = 0, sys.maxsize, [root]
    while frontier and terms < _TERMS:
        node = frontier.pop()
        if node.name() in _SUMS:
            frontier += [below for below, _ in node.next_functions if below is not None]
        else:
            terms += 1
            oldest = min(oldest, number_of(node))
    return terms, oldest


def _line_that_adds(code: CodeType, name: str) -> int | None:
    """Return the line of a function that changes a variable by what it was, or adds to it."""
    words: dict[int, list[tuple[str, Any]]] = {}
    line = code.co_firstlineno
    for instruction in dis.get_instructions(code):
        if instruction.positions is not None and instruction.positions.lineno is not None:
            line = instruction.positions.lineno
        words.setdefault(line, []).append((instruction.opname, instruction.argval))
    for number, instructions in words.items():
        loads = any(op.startswith("LOAD") and value == name for op, value in instructions)
        stores = any(op.startswith("STORE") and value == name for op, value in instructions)
        adds = any(value in _ADDERS for _, value in instructions if isinstance(value, str))
        puts = any(op == "STORE_SUBSCR" for op, _ in instructions)
        if loads and (stores or adds or puts):
            return number
    return None
