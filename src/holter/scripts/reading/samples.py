"""Data that is written to although something else still refers to it."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source import Function, Pattern, Source, called, of_self

_LABEL = re.compile(r"^(y|label|labels|target|targets|cls|t)\d*$", re.I)
_STORING = {"append", "push", "add", "store", "put", "insert", "remember"}
_COPYING = {"clone", "copy", "deepcopy", "tensor", "array", "tolist", "tuple"}
_ARRAYS = {"as_tensor", "asarray", "from_numpy", "FloatTensor", "float"}
# Elements that are numbers or texts, which `+=` does not change in place, or made by another set.
_PLAIN = re.compile(
    r"path|file|name|index|indices|idx|start|offset|key|text|line|length|count", re.I
)
_MAKING = re.compile(r"dataset|^_?ds$|base|subset|inner|source|parent|wrapped|loader", re.I)
_CREATING = {"__init__", "reset"}
_OBSERVING = {"reset", "step", "observe", "observation", "get_state", "get_obs", "_obs", "obs"}


def written(source: Source) -> Iterator[Pattern]:
    """`x = self.data[i]` and then `x += noise`, in `__getitem__` or a method that it calls."""
    for function in source.of(ast.FunctionDef):
        if function.name != "__getitem__" or len(function.args.args) < 2:
            continue
        index = function.args.args[1].arg
        for name, since, until in _views(source, function, index):
            for node in source.walk(function):
                if not since <= _place(node) < until:
                    continue
                if _written_to(node) == name or _passes_to_writer(source, node, name):
                    yield source.pattern("written sample", node, name)


_Place = tuple[int, int]  # line and column


def _place(node: ast.AST) -> _Place:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def _end(node: ast.stmt) -> _Place:
    return node.end_lineno or node.lineno, node.end_col_offset or 0


def _views(source: Source, function: ast.AST, index: str) -> Iterator[tuple[str, _Place, _Place]]:
    """Yield names of stored samples, and the places from and to which they are that."""
    assigned = list(source.assigned(function))
    for name, value, statement in assigned:
        if _is_view(value, index) and not _LABEL.match(name) and not _PLAIN.search(name):
            again = [_end(other) for same, _, other in assigned if same == name
                     and other.lineno >= statement.lineno and other is not statement]  # fmt: skip
            yield name, _end(statement), min(again, default=(10**9, 0))


def _is_view(value: ast.expr, index: str) -> bool:
    """Whether an expression is an element of something that the data set holds."""
    return (
        isinstance(value, ast.Subscript)
        and bool(of_self(value.value))
        and not _PLAIN.search(of_self(value.value))
        and not _MAKING.search(of_self(value.value))
        and isinstance(value.slice, ast.Name)
        and value.slice.id == index
    )


def _passes_to_writer(source: Source, node: ast.AST, name: str) -> bool:
    """Whether a node calls a function of this file that writes to what it is given."""
    if not isinstance(node, ast.Call):
        return False
    places = [
        p for p, each in enumerate(node.args) if isinstance(each, ast.Name) and each.id == name
    ]
    if not places:
        return False
    for function in source.of(ast.FunctionDef):
        if function.name != called(node):
            continue
        names = [argument.arg for argument in function.args.args]
        names = names[1:] if names[:1] == ["self"] else names
        if any(place < len(names) and _writes(source, function, names[place]) for place in places):
            return True
    return False


def _writes(source: Source, function: ast.AST, name: str) -> bool:
    """Whether a function writes to an argument before it gives the name to something else."""
    again = [statement.lineno for same, _, statement in source.assigned(function) if same == name]
    until = min(again, default=10**9)
    return any(
        _written_to(node) == name and getattr(node, "lineno", 0) < until
        for node in source.walk(function)
    )


def _written_to(node: ast.AST) -> str:
    """Return the name that a statement writes to in place, or ""."""
    if isinstance(node, ast.AugAssign):
        if isinstance(node.value, ast.JoinedStr) or _is_text(node.value):
            return ""  # a text, of which another one is made
        target: ast.AST = node.target
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        target = node.targets[0]
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        target = node.value
        while isinstance(target, ast.Call) and isinstance(target.func, ast.Attribute):
            if not target.func.attr.endswith("_") or target.func.attr.startswith("_"):
                return ""
            target = target.func.value
    else:
        return ""
    while isinstance(target, ast.Subscript):
        if _is_text(target.slice):
            return ""  # an entry of a dictionary
        target = target.value
    return target.id if isinstance(target, ast.Name) else ""


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def observed(source: Source) -> Iterator[Pattern]:
    """An environment that returns its own state, and writes to it in the next step."""
    if not _stores_without_copy(source):
        return
    for body in source.of(ast.ClassDef):
        written_in_place = {
            name
            for function in body.body
            if isinstance(function, Function) and function.name not in _CREATING
            for name in _overwritten(function)
        }
        for function in body.body:
            if not isinstance(function, Function) or function.name not in _OBSERVING:
                continue
            for node in source.walk(function):
                if isinstance(node, ast.Return) and node.value is not None:
                    first = node.value.elts[0] if isinstance(node.value, ast.Tuple) else node.value
                    if of_self(first) in written_in_place:
                        yield source.pattern("returned state", node, of_self(first))


def _overwritten(function: Function) -> set[str]:
    """Return the attributes that a method writes to in place, and does not replace."""
    written_to = {
        of_self(target.value if isinstance(target, ast.Subscript) else target)
        for node in ast.walk(function)
        for target in _targets(node)
    }
    replaced = {
        of_self(target)
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
        for target in node.targets
    }
    return written_to - replaced - {""}


def _stores_without_copy(source: Source) -> bool:
    """Whether the script puts observations aside, and never a copy of one."""
    observations = _observations(source)
    stores = [
        node
        for node in source.walk(source.tree)
        if isinstance(node, ast.Call) and called(node) in _STORING and node.args
    ]
    if any(called(part) in _COPYING for call in stores for part in source.walk(call)):
        return False
    return any(
        isinstance(part, ast.Name) and part.id in observations
        for call in stores
        if not _fills_arrays(source, called(call))
        for argument in call.args
        for part in (argument.elts if isinstance(argument, ast.Tuple) else (argument,))
    )


def _observations(source: Source) -> set[str]:
    """Return the names that hold what an environment returned, as it is."""
    names: set[str] = set()
    made: set[str] = set()
    for node in source.of(ast.Assign):
        for target in node.targets:
            pairs = [(target, node.value)]
            if isinstance(target, ast.Tuple):
                values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
                pairs = list(zip(target.elts, values, strict=False))
            for name, value in pairs:
                if isinstance(name, ast.Name) and called(value) in _OBSERVING:
                    names.add(name.id)
                elif isinstance(name, ast.Name) and called(value) in _COPYING | _ARRAYS:
                    made.add(name.id)
    return names - made


def _fills_arrays(source: Source, name: str) -> bool:
    """Whether the file defines a method of this name that keeps no reference to its arguments."""
    own = [each for each in source.of(ast.FunctionDef) if getattr(each, "name", "") == name]
    keeps = any(
        called(part) in ("append", "appendleft", "insert", "extend") or _keeps_tuple(part)
        for each in own
        for part in source.walk(each)
    )
    return bool(own) and not keeps


def _keeps_tuple(node: ast.AST) -> bool:
    """Whether a statement is such as `self.rows[i] = (s, a, r)`."""
    return (
        isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Tuple)
        and isinstance(node.targets[0], ast.Subscript)
    )


def _targets(node: ast.AST) -> list[ast.expr]:
    """Return what a statement writes to in place: `self.state[...] = ...`."""
    if isinstance(node, ast.Assign):
        return [target for target in node.targets if isinstance(target, ast.Subscript)]
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Subscript):
        return [node.target]
    return []


def aliased(source: Source) -> Iterator[Pattern]:
    """`labels = ids` and then `ids[mask] = MASK`: the labels are masked as well."""
    for scope in source.scopes:
        names = [
            (name, value.id, statement)
            for name, value, statement in source.assigned(scope)
            if isinstance(value, ast.Name) and _is_label(name) != _is_label(value.id)
        ]
        for name, other, statement in names:
            uses = [node for node in source.walk(scope) if isinstance(node, ast.Name)
                    and node.id in (name, other) and _place(node) >= _end(statement)]  # fmt: skip
            again = [_place(use) for use in uses if isinstance(use.ctx, ast.Store)]
            until = min(again, default=(10**9, 0))
            for node in source.walk(scope):
                if (
                    isinstance(node, ast.Assign)
                    and isinstance(node.targets[0], ast.Subscript)
                    and (changed := _written_to(node)) in (name, other)
                    and _end(statement) <= _place(node) < until
                    and source.scope(node) is scope
                    and any(use.id != changed and _place(use) > _end(node) for use in uses)
                ):
                    yield source.pattern("aliased labels", statement, name)
                    break


def _is_label(name: str) -> bool:
    return bool(re.search(r"label|target|^y$", name, re.I))
