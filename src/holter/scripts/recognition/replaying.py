"""Replay: the loss of a batch, computed by the script's own statements."""

import contextlib
import copy
import sys
from collections.abc import Callable, Iterator, Mapping
from types import CellType, FunctionType
from typing import Any

from torch import Tensor
from torch.utils import _pytree as pytree

from holter.lab.randomness import StepRandom
from holter.scripts.recognition.belongings import Belongings
from holter.scripts.recognition.capturing import RANDOM, Row, copied, opened
from holter.scripts.recognition.declining import declined
from holter.scripts.recognition.kinds import involves_model, is_users
from holter.scripts.recognition.planning import Plan
from holter.scripts.recognition.rollouts import ROLLOUT, Repeated
from holter.scripts.recognition.sites import LOSS

Batch = Mapping[str, Any]
_MISSING = object()


class Replay:
    """Runs the forward statements of a plan where the script has run them, and cleans up."""

    def __init__(
        self,
        plan: Plan,
        variables: dict[str, Any],
        own: dict[str, Any] | None,
        held: Belongings,
        *,
        carries: bool = False,
    ) -> None:
        self.plan = plan
        self.keys = {variable.name: variable.key for variable in plan.variables}
        if carries:
            self.keys[ROLLOUT] = "rollout"
        self.copies = plan.in_place  # whether what is given is copied first
        self.given: dict[str, Any] = {}  # the variables of the step that was run last
        self._random = f"random state (line {plan.site.call.lineno})"
        self._globals, self._locals = variables, own
        self._belongings = held

    def batch(self, row: Row) -> dict[str, Any]:
        """What a step was given, under the names that batches have for it."""
        return {key: row[name] for name, key in self.keys.items() if name in row}

    def drawn(self, row: Row) -> dict[str, Any]:
        """What a step was given, with the random state before each of its statements."""
        return {**self.batch(row), self._random: StepRandom(row.get(RANDOM, {}))}

    def names(self) -> dict[str, Any]:
        """The variables that the statements can see."""
        return {**self._globals, **(self._locals or {})}

    def __call__(self, batch: Batch) -> Tensor:
        """The loss of a batch."""
        random: StepRandom = batch.get(self._random, StepRandom())
        with self.running(batch) as names:
            for place, statement in enumerate(self.plan.forward):
                random.restore(place)
                exec(statement.code, names)  # noqa: S102  (the script's own statements)
            loss = names[LOSS]
        if not isinstance(loss, Tensor):
            kind = type(loss).__name__
            raise declined(f"{self.plan.site.place}: the loss is a {kind}, not a tensor.")
        return loss

    def watched(
        self, batch: Batch, before: Callable[[int], None], after: Callable[[int, Batch], None]
    ) -> Tensor:
        """The loss of a batch, with a word before and after each statement."""
        with self.running(batch) as names:
            for place, statement in enumerate(self.plan.forward):
                before(place)
                exec(statement.code, names)  # noqa: S102
                after(place, names)
            loss: Tensor = names[LOSS]
        return loss

    def prepared(self, entering: Batch, *, with_data: bool) -> dict[str, Any]:
        """A batch made of what the step begins with, by the statements that make its data."""
        names = {**self.names(), **entering}
        with contextlib.redirect_stdout(sys.stderr):
            for statement in self.plan.data if with_data else ():
                exec(statement.code, names)  # noqa: S102
            return {
                self.keys[variable.name]: opened(
                    names[variable.name] if variable.code is None else eval(variable.code, names)  # noqa: S307
                )
                for variable in self.plan.variables
            }

    @contextlib.contextmanager
    def running(self, batch: Batch) -> Iterator[dict[str, Any]]:
        """The variables with those of a batch among them; afterwards all is as before."""
        given = {name: batch[key] for name, key in self.keys.items() if key in batch}
        rollout = given.pop(ROLLOUT, None)
        given = _fresh(given, copies=self.copies)
        self.given = given
        with contextlib.ExitStack() as stack:
            stack.callback(self._belongings.restore)
            # What a script prints must not get into a report.
            stack.enter_context(contextlib.redirect_stdout(sys.stderr))
            if self._locals is None:  # functions of the script read these very variables
                names = self._globals
                written = {name for each in self.plan.forward for name in each.written}
                stack.callback(_put_back, names, _taken(names, {*given, *written, LOSS}))
            else:
                names = self.names()
                for cell, value in self._cells(given):
                    stack.callback(_fill, cell, cell.cell_contents)
                    cell.cell_contents = value
            if rollout is not None:
                stack.enter_context(Repeated(rollout))
            names.update(given)
            yield names

    def _cells(self, given: Batch) -> Iterator[tuple[CellType, Any]]:
        """The variables of a batch that functions of the script see from the outside."""
        assert self._locals is not None
        seen: set[int] = set()
        for value in self._locals.values():
            if isinstance(value, FunctionType) and value.__closure__:
                for name, cell in zip(value.__code__.co_freevars, value.__closure__, strict=True):
                    if name in given and id(cell) not in seen:
                        seen.add(id(cell))
                        yield cell, given[name]


def _fresh(given: dict[str, Any], *, copies: bool) -> dict[str, Any]:
    """New containers, so that what is appended to a list is not there the next time."""

    def fresh(each: Any) -> Any:
        if is_users(each) and not involves_model(each):
            return copy.deepcopy(each)
        return copied(each) if copies and isinstance(each, Tensor) else each

    made: dict[str, Any] = pytree.tree_map(fresh, given)
    return made


def _taken(names: Mapping[str, Any], wanted: set[str]) -> dict[str, Any]:
    return {name: names.get(name, _MISSING) for name in wanted}


def _put_back(names: dict[str, Any], were: Mapping[str, Any]) -> None:
    for name, value in were.items():
        if value is _MISSING:
            names.pop(name, None)
        else:
            names[name] = value


def _fill(cell: CellType, value: object) -> None:
    cell.cell_contents = value
