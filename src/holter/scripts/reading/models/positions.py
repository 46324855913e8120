"""Sinusoidal encodings of positions and times."""

import ast
from collections.abc import Iterator

from holter.scripts.reading.source.expressions import number, resolved, tensor_of, whole
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Pattern, Source, called, dotted

_SIDES = 2


@reads
def overwritten_half(source: Source) -> Iterator[Pattern]:
    """`pe[:, 0::2] = sin(a)` and then `pe[:, 0::2] = cos(a)`: the sines are lost."""
    for scope in source.scopes:
        waves: dict[str, str] = {}
        for node in source.walk(scope):
            if not isinstance(node, ast.Assign) or source.scope(node) is not scope:
                continue
            target = node.targets[0]
            wave = called(node.value)
            if not isinstance(target, ast.Subscript) or wave not in ("sin", "cos"):
                continue
            if not any(isinstance(each, ast.Slice) and each.step is not None
                       for each in ast.walk(target.slice)):  # fmt: skip
                continue
            place = ast.unparse(target)
            if waves.get(place, wave) != wave:
                yield source.pattern("overwritten half", node, dotted(target.value))
            waves[place] = wave


@reads
def rounded_frequencies(source: Source) -> Iterator[Pattern]:
    """`exp(-log(10000) * arange(half) // half)`, or `10000 ** (i // d)`: rounded exponents."""
    for node in source.of(ast.BinOp):
        if not isinstance(node.op, ast.FloorDiv):
            continue
        above = source.parent(node)
        counted = _counts(source, node)
        is_power = (
            isinstance(above, ast.BinOp)
            and isinstance(above.op, ast.Pow)
            and above.right is node
            and (number(source, above.left) or 0) > 100
        )
        is_exponent = is_power or any(
            called(each) in ("exp", "pow")
            or (isinstance(each, ast.BinOp) and isinstance(each.op, ast.Pow))
            for each in source.above(node)
        )
        is_whole = counted and not isinstance(node.left, ast.BinOp)
        if is_whole or (is_exponent and counted) or is_power:
            yield source.pattern("rounded frequencies", node, ast.unparse(node))


def _counts(source: Source, node: ast.BinOp) -> bool:
    """Whether a quotient is of `arange(0, end, step)`, or of a multiple of it, and of its end."""
    parts = [node.left]
    if isinstance(node.left, ast.BinOp) and isinstance(node.left.op, ast.Mult):
        parts = [node.left.left, node.left.right]
    for part in parts:
        value = resolved(source, source.scope(node), part)
        while isinstance(value, ast.Call) and called(value) in ("float", "to", "unsqueeze"):
            value = resolved(source, source.scope(node), tensor_of(value) or value.func)
        if called(value) == "arange" and isinstance(value, ast.Call) and value.args:
            is_from_zero = len(value.args) == 1 or whole(value.args[0]) == 0
            end = value.args[:_SIDES][-1]
            if is_from_zero and ast.unparse(end) == ast.unparse(node.right):
                return True
    return False
