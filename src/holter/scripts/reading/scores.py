"""Metrics that are divided by half of their denominator."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source import Pattern, Source, called, dotted

_ARRAYS = ("np", "numpy", "torch")
_UNION = re.compile(r"(^|_)unions?($|_)", re.I)
_INTERSECTION = re.compile(r"(^|_)inter(s|section|sections|sect)?($|_)|overlap", re.I)
_UNITING = {"logical_or", "maximum", "max", "clamp", "bitwise_or", "bincount", "unique", "where"}


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
