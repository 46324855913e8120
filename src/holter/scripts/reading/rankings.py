"""Rankings that are decided by ties, and errors whose unit is inside the root."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.metrics import makers
from holter.scripts.reading.origins import Frame, origins
from holter.scripts.reading.outputs import PREDICTED, frames, provenance
from holter.scripts.reading.source import Pattern, Source, called, dotted
from holter.scripts.reading.values import HOMES, argument, tensor_of, whole

_ROUNDING = {"round", "round_", "around", "rint", "floor", "ceil", "trunc", "int", "long"}
_FINE = 4  # decimals with which ties are rare
_COUNTING = {"sum", "count_nonzero"}
_RANKING = {"argsort", "topk", "rankdata", "argpartition"}
_SAME_ROWS = {
    *("cpu", "detach", "numpy", "squeeze", "unsqueeze", "view", "reshape", "gather", "diag"),
    *("diagonal", "float", "t", "flatten", "take_along_dim", "expand_as", "clone", "item"),
}
_SQUARED = re.compile(r"(^|_)(mse|mean_squared_error)($|_)", re.I)
_SPREAD = re.compile(r"(^|_)(std|sd|sigma|scale|stdev)($|_)", re.I)
_SQUARED_ERRORS = {"mse_loss", "MSELoss", "mean_squared_error"}
_DEEPEST = 6


def tied(source: Source) -> Iterator[Pattern]:
    """`s = scores.round()` and `(s > s[:, :1]).sum(1)`: a tie counts for the true item."""
    for compare in source.of(ast.Compare):
        if not isinstance(compare.ops[0], ast.Gt | ast.Lt) or not _is_counted(source, compare):
            continue
        for way in frames(source, source.scope(compare)):
            sides = [_array(source, each, way) for each in (compare.left, *compare.comparators)]
            if len(sides) == 2 and sides[0] and sides[0] == sides[1]:
                rounded = _rounded(source, compare.left, way)
                if rounded is not None:
                    yield source.pattern("ranks with ties", rounded, sides[0])
                    break
    for call in source.of(ast.Call):
        scores = tensor_of(call) if called(call) in _RANKING else None
        if isinstance(scores, ast.UnaryOp):
            scores = scores.operand
        if scores is None:
            continue
        for way in frames(source, source.scope(call)):
            rounded = _rounded(source, scores, way)
            if rounded is not None and provenance(source, scores, way) == PREDICTED:
                yield source.pattern("ranks with ties", rounded, ast.unparse(scores))
                break


def _is_counted(source: Source, compare: ast.Compare) -> bool:
    """Whether a comparison is summed: `(s > own).sum(1)`, `np.sum(s > own)`."""
    above = source.parent(compare)
    if isinstance(above, ast.Attribute) and above.attr in {*_COUNTING, "long", "int", "float"}:
        return True
    return called(above or compare) in _COUNTING


def _array(source: Source, node: ast.expr, way: Frame, depth: int = 0) -> str:
    """Return the name of the scores that an expression takes some of."""
    if depth > _DEEPEST:
        return ""
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call) and called(node) in _SAME_ROWS:
            inner = tensor_of(node)
            if inner is None:
                return ""
            node = inner
        else:
            return ""
    found = list(origins(source, node, way))
    if len(found) == 1 and found[0].frame is way:
        return _array(source, found[0].node, way, depth + 1) or node.id
    return node.id


def _rounded(source: Source, node: ast.expr, way: Frame, depth: int = 0) -> ast.expr | None:
    """Return the rounding that scores have been through, or None."""
    if depth > _DEEPEST:
        return None
    if isinstance(node, ast.Subscript):
        return _rounded(source, node.value, way, depth)
    if isinstance(node, ast.Name):
        found = list(origins(source, node, way))
        if len(found) != 1:
            return None
        return _rounded(source, found[0].node, found[0].frame, depth + 1)
    if isinstance(node, ast.BinOp) and isinstance(node.right, ast.Constant):
        return _rounded(source, node.left, way, depth + 1)
    if not isinstance(node, ast.Call) or any(called(each) == "argmax" for each in ast.walk(node)):
        return None
    is_method = isinstance(node.func, ast.Attribute) and dotted(node.func.value) not in HOMES
    if called(node) in _ROUNDING and (is_method or isinstance(node.func, ast.Attribute)):
        given = argument(node, 0, "decimals")
        if given is None and called(node) in ("round", "round_", "around"):
            return node
        digits = whole(given)
        if given is None:
            return node
        return node if digits is not None and digits < _FINE else None
    if called(node) in _SAME_ROWS or called(node) in ("sigmoid", "softmax", "tanh"):
        inner = tensor_of(node)
        return _rounded(source, inner, way, depth + 1) if inner is not None else None
    return None


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
