"""Losses of selected elements whose targets the selection makes equal."""

import ast
from collections.abc import Iterator

from holter.scripts.reading.source import Pattern, Source, called, dotted

_BINARY = {"binary_cross_entropy", "binary_cross_entropy_with_logits"}
_ABOVE = (ast.Gt, ast.GtE, ast.Eq)


def positives_alone(source: Source) -> Iterator[Pattern]:
    """`bce(logits[y > 0], y[y > 0])`: all targets are 1, and nothing asks for a 0."""
    for call in source.of(ast.Call):
        if called(call) not in _BINARY or len(call.args) < 2:
            continue
        scores, targets = call.args[:2]
        if not isinstance(scores, ast.Subscript) or not isinstance(targets, ast.Subscript):
            continue
        scope = source.scope(call)
        if ast.unparse(scores.slice) != ast.unparse(targets.slice):
            continue
        if not _is_positive(source, scope, targets.slice, dotted(targets.value)):
            continue
        name = dotted(scores.value)
        others = [
            other
            for other in source.walk(scope)
            if isinstance(other, ast.Call)
            and other is not call
            and ("loss" in called(other).lower() or called(other) in _OTHER_LOSSES)
            and any(dotted(each) == name for part in other.args for each in source.walk(part))
        ]
        if name and not others:
            yield source.pattern("positives alone", call, dotted(targets.value))


_OTHER_LOSSES = {*_BINARY, "cross_entropy", "logsigmoid", "softplus", "sigmoid"}


def _is_positive(source: Source, scope: ast.AST, chosen: ast.expr, target: str) -> bool:
    """Whether a selection takes the elements whose binary target is 1."""
    if isinstance(chosen, ast.Name):
        made = [value for name, value, _ in source.assigned(scope) if name == chosen.id]
        if len(made) != 1:
            return False
        chosen = made[0]
    if called(chosen) == "bool" and isinstance(chosen, ast.Call):
        return isinstance(chosen.func, ast.Attribute) and dotted(chosen.func.value) == target
    if not isinstance(chosen, ast.Compare) or len(chosen.ops) != 1 or not target:
        return False
    bound = chosen.comparators[0]
    value = bound.value if isinstance(bound, ast.Constant) else None
    if dotted(chosen.left) != target or not isinstance(chosen.ops[0], _ABOVE):
        return False
    lowest = 0 if isinstance(chosen.ops[0], ast.Gt) else 0.5
    return isinstance(value, int | float) and lowest <= value <= 1
