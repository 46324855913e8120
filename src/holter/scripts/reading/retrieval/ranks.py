"""Ranks that ties decide, and orders that are taken for ranks."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.expressions import HOMES, argument, resolved, tensor_of, whole
from holter.scripts.reading.source.origins import Frame, origins
from holter.scripts.reading.source.provenance import PREDICTED, frames, provenance
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Pattern, Source, called, dotted

_ROUNDING = {"round", "round_", "around", "rint", "floor", "ceil", "trunc", "int", "long"}
_FINE = 4  # decimals with which ties are rare
_COUNTING = {"sum", "count_nonzero"}
_RANKING = {"argsort", "topk", "rankdata", "argpartition"}
_SAME_ROWS = {
    *("cpu", "detach", "numpy", "squeeze", "unsqueeze", "view", "reshape", "gather", "diag"),
    *("diagonal", "float", "t", "flatten", "take_along_dim", "expand_as", "clone", "item"),
}
_DEEPEST = 6


@reads
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


@reads
def order_as_ranks(source: Source) -> Iterator[Pattern]:
    """`ranks = np.argsort(score) + 1` and `ranks[y == 1].sum()`: an order is no rank."""
    for scope in source.scopes:
        for name, value, statement in source.assigned(scope):
            inner = value
            while isinstance(inner, ast.BinOp | ast.Call) and called(inner) != "argsort":
                if isinstance(inner, ast.BinOp) and isinstance(inner.right, ast.Constant):
                    inner = inner.left
                elif isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
                    inner = inner.func.value
                else:
                    break
            if called(inner) != "argsort" or not re.search(r"rank", name, re.I):
                continue
            if ast.unparse(inner).count("argsort") > 1 or _sorts_order(source, scope, inner):
                continue
            if _is_summed_by_mask(source, scope, name):
                yield source.pattern("order as ranks", statement, name)


def _sorts_order(source: Source, scope: ast.AST, inner: ast.expr) -> bool:
    """Whether what is sorted is an order itself, whose order is the ranks."""
    assert isinstance(inner, ast.Call)
    parts = [*inner.args, getattr(inner.func, "value", inner)]
    return any(
        "argsort" in ast.unparse(resolved(source, scope, each))
        for each in parts
        if isinstance(each, ast.Name)
    )


def _is_summed_by_mask(source: Source, scope: ast.AST, name: str) -> bool:
    for node in source.of(ast.Subscript):
        if source.scope(node) is not scope or dotted(node.value) != name:
            continue
        mask = resolved(source, scope, node.slice)
        if (
            isinstance(mask, ast.Call)
            and called(mask) in ("astype", "bool")
            and isinstance(mask.func, ast.Attribute)
        ):
            mask = mask.func.value
        is_mask = isinstance(mask, ast.Compare) or bool(
            re.search(r"(^|_)(pos|positives?|relevant|labels?|mask)$", dotted(node.slice))
        )
        above = source.parent(node)
        if is_mask and isinstance(above, ast.Attribute) and above.attr in ("sum", "mean"):
            return True
        if is_mask and called(above or node) in ("sum", "mean"):
            return True
    return False
