"""Copies of what a script gives to each of its steps, taken while it runs."""

import copy
import weakref
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import numpy as np
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from holter.lab.randomness import RandomState
from holter.scripts.recognition.belongings import Belongings
from holter.scripts.recognition.contexts import Autocast, autocast_now
from holter.scripts.recognition.kinds import (
    has_graph,
    involves_model,
    is_model,
    is_plain,
    is_users,
    tensors,
)
from holter.scripts.recognition.matching import Match, match
from holter.scripts.recognition.planning import Plan, Variable
from holter.scripts.recognition.rollouts import ROLLOUT, Rollouts, carried, held, slots
from holter.scripts.recognition.sites import visible

Row = Mapping[str, Any]  # what a step was given, by variable
RANDOM = "__holter_random__"  # in a row: the random state before each statement
_MOST_COMPARED = 10**7  # values of one variable


class TensorCopies:
    """Copies of tensors; a tensor is copied again only after it was written to."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[weakref.ref[Tensor], int, Tensor]] = {}
        self.bytes = 0

    def of(self, value: Any) -> Any:
        """The same structure with copies of its tensors; objects are copied if the user's own."""
        return pytree.tree_map(self._leaf, value)

    def _leaf(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            return self._tensor(value)
        if isinstance(value, np.ndarray):
            return value.copy()
        if isinstance(value, Mapping):
            return self.of(opened(value))
        if not is_plain(value) and is_users(value) and not involves_model(value):
            with suppress(Exception):  # what cannot be copied is used as it is
                return copy.deepcopy(value)
        return value

    def _tensor(self, value: Tensor) -> Tensor:
        version = value._version  # noqa: SLF001
        key = id(value)
        known = self._made.get(key)
        if known is not None and known[0]() is value and known[1] == version:
            return known[2]
        made = copied(value)
        original = weakref.ref(value, lambda _: self._made.pop(key, None))
        self._made[key] = (original, version, made)
        self.bytes += made.numel() * made.element_size()
        return made


def opened(value: Any) -> Any:
    """A dictionary of a class of its own as a plain one, so that its tensors are seen."""
    return dict(value) if isinstance(value, Mapping) and not isinstance(value, dict) else value


def copied(value: Tensor) -> Tensor:
    """A copy without a graph; an input that wants a gradient still does."""
    return value.detach().clone().requires_grad_(value.requires_grad and value.is_leaf)


@dataclass(eq=False)
class Proof:
    """What was seen of one step in full, to be held against its replay."""

    belongings: Belongings
    autocast: Autocast
    buffers: list[tuple[nn.Module, str, Tensor]]
    random: dict[int, RandomState] = field(default_factory=dict)  # before each statement
    parameters: list[tuple[Tensor, Tensor]] = field(default_factory=list)
    row: Row = field(default_factory=dict)
    values: Mapping[str, list[Tensor]] = field(default_factory=dict)  # what the script computed
    loss: Tensor | None = None
    reached: frozenset[int] = frozenset()  # leaves of the graph, by identity


@dataclass(frozen=True, eq=False)
class Ready:
    """How a batch of a loader stands in the variables of a script, at one moment."""

    match: Match
    delivered: object
    random: RandomState


@dataclass(eq=False)
class StepCapture:
    """TensorCopies of what the steps of one site are given."""

    plan: Plan
    copies: TensorCopies
    modules: Iterable[nn.Module]  # whose buffers a step may change
    delivered: Callable[[], list[object]]  # the last batches of loaders, the newest first
    rollouts: Rollouts  # the calls since the last backward, once they are asked for
    proof: Proof | None = None  # of the first step that was seen from its beginning
    entry: Ready | None = None  # before the statements that make the data
    ready: Ready | None = None  # after them
    changing: str | None = None  # a variable that is one model, then another, then the first
    keeps_random: bool = False  # whether a row holds the random state before each statement
    carries: bool = False  # whether a step begins with values that have a graph
    replaced: bool = False  # whether another model has just taken the place of one
    _trial: Proof | None = None
    _open: dict[str, Any] = field(default_factory=dict)
    _last: int | None = None
    _entered: bool = False  # whether the script is in the first statement of all
    _carried: set[Any] = field(default_factory=set)  # nodes of graphs that were there before
    _models: dict[str, list[object]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._places: dict[int, list[int]] = {}
        for place, statement in enumerate(self.plan.forward):
            for line in statement.lines:
                self._places.setdefault(line, []).append(place)
        self._wanted: dict[int, list[Variable]] = {}
        for variable in self.plan.variables:
            self._wanted.setdefault(variable.before, []).append(variable)
        lines = [set(each.lines) for each in (*self.plan.data, *self.plan.forward)]
        self._shares = sum(map(len, lines)) > len(set().union(*lines))

    def restart(self) -> None:
        """Start over: the function that contains the step is called again."""
        self._last = None

    @property
    def shares_lines(self) -> bool:
        """Whether two statements of the step are on one line."""
        return self._shares

    def at(self, where: int | tuple[int, int] | None, frame: FrameType) -> None:
        """The script is about to run a line, or an instruction at a line and column."""
        if where is None:
            return
        enters = self._enters(where)
        if enters and not self._entered and self.proof is None:
            self.entry = self._ready(self.plan.entering, frame)
        self._entered = enters and not isinstance(where, int)
        if isinstance(where, int):
            places = self._places.get(where)
        else:
            places = [n for n, each in enumerate(self.plan.forward) if each.holds(where)] or None
        if places is None:
            self._last = None
        elif self._last not in places:
            for place in places:
                self._begin(place, frame)
            self._last = places[-1]

    def _enters(self, where: int | tuple[int, int]) -> bool:
        if not self.plan.data:
            return False
        first = self.plan.data[0]
        return where in first.lines if isinstance(where, int) else first.holds(where)

    def _begin(self, place: int, frame: FrameType) -> None:
        if place == 0:
            self._open = {}
            names = visible(frame)
            self._look_at_models(names)
            self._look_at_rollout(names)
            if self.proof is None:
                if not self.plan.data:
                    self.entry = self._ready(self.plan.entering, frame)
                taken = [variable.name for variable in self.plan.variables if variable.code is None]
                self.ready = self._ready(taken, frame)
                held = Belongings(names[each] for each in self.plan.others if each in names)
                self._trial = Proof(held, autocast_now(), _buffers(self.modules))
        for each in self._wanted.get(place, ()):
            self._open[each.name] = self.copies.of(value_of(each, frame))
        if self._trial is not None:
            self._trial.random[place] = RandomState.now()
        if self.keeps_random:
            self._open.setdefault(RANDOM, {})[place] = RandomState.now()

    def bind_models(self, variables: dict[str, Any], *, besides: Mapping[str, Any]) -> None:
        """Give models back the names that they had in the steps: scripts load others at the end."""
        for name, known in self._models.items():
            if name in variables and name not in besides:
                variables[name] = known[-1]

    def _look_at_models(self, names: Mapping[str, Any]) -> None:
        """Notice another model; one that comes back means that several are trained in turn."""
        for name in self.plan.others:
            value = names.get(name)
            if not is_model(value):
                continue
            known = self._models.setdefault(name, [value])
            if known[-1] is value:
                continue
            if any(each is value for each in known):
                self.changing = name
            else:
                known.append(value)
                self.proof = self.entry = self.ready = None
                self.replaced = True

    def _look_at_rollout(self, names: Mapping[str, Any]) -> None:
        """Notice that functions have computed a part of the loss before the step began."""
        places = slots(names, self.plan.others)
        if not self.carries:
            self._carried = carried(places)
        elif self.rollouts.kept:
            calls = list(self.rollouts.kept)
            self._open[ROLLOUT] = {"calls": calls, "held": held(places)}

    def _ready(self, names: Iterable[str], frame: FrameType) -> Ready:
        """Which of these variables are what the loader has delivered."""
        known = visible(frame)
        held = {name: known[name] for name in names if name in known}
        tried = [(match(held, each), each) for each in self.delivered() or [None]]
        found, batch = next((each for each in tried if each[0].is_whole), tried[0])
        return Ready(found, _kept(batch), RandomState.now())

    def first(self, frame: FrameType) -> Row | None:
        """What the first step was given, seen only after it ran: if that was not written over."""
        written = {name for each in self.plan.forward for name in each.touched}
        if self.plan.in_place or any(each.name in written for each in self.plan.variables):
            return None
        values = {each.name: value_of(each, frame) for each in self.plan.variables}
        if any(has_graph(value) for value in values.values()):
            return None
        return {name: self.copies.of(value) for name, value in values.items()}

    def close(self, roots: Iterable[Tensor]) -> Row | None:
        """Backward is called on `roots`: what the step was given, if all of it was seen."""
        self._last = None
        if self._carried:
            self.carries = not self._carried.isdisjoint(_nodes(roots))
            self._carried = set()
        row, self._open = self._open, {}
        seen = all(variable.name in row for variable in self.plan.variables)
        seen = seen and self.carries == (ROLLOUT in row)
        return row if seen else None

    def prove(self, row: Row, frame: FrameType, loss: Tensor, parameters: Iterable[Tensor]) -> None:
        """Keep what is needed to compare this step with its replay."""
        trial, self._trial = self._trial, None
        if trial is None or 0 not in trial.random:
            return
        trial.row, trial.loss = row, loss.detach().clone()
        trial.reached = leaves_of(loss) & {id(parameter) for parameter in parameters}
        trial.parameters = [(parameter, parameter.detach().clone()) for parameter in parameters]
        names = visible(frame)
        written = {n for each in self.plan.forward for n in each.touched if n in names}
        trial.values = {name: found for name in written if (found := _values(names[name]))}
        self.proof = trial


def value_of(variable: Variable, frame: FrameType) -> Any:
    """The value of a variable, or of an expression that stands for one, in a frame."""
    names: Mapping[str, Any] = frame.f_locals
    if variable.code is not None:
        return eval(variable.code, frame.f_globals, dict(names))  # noqa: S307
    return names[variable.name] if variable.name in names else frame.f_globals.get(variable.name)


def _kept(delivered: object) -> object:
    with suppress(Exception):
        return copy.deepcopy(delivered)
    return delivered


def leaves_of(loss: Tensor) -> frozenset[int]:
    """The parameters that a loss depends on, by identity."""
    return frozenset(
        id(node.variable) for node in _nodes([loss]) if type(node).__name__ == "AccumulateGrad"
    )


def _nodes(roots: Iterable[Tensor]) -> set[Any]:
    """The graph of some tensors."""
    seen: set[Any] = set()
    waiting: list[Any] = [root.grad_fn for root in roots]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in seen:
            seen.add(node)
            waiting += [each for each, _ in node.next_functions]
    return seen


def _values(value: object) -> list[Tensor]:
    held = tensors(value)
    if sum(each.numel() for each in held) > _MOST_COMPARED:
        return []
    return [each.detach().clone() for each in held]


def _buffers(modules: Iterable[nn.Module]) -> list[tuple[nn.Module, str, Tensor]]:
    return [
        (part, name, value.detach().clone())
        for module in modules
        for part in module.modules()
        for name, value in vars(part)["_buffers"].items()
        if value is not None
    ]
