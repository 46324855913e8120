"""Errors that are taken back to the unit of the targets by the wrong formula."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.expressions import number, resolved, tensor_of
from holter.scripts.reading.source.metric_names import makers
from holter.scripts.reading.source.origins import Frame, origins
from holter.scripts.reading.source.provenance import frames
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Pattern, Source, called, dotted

_SQUARED = re.compile(r"(^|_)(mse|mean_squared_error)($|_)", re.I)
_SPREAD = re.compile(r"(^|_)(std|sd|sigma|scale|stdev)($|_)", re.I)
_SQUARED_ERRORS = {"mse_loss", "MSELoss", "mean_squared_error"}
_DEEPEST = 6
_ERROR = re.compile(r"(^|_)(rmse|mae|err|error|errors)($|_|\d)", re.I)
_SCALE = re.compile(r"(^|_)(std|sd|sigma|scale|stdev)($|_|\d)", re.I)
_CENTRE = re.compile(r"(^|_)(mean|mu|offset|center|centre|shift)($|_|\d)", re.I)


@reads
def scale_in_root(source: Source) -> Iterator[Pattern]:
    """`rmse = (mse * std) ** 0.5`: the root of an error times the root of a scale."""
    for inner in _roots(source):
        if not isinstance(inner, ast.BinOp) or not isinstance(inner.op, ast.Mult):
            continue
        for error, scale in ((inner.left, inner.right), (inner.right, inner.left)):
            for way in frames(source, source.scope(inner))[:1]:
                if _is_squared(source, error, way) and _is_spread(source, scale, way):
                    yield source.pattern("scale in root", inner, ast.unparse(scale))


def _roots(source: Source) -> Iterator[ast.expr]:
    for power in source.of(ast.BinOp):
        if isinstance(power.op, ast.Pow) and ast.unparse(power.right) in ("0.5", "1 / 2"):
            yield power.left
    for call in source.of(ast.Call):
        root = tensor_of(call) if called(call) == "sqrt" else None
        if root is not None:
            yield root


def _is_squared(source: Source, node: ast.expr, way: Frame, depth: int = 0) -> bool:
    """Whether an expression is a mean of squares, by what makes it or by its name."""
    while isinstance(node, ast.Call) and called(node) in ("item", "cpu", "detach", "float"):
        inner = tensor_of(node)
        if inner is None:
            return False
        node = inner
    if isinstance(node, ast.Name) and depth < _DEEPEST:
        found = list(origins(source, node, way))
        return bool(_SQUARED.search(node.id)) or (bool(found) and all(
            _is_squared(source, each.node, each.frame, depth + 1) for each in found
        ))  # fmt: skip
    if not isinstance(node, ast.Call):
        return False
    if {called(node), *(called(each) for each in makers(source, node))} & _SQUARED_ERRORS:
        return True
    squares = tensor_of(node) if called(node) == "mean" else None
    return isinstance(squares, ast.BinOp) and isinstance(squares.op, ast.Pow) and (
        ast.unparse(squares.right) == "2"
    )  # fmt: skip


def _is_spread(source: Source, node: ast.expr, way: Frame) -> bool:
    """Whether an expression is a standard deviation: by its name, or by what makes it."""
    while isinstance(node, ast.Subscript):
        node = node.value
    name = dotted(node).rpartition(".")[2]
    if name.endswith("scale_") or _SPREAD.search(name):
        return True
    found = [each.node for each in origins(source, node, way)] if isinstance(node, ast.Name) else []
    return len(found) == 1 and (called(found[0]) == "std" or "scale_" in ast.unparse(found[0]))


@reads
def shifted_errors(source: Source) -> Iterator[Pattern]:
    """`rmse = (sq / n) ** 0.5 * std + mean`: an error has a scale and no offset."""
    for node in source.of(ast.BinOp):
        if not isinstance(node.op, ast.Add) or not _CENTRE.search(_last(node.right)):
            continue
        scaled = node.left
        if not isinstance(scaled, ast.BinOp) or not isinstance(scaled.op, ast.Mult):
            continue
        sides = (scaled.left, scaled.right)
        is_scaled = [n for n in (0, 1) if _SCALE.search(_last(sides[n]))]
        if is_scaled and _is_error(source, source.scope(node), sides[1 - is_scaled[-1]]):
            yield source.pattern("shifted error", node, _last(node.right))


def _last(node: ast.expr) -> str:
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        node = node.func.value
    while isinstance(node, ast.Subscript):
        node = node.value
    return dotted(node).rpartition(".")[2]


def _is_error(source: Source, scope: ast.AST, node: ast.expr) -> bool:
    """Whether an expression is a mean error: a root of a mean, a mean of absolute differences."""
    if _ERROR.search(_last(node)) and isinstance(node, ast.Name | ast.Attribute):
        return True
    value = resolved(source, scope, node)
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Pow):
        return number(source, value.right) == 0.5
    text = ast.unparse(value)
    if called(value) == "sqrt":
        return bool(re.search(r"mean|mse|/", text))
    return bool(re.search(r"abs\(.*mean\(|mean\(.*abs\(|mse_loss|l1_loss", text))
