"""Labels that a selection makes equal, or that a clamp turns into a class."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.expressions import argument, number, tensor_of
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Pattern, Source, called, dotted

_BINARY = {"binary_cross_entropy", "binary_cross_entropy_with_logits"}
_ABOVE = (ast.Gt, ast.GtE, ast.Eq)
_OTHER_LOSSES = {*_BINARY, "cross_entropy", "logsigmoid", "softplus", "sigmoid"}
_CROSS = {"cross_entropy", "nll_loss", "CrossEntropyLoss", "NLLLoss"}
_PASSED_ON = {"to", "long", "cuda", "view", "reshape", "flatten", "squeeze"}


@reads
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


@reads
def clamped_labels(source: Source) -> Iterator[Pattern]:
    """`cross_entropy(logits, y.clamp(min=0))` where -1 is unknown: it becomes the class 0."""
    ignored = re.search(r">= 0|!= -1|> -1|== -1|< 0|ignore_index", source.code(source.tree))
    for call in source.of(ast.Call):
        made = source.named(dotted(call.func).rpartition(".")[2])
        is_loss = called(call) in _CROSS or (bool(made) and all(called(each) in _CROSS
                                                               for each in made))  # fmt: skip
        if not is_loss or len(call.args) < 2:
            continue
        options = {each.arg: each.value for instance in (call, *made)
                   if isinstance(instance, ast.Call) for each in instance.keywords}  # fmt: skip
        if getattr(options.get("reduction"), "value", "mean") == "none" or "weight" in options:
            continue
        target = call.args[1]
        while isinstance(target, ast.Call) and called(target) in _PASSED_ON:
            target = tensor_of(target) or target.func
        if isinstance(target, ast.Name):
            values = [value for name, value, _ in source.assigned(source.scope(target))
                      if name == target.id]  # fmt: skip
            target = values[-1] if len(values) == 1 else target
        if not isinstance(target, ast.Call) or isinstance(tensor_of(target), ast.Subscript):
            continue
        lowest = argument(target, 0, "min")
        is_clamped = called(target) in ("clamp", "clamp_min", "clip", "relu", "abs", "maximum")
        is_zero = called(target) in ("relu", "abs") or number(source, lowest) == 0
        has_top = called(target) in ("clamp", "clip") and argument(target, 1, "max") is not None
        if is_clamped and is_zero and not has_top and ignored:
            yield source.pattern("clamped labels", call, ast.unparse(target))
