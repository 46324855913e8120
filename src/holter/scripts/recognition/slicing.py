"""The statements that a value depends on: a slice of a piece of source, from its end backwards."""

import ast
import copy
from collections.abc import Callable, Sequence
from typing import TypeVar

from holter.scripts.recognition.names import (
    Names,
    Written,
    any_touch,
    called_on,
    reads,
    targets,
    touch,
    walrus,
)

Effect = Callable[[ast.Call], bool]  # whether a method call may change what it is called on
_Node = TypeVar("_Node", bound=ast.stmt)
_MOST_PASSES = 10  # over the body of a loop, until nothing more is needed


def slice_for(
    statements: Sequence[ast.stmt], needed: Names, changes: Effect
) -> tuple[list[ast.stmt], Names]:
    """The statements that decide about the `needed` names, and what these need in turn."""
    return _Slicer(changes, everything=False).block(statements, set(needed))


def exposed(statements: Sequence[ast.stmt]) -> Names:
    """The names that statements read before they have written them."""
    return _Slicer(lambda _: True, everything=True).block(statements, set())[1]


class _Slicer:
    def __init__(self, changes: Effect, *, everything: bool) -> None:
        self._changes, self._everything = changes, everything
        self._loops = 0  # in how many loops of the slice we are: there `break` matters

    def block(self, statements: Sequence[ast.stmt], needed: Names) -> tuple[list[ast.stmt], Names]:
        kept: list[ast.stmt] = []
        for statement in reversed(statements):
            found, needed = self._statement(statement, needed)
            if found is not None:
                kept.insert(0, found)
        return kept, needed

    def _statement(self, statement: ast.stmt, needed: Names) -> tuple[ast.stmt | None, Names]:
        match statement:
            case ast.If():
                return self._if(statement, needed)
            case ast.For() | ast.While():
                return self._loop(statement, needed)
            case ast.With():
                return self._with(statement, needed)
            case ast.Try():
                return self._try(statement, needed)
            case ast.Break() | ast.Continue():
                return (statement if self._loops else None), needed
            case ast.FunctionDef() | ast.ClassDef():
                return self._definition(statement, needed)
            case _:
                return self._simple(statement, needed)

    def _simple(self, statement: ast.stmt, needed: Names) -> tuple[ast.stmt | None, Names]:
        written = _written(statement)
        receiver = called_on(statement)
        wanted = any(any_touch(each.name, needed) for each in written)
        if receiver is not None and any_touch(receiver, needed):
            assert isinstance(statement, ast.Expr)
            assert isinstance(statement.value, ast.Call)
            wanted = wanted or self._changes(statement.value)
        if not wanted and not self._everything:
            return None, needed
        updates = isinstance(statement, ast.AugAssign)
        left = needed if updates else _without(needed, written)
        more = _expressions(statement)
        if updates:
            more |= {each.name for each in written}
        return statement, left | more

    def _definition(
        self, statement: ast.FunctionDef | ast.ClassDef, needed: Names
    ) -> tuple[ast.stmt | None, Names]:
        if statement.name not in needed and not self._everything:
            return None, needed
        own = {each.id for each in ast.walk(statement) if isinstance(each, ast.Name)}
        return statement, (needed - {statement.name}) | own

    def _if(self, statement: ast.If, needed: Names) -> tuple[ast.stmt | None, Names]:
        body, one = self.block(statement.body, set(needed))
        orelse, other = self.block(statement.orelse, set(needed))
        if not body and not orelse:
            return None, needed
        kept = _with_parts(statement, body=body or [ast.Pass()], orelse=orelse)
        return kept, one | other | reads(statement.test)

    def _loop(self, statement: ast.For | ast.While, needed: Names) -> tuple[ast.stmt | None, Names]:
        loops, self._loops = self._loops, 0
        body, _ = self.block(statement.body, set(needed))
        self._loops = loops
        if not body and not self._everything:
            return None, needed
        self._loops += 1
        head = reads(statement.iter if isinstance(statement, ast.For) else statement.test)
        inside = set(needed) | (head if isinstance(statement, ast.While) else set())
        for _ in range(_MOST_PASSES):
            body, before = self.block(statement.body, set(inside))
            if isinstance(statement, ast.For):
                before = _without(before, list(targets(statement.target)))
            if before <= inside:
                break
            inside |= before
        self._loops -= 1
        kept = _with_parts(statement, body=body or [ast.Pass()], orelse=[])
        return kept, needed | before | head

    def _with(self, statement: ast.With, needed: Names) -> tuple[ast.stmt | None, Names]:
        body, needed_inside = self.block(statement.body, set(needed))
        if not body:
            return None, needed
        needed = needed_inside
        for item in reversed(statement.items):
            if item.optional_vars is not None:
                needed = _without(needed, list(targets(item.optional_vars)))
            needed |= reads(item.context_expr)
        return _with_parts(statement, body=body), needed

    def _try(self, statement: ast.Try, needed: Names) -> tuple[ast.stmt | None, Names]:
        final, after = self.block(statement.finalbody, set(needed))
        orelse, otherwise = self.block(statement.orelse, set(after))
        body, before = self.block(statement.body, set(otherwise))
        handlers, handled = [], set(after)
        for handler in statement.handlers:
            inside, more = self.block(handler.body, set(after))
            made = copy.copy(handler)
            made.body = inside or [ast.Pass()]
            handlers.append(made)
            handled |= more
        if not (body or orelse or final):
            return None, needed
        kept = _with_parts(
            statement,
            body=body or [ast.Pass()],
            orelse=orelse,
            handlers=handlers,
            finalbody=final,
        )
        return kept, before | handled


def _written(statement: ast.stmt) -> list[Written]:
    match statement:
        case ast.Assign():
            return [w for target in statement.targets for w in targets(target)] + list(
                walrus(statement.value)
            )
        case ast.AnnAssign() if statement.value is not None:
            return list(targets(statement.target))
        case ast.AugAssign():
            return list(targets(statement.target))
        case ast.Expr():
            return list(walrus(statement.value))
        case ast.Import() | ast.ImportFrom():
            return [
                Written((name.asname or name.name).partition(".")[0], whole=True)
                for name in statement.names
            ]
        case _:
            return []


def _expressions(statement: ast.stmt) -> Names:
    found: Names = set()
    for child in ast.iter_child_nodes(statement):
        found |= reads(child)
    return found


def _without(needed: Names, written: Sequence[Written]) -> Names:
    """What is still needed before all of `written` is written."""
    gone = [each.name for each in written if each.whole]
    return {
        each
        for each in needed
        if not any(each == name or each.startswith(f"{name}.") for name in gone)
    } | {
        each.name for each in written if not each.whole and any(touch(each.name, n) for n in needed)
    }


def _with_parts(statement: _Node, **parts: object) -> _Node:
    made = copy.copy(statement)
    for name, part in parts.items():
        setattr(made, name, part)
    return ast.fix_missing_locations(ast.copy_location(made, statement))
