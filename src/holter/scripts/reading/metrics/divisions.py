"""Divisions behind conversions, and the names of the values they give."""

import ast
from collections.abc import Iterator

from holter.scripts.reading.source.tree import Source, called

_REDUCED = {"sum", "mean", "float", "item", "long", "double", "int", "squeeze"}


def named_values(source: Source) -> Iterator[tuple[str, ast.expr, ast.stmt]]:
    """Yield values with the name that they are given, or that their function has."""
    for scope in source.scopes:
        for name, value, statement in source.assigned(scope):
            yield name.lower(), value, statement
    for node in source.of(ast.Return):
        name = getattr(source.scope(node), "name", "")
        if node.value is not None and name:
            yield name.lower(), node.value, node


def division(value: ast.expr) -> ast.BinOp | None:
    """Return the division behind `100 * a / b`, `1 - a / b` or `(a / b).mean().item()`."""
    while True:
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            if value.func.attr not in {*_REDUCED, "nanmean"}:
                return None
            value = value.func.value
        elif isinstance(value, ast.Call) and called(value) in ("float", "round") and value.args:
            value = value.args[0]
        elif isinstance(value, ast.BinOp) and isinstance(value.op, ast.Sub):
            if getattr(value.left, "value", None) not in (1, 1.0):
                return None
            value = value.right
        elif isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
            if not isinstance(value.left, ast.Constant):
                return None
            value = value.right
        elif isinstance(value, ast.IfExp):
            value = value.body
        elif isinstance(value, ast.BinOp) and isinstance(value.op, ast.Div):
            return value
        else:
            return None
