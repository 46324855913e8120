"""Bounds of slices as sums of names and numbers, which can be compared without running a script."""

import ast
from typing import NamedTuple

from holter.scripts.reading.source.tree import Source, dotted

_DEEPEST = 4  # names that stand for other names
Sum = dict[str, int]  # how often each term is counted, and under "" the number


class Window(NamedTuple):
    """A part of an array along one axis: `rows[i : i + size]`, or one element of it."""

    base: str
    others: tuple[str, ...]  # the indices along the other axes, with "*" at that of the window
    start: Sum
    stop: Sum
    is_element: bool
    node: ast.Subscript


def difference(one: Sum, other: Sum) -> Sum:
    """Return one sum without another, and without terms that are counted 0 times."""
    left = {term: one.get(term, 0) - other.get(term, 0) for term in {*one, *other}}
    return {term: count for term, count in left.items() if count}


def at_most_zero(value: Sum) -> bool:
    """Whether a sum of sizes is 0 or less whatever they are; a size is at least 1."""
    terms = [count for term, count in value.items() if term]
    return all(count < 0 for count in terms) and value.get("", 0) + sum(terms) <= 0


def bound(source: Source, scope: ast.AST, node: ast.expr, depth: int = 0) -> Sum:
    """Return an expression as a sum; what is no sum is one term of it."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return {"": node.value}
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return difference({}, bound(source, scope, node.operand, depth))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        left = bound(source, scope, node.left, depth)
        right = bound(source, scope, node.right, depth)
        if isinstance(node.op, ast.Add):
            right = difference({}, right)
        return difference(left, right)
    if isinstance(node, ast.Name) and depth < _DEEPEST:
        value, home = only_value(source, scope, node.id)
        if value is not None and _is_sum(value):
            return bound(source, home, value, depth + 1)
    return {ast.unparse(node): 1}


def only_value(source: Source, scope: ast.AST, name: str) -> tuple[ast.expr | None, ast.AST]:
    """Return the only value that a name has in a scope or else in the module, and where that is."""
    for home in dict.fromkeys((scope, source.tree)):
        bound_ = source.stores(home, name)
        made = [value for each, value, _ in source.assigned(home) if each == name]
        if bound_:
            return (made[0] if len(made) == bound_ == 1 else None), home
    return None, scope


def _is_sum(value: ast.expr) -> bool:
    return isinstance(value, ast.BinOp | ast.Name | ast.UnaryOp) or (
        isinstance(value, ast.Constant) and type(value.value) is int
    )


def windows(source: Source, scope: ast.AST, node: ast.Subscript) -> list[Window]:
    """Return what a subscript takes of an array, once for each axis along which that is a part."""
    base = dotted(node.value)
    parts = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
    if not base:
        return []
    found = []
    for place, part in enumerate(parts):
        others = tuple("*" if each is part else ast.unparse(each) for each in parts)
        others = others[: max(place + 1, *(n + 1 for n, each in enumerate(others) if each != ":"))]
        if isinstance(part, ast.Slice):
            if part.step is not None or (part.lower is None and part.upper is None):
                continue
            start = _edge(source, scope, part.lower, base, {})
            stop = _edge(source, scope, part.upper, base, {f"len({base})": 1})
            found.append(Window(base, others, start, stop, False, node))
        elif not isinstance(part, ast.Constant) or type(part.value) is int:
            start = _edge(source, scope, part, base, {})
            stop = difference(start, {"": -1})
            found.append(Window(base, others, start, stop, True, node))
    return found


def _edge(source: Source, scope: ast.AST, node: ast.expr | None, base: str, missing: Sum) -> Sum:
    """Return a bound of a slice; a negative number counts from the end."""
    if node is None:
        return missing
    value = bound(source, scope, node)
    if set(value) == {""} and value[""] < 0:
        return {f"len({base})": 1, "": value[""]}
    return value
