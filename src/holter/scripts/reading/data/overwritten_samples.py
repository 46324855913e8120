"""Data that is written to although something else still refers to it."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Pattern, Source, called, of_self

_LABEL = re.compile(r"^(y|label|labels|target|targets|cls|t)\d*$", re.I)
# Elements that are numbers or texts, which `+=` does not change in place, or made by another set.
_PLAIN = re.compile(
    r"path|file|name|index|indices|idx|start|offset|key|text|line|length|count", re.I
)
_MAKING = re.compile(r"dataset|^_?ds$|base|subset|inner|source|parent|wrapped|loader", re.I)


@reads
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


@reads
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
