"""Message passing in graphs: what is summed over edges, and the inverse of degrees."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.expressions import made_once, number, resolved, tensor_of
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Pattern, Source, called, dotted

_ADDING = re.compile(r"^index_(add|reduce)_?$|^(scatter|segment)(_(add|sum|mean|max|reduce))?_?$")
_EDGES = re.compile(r"dst|src|(^|_)(row|col)s?$|source|target|edge|sender|receiver", re.I)


@reads
def to_itself(source: Source) -> Iterator[Pattern]:
    """`out.index_add(0, dst, h[dst])`: each node receives itself, and nothing from others."""
    for call in source.of(ast.Call):
        if not _ADDING.match(called(call)):
            continue
        scope = source.scope(call)
        indices = {index for each in call.args if _EDGES.search(index := _bare(each))}
        for each in call.args:
            added = made_once(source, scope, each.id) if isinstance(each, ast.Name) else each
            if not isinstance(added, ast.Subscript) or not dotted(added.value):
                continue
            parts = added.slice.elts if isinstance(added.slice, ast.Tuple) else [added.slice]
            if same := indices & {dotted(part) for part in parts}:
                yield source.pattern("to itself", call, same.pop())
                break


def _bare(value: ast.expr) -> str:
    """Return the index behind `dst[:, None].expand_as(h)`."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        value = value.func.value
    if isinstance(value, ast.Subscript) and "None" in ast.unparse(value.slice):
        value = value.value
    return dotted(value)


@reads
def inverse_at_both_ends(source: Source) -> Iterator[Pattern]:
    """`inv = deg.pow(-1)` and `inv[row] * inv[col]`: D^-1 A D^-1, not D^-1/2 A D^-1/2."""
    for node in source.of(ast.BinOp):
        if not isinstance(node.op, ast.Mult):
            continue
        sides = (node.left, node.right)
        if not all(isinstance(each, ast.Subscript) for each in sides):
            continue
        left, right = (each for each in sides if isinstance(each, ast.Subscript))
        name = dotted(left.value)
        if not name or name != dotted(right.value):
            continue
        if ast.unparse(left.slice) == ast.unparse(right.slice):
            continue
        value = resolved(source, source.scope(node), left.value)
        if _is_inverse(source, value):
            yield source.pattern("inverse at both ends", node, name)


def _is_inverse(source: Source, value: ast.expr) -> bool:
    """Whether a value is 1 over a degree: `deg.pow(-1)`, `deg ** -1`, `1.0 / deg`."""
    base: ast.expr | None = None
    if isinstance(value, ast.Call) and called(value) in ("pow", "power"):
        power = value.args[-1] if value.args else None
        base = tensor_of(value) if number(source, power) == -1 else None
    elif isinstance(value, ast.BinOp) and isinstance(value.op, ast.Pow):
        base = value.left if number(source, value.right) == -1 else None
    elif isinstance(value, ast.BinOp) and isinstance(value.op, ast.Div):
        base = value.right if number(source, value.left) == 1 else None
    elif called(value) == "reciprocal" and isinstance(value, ast.Call):
        base = tensor_of(value)
    text = ast.unparse(base) if base is not None else ""
    return bool(re.search(r"deg", text, re.I)) and "sqrt" not in text
