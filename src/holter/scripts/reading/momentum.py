"""Moving averages of weights whose two coefficients are exchanged."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source import Pattern, Source, called, dotted
from holter.scripts.reading.values import HOMES, argument, number, resolved

_HELD = re.compile(r"parameters|buffers|state_dict|params|shadow|values\(|items\(|weights")
_DECAY = re.compile(r"decay|(^|_)(beta|momentum|ema_m)($|_)", re.I)
_LEAST = 0.4  # weight of the average itself; those of batch statistics are no weights
_MADE = {"data", "detach()", "clone()", "float()"}


def exchanged(source: Source) -> Iterator[Pattern]:
    """`ema.mul_(1 - decay).add_(p, alpha=decay)`: it keeps 0.1 % of the average."""
    for node, kept in _updates(source):
        loop = next((each for each in source.above(node) if isinstance(each, ast.For)), None)
        if loop is None or not _HELD.search(ast.unparse(loop.iter)) or _is_first(source, node):
            continue
        share = _share(source, kept)
        if share is not None and share < _LEAST:
            yield source.pattern("exchanged average", node, ast.unparse(kept))


def _is_first(source: Source, node: ast.AST) -> bool:
    """Whether an update stands under a condition on the step: a copy at the beginning."""
    return any(isinstance(each, ast.If) for each in source.above(node)) and any(
        "step" in ast.unparse(each.test) for each in source.above(node) if isinstance(each, ast.If)
    )


def _share(source: Source, node: ast.expr) -> float | None:
    """Return how much of the average is kept, by numbers or else by the name of a decay."""
    node = resolved(source, source.scope(node), node)
    known = number(source, node)
    if known is not None:
        return known if 0 < known < 1 else None
    name = dotted(node).rpartition(".")[2]
    if name:
        return 1.0 if _DECAY.search(name) else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        rest = _share(source, node.right) if number(source, node.left) == 1 else None
        return None if rest is None else 1 - rest
    return None


def _updates(source: Source) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield each update of an average, and what the average itself is multiplied by."""
    for call in source.of(ast.Call):
        name, target = called(call), _target(call)
        if name == "add_" and isinstance(target, ast.Call) and called(target) == "mul_":
            if target.args:
                yield call, target.args[0]
        elif name == "copy_" and call.args and target is not None:
            yield from _of_sum(call.args[0], target)
        elif name in ("lerp_", "lerp"):
            kept = argument(call, 1, "weight")
            is_stored = name == "lerp_" or isinstance(source.parent(call), ast.Assign | ast.Call)
            rest = _rest(source, kept) if kept is not None and is_stored else None
            if rest is not None:
                yield call, rest
    for assign in source.of(ast.Assign):
        yield from _of_sum(assign.value, assign.targets[0])


def _rest(source: Source, weight: ast.expr) -> ast.expr | None:
    """Return `decay` of `1 - decay`, or the number that is left of a constant weight."""
    if isinstance(weight, ast.BinOp) and isinstance(weight.op, ast.Sub):
        return weight.right if number(source, weight.left) == 1 else None
    share = _share(source, weight)
    left = ast.Constant(1 - share) if share is not None else None
    return ast.copy_location(left, weight) if left is not None else None


def _target(call: ast.Call) -> ast.expr | None:
    if isinstance(call.func, ast.Attribute) and dotted(call.func.value) not in HOMES:
        return call.func.value
    return None


def _of_sum(value: ast.expr, target: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield what the target itself is multiplied by in `a * target + b * other`."""
    while isinstance(value, ast.Call) and called(value) in ("clone", "detach", "to"):
        if not isinstance(value.func, ast.Attribute):
            return
        value = value.func.value
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Add):
        return
    own = []
    for part in (value.left, value.right):
        if not isinstance(part, ast.BinOp) or not isinstance(part.op, ast.Mult):
            return
        for factor, weighed in ((part.left, part.right), (part.right, part.left)):
            if _bare(weighed) == _bare(target) and _bare(weighed):
                own.append(factor)
    if len(own) == 1:
        yield value, own[0]


def _bare(node: ast.expr) -> str:
    """Return what is written of a weight, without `.data` and the like."""
    text = ast.unparse(node)
    while text.rpartition(".")[2] in _MADE:
        text = text.rpartition(".")[0]
    return text
