"""Overlaps of areas whose union is not one: IoU and Dice."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.metrics.divisions import division, named_values
from holter.scripts.reading.source.expressions import resolved, tensor_of
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Pattern, Source, called, dotted

_ARRAYS = ("np", "numpy", "torch")
_UNION = re.compile(r"(^|_)unions?($|_)", re.I)
_INTERSECTION = re.compile(r"(^|_)inter(s|section|sections|sect)?($|_)|overlap", re.I)
_UNITING = {"logical_or", "maximum", "max", "clamp", "bitwise_or", "bincount", "unique", "where"}
_IOU = re.compile(r"(^|_)(m?ious?|jaccards?)($|_|\d)", re.I)
_DICE = re.compile(r"(^|_)dices?($|_)", re.I)
_INTERSECTION_NAME = re.compile(
    r"(^|_)(inter(s|section|sections|sect)?|overlaps?|tps?|hits?|both)($|_)", re.I
)


@reads
def one_sided_union(source: Source) -> Iterator[Pattern]:
    """`inter += (p & t).sum()` and `union += t.sum()`: a recall is called an IoU."""
    unions: dict[ast.AST, list[tuple[ast.expr, ast.stmt]]] = {}
    overlaps: dict[ast.AST, list[ast.expr]] = {}
    nodes: list[ast.Assign | ast.AugAssign] = [*source.of(ast.Assign), *source.of(ast.AugAssign)]
    for node in nodes:
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        name = dotted(target.value if isinstance(target, ast.Subscript) else target)
        name = name.rpartition(".")[2]
        if not _UNION.search(name) and not _INTERSECTION.search(name):
            continue
        if not any(called(each) == "sum" for each in source.walk(node.value)):
            continue
        if _UNION.search(name):
            unions.setdefault(source.scope(node), []).append((node.value, node))
        else:
            overlaps.setdefault(source.scope(node), []).append(node.value)
    for scope, found in unions.items():
        if len(found) != 1 or len(overlaps.get(scope, ())) != 1 or _is_joined(found[0][0]):
            continue
        both, one = _arrays(overlaps[scope][0]), _arrays(found[0][0])
        if one < both and len(one) == 1:
            yield source.pattern("one-sided union", found[0][1], next(iter(one)))


def _is_joined(value: ast.expr) -> bool:
    """Whether an expression is more than the sum of one array, or of one comparison."""
    return any(
        isinstance(node, ast.BinOp | ast.BoolOp) or called(node) in _UNITING
        for node in ast.walk(value)
    )


def _arrays(value: ast.expr) -> set[str]:
    """Return the names in an expression, without those of modules and of classes in comparisons."""
    compared = {
        each
        for node in ast.walk(value)
        if isinstance(node, ast.Compare)
        for each in node.comparators
    }
    names = {
        node.id for node in ast.walk(value) if isinstance(node, ast.Name) and node not in compared
    }
    return names - {*_ARRAYS, "float", "int"}


@reads
def of_areas(source: Source) -> Iterator[Pattern]:
    """`union = a.sum() + b.sum()` without the overlap taken off, and Dice without its factor 2."""
    for scope in source.scopes:
        for name, value, statement in source.assigned(scope):
            is_union = _UNION.search(name)
            if is_union and _adds_areas(value) and not _is_reduced_later(source, scope, name):
                yield source.pattern("union with overlap", statement, name)
    for node in source.of(ast.AugAssign):  # `union += (a + b).sum()` over batches
        name = dotted(node.target)
        if not isinstance(node.op, ast.Add) or not _UNION.search(name.rpartition(".")[2]):
            continue
        homes = source.scopes if "." in name else [source.scope(node)]
        is_reduced = any(_is_reduced_later(source, each, name) for each in homes)
        divides = any(
            isinstance(each.op, ast.Div) and dotted(_plain(each.right)) == name
            for each in source.of(ast.BinOp)
        )
        if _adds_areas(node.value) and divides and not is_reduced:
            yield source.pattern("union with overlap", node, name)
    for name, value, statement in named_values(source):
        ratio = division(value)
        if ratio is None or not _has_overlap(source, statement, ratio.left):
            continue
        below = resolved(source, source.scope(statement), _plain(ratio.right))
        if not _adds_areas(below):
            continue
        home = source.scope(statement)
        parts = [
            value,
            *(
                resolved(source, home, each)
                for each in ast.walk(ratio.left)
                if isinstance(each, ast.Name)
            ),
        ]
        doubled = any(
            getattr(each, "value", None) in (2, 2.0) for part in parts for each in ast.walk(part)
        )
        if _IOU.search(name) and not doubled and not _UNION.search(dotted(ratio.right)):
            yield source.pattern("union with overlap", statement, name)
        elif _DICE.search(name) and not doubled:
            yield source.pattern("dice without two", statement, name)


def _plain(node: ast.expr) -> ast.expr:
    """Return a denominator without what keeps it from zero: `(u + eps)`, `u.clamp(min=1)`."""
    while True:
        if isinstance(node, ast.Call) and called(node) in ("clamp", "clip", "clamp_min"):
            inner = node.func.value if isinstance(node.func, ast.Attribute) else None
            if inner is None or (not node.args and not node.keywords):
                return node
            node = inner if dotted(inner) not in ("np", "torch") else node.args[0]
        elif isinstance(node, ast.Call) and called(node) in ("max", "maximum") and node.args:
            node = node.args[0]
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and _is_small(node.right):
            node = node.left
        else:
            return node


def _is_small(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) or bool(re.search(r"eps|smooth", dotted(node), re.I))


def _adds_areas(value: ast.expr) -> bool:
    """Whether an expression is the sum of two sums, and nothing is taken off."""
    value = _plain(value)
    if _is_sum_of_two(value):
        return True
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Add):
        return False
    if any(isinstance(each, ast.Sub | ast.BitOr | ast.Mult) for each in ast.walk(value)):
        return False
    sides = [ast.unparse(each) for each in (value.left, value.right)]
    return sides[0] != sides[1] and all(_is_area(each) for each in (value.left, value.right))


def _is_sum_of_two(value: ast.expr) -> bool:
    """Whether an expression is `(a + b).sum()` or `np.sum(a + b)` of two masks."""
    while called(value) in ("item", "float", "int", "long") and isinstance(value, ast.Call):
        if isinstance(value.func, ast.Attribute):
            value = value.func.value
        elif value.args:
            value = value.args[0]
        else:
            return False
    if not isinstance(value, ast.Call) or called(value) != "sum":
        return False
    inner = tensor_of(value)
    if not isinstance(inner, ast.BinOp) or not isinstance(inner.op, ast.Add):
        return False
    sides = (inner.left, inner.right)
    return (
        all(isinstance(each, ast.Name | ast.Attribute | ast.Subscript) for each in sides)
        and ast.unparse(sides[0]) != ast.unparse(sides[1])
        and not _is_small(inner.right)
    )


def _is_area(node: ast.expr) -> bool:
    while isinstance(node, ast.Call) and called(node) in ("float", "double", "item", "long"):
        if not isinstance(node.func, ast.Attribute):
            break
        node = node.func.value
    return called(node) == "sum" or bool(
        re.search(r"(^|_)(area|size|n)(_?\w)?$", dotted(node)) and "area" in dotted(node)
    )


def _is_reduced_later(source: Source, scope: ast.AST, name: str) -> bool:
    """Whether the overlap is taken off where the union is used, or Dice is computed of it."""
    nodes: list[ast.BinOp | ast.AugAssign] = [*source.of(ast.BinOp), *source.of(ast.AugAssign)]
    for node in nodes:
        if source.scope(node) is not scope:
            continue
        if isinstance(node, ast.AugAssign):
            if dotted(node.target) == name and isinstance(node.op, ast.Sub):
                return True
        elif isinstance(node, ast.BinOp):
            names = {dotted(each) for each in ast.walk(node.right)}
            doubles = any(getattr(each, "value", None) in (2, 2.0) for each in ast.walk(node.left))
            if isinstance(node.op, ast.Sub) and dotted(node.left) == name:
                return True
            if isinstance(node.op, ast.Div) and name in names and doubles:
                return True
    return False


def _has_overlap(source: Source, statement: ast.AST, node: ast.expr) -> bool:
    """Whether a numerator is an intersection: by its name, or a sum of a product."""
    names = [dotted(each) for each in ast.walk(node) if dotted(each)]
    if any(_INTERSECTION_NAME.search(each.rpartition(".")[2]) for each in names):
        return True
    value = resolved(source, source.scope(statement), node)
    return any(
        called(each) == "sum"
        and any(isinstance(part, ast.Mult | ast.BitAnd) for part in ast.walk(each))
        for each in ast.walk(value)
    )
