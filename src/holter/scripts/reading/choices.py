"""What is chosen on test data, and parts that are scaled by their own statistics."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source import Function, Pattern, Source, called, dotted
from holter.scripts.reading.values import number, resolved

_TEST = re.compile(r"(^|_)(test|te|tst)(_|$|\d)", re.I)
_VALID = re.compile(r"(^|_)(val|valid|validation|dev|va)(_|$|\d)", re.I)


def chosen_on_test(source: Source) -> Iterator[Pattern]:
    """`if acc_test > best_test:` keeps the weights where there is a validation figure as well."""
    for branch in source.of(ast.If):
        test = branch.test
        if not isinstance(test, ast.Compare) or len(test.ops) != 1:
            continue
        figure, best = dotted(test.left), dotted(test.comparators[0])
        if (
            not figure
            or not best
            or not isinstance(test.ops[0], ast.Gt | ast.Lt | ast.GtE | ast.LtE)
        ):
            continue
        if re.search(r"best|top|max|min", figure) and not re.search(r"best", best):
            figure, best = best, figure
        if not re.search(r"best", best) or not _TEST.search(figure) or _VALID.search(figure):
            continue
        scope = source.scope(branch)
        stored = {
            each.id
            for each in source.of(ast.Name)
            if source.scope(each) is scope and isinstance(each.ctx, ast.Store)
        }
        kept = {
            dotted(each)
            for part in branch.body
            for each in ast.walk(part)
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
        }
        acts = any(
            called(each) in ("save", "deepcopy", "clone", "state_dict")
            for part in branch.body
            for each in ast.walk(part)
        )
        if any(_VALID.search(each) for each in stored) and (acts or any(map(_VALID.search, kept))):
            yield source.pattern("chosen on test", branch, figure)


def own_statistics(source: Source) -> Iterator[Pattern]:
    """`def encode(frame): return (frame - frame.mean()) / frame.std()` for training and test."""
    for node in source.of(ast.BinOp):
        function = source.scope(node)
        if not isinstance(node.op, ast.Div) or not isinstance(function, Function):
            continue
        if not isinstance(node.left, ast.BinOp) or not isinstance(node.left.op, ast.Sub):
            continue
        whole = dotted(node.left.left)
        if not whole or not _is_own(source, function, node.left.right, whole, "mean"):
            continue
        if not _is_own(source, function, node.right, whole, "std"):
            continue
        name = function.name
        above = source.parent(function)
        if isinstance(above, ast.ClassDef):
            name = above.name if function.name == "__init__" else ""
        given = [
            ast.unparse(call.args[0])
            for call in source.of(ast.Call)
            if name and called(call) == name and call.args
        ]
        trained = [each for each in given if re.search(r"train|(^|_)tr(_|$|\b)", each, re.I)]
        held = [
            each
            for each in given
            if (_VALID.search(each) or _TEST.search(each)) and each not in trained
        ]
        if trained and held:
            yield source.pattern("own statistics", node, held[0])


def _is_own(source: Source, function: Function, node: ast.expr, whole: str, kind: str) -> bool:
    """Whether an expression is a statistic over the rows of the very table: `x.mean(0)`."""
    node = resolved(source, function, node)
    while True:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            node = resolved(source, function, node.left)
        elif isinstance(node, ast.Call) and called(node) in ("replace", "clip", "clamp"):
            inner = node.func.value if isinstance(node.func, ast.Attribute) else node
            node = resolved(source, function, inner)
        else:
            break
    if called(node) != kind or not isinstance(node, ast.Call):
        return False
    of = dotted(node.func.value) if isinstance(node.func, ast.Attribute) else ""
    arguments = [*node.args, *(each.value for each in node.keywords if each.arg in ("axis", "dim"))]
    axes = [number(source, each) for each in arguments]
    is_frame = not node.args and not node.keywords and "fillna" in source.code(function)
    return of == whole and (axes == [0.0] or is_frame)
