"""Arrays that belong together, and are drawn, sorted or joined in different orders."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Pattern, Source, called, dotted, parameters_of

_PERMUTATIONS = {"argsort", "sort", "permutation", "randperm", "lexsort"}


@reads
def partly_sorted(source: Source) -> Iterator[Pattern]:
    """`risk, time = risk[order], time[order]` and a product with `event`, which keeps its order."""
    for function in source.of(ast.FunctionDef):
        names = parameters_of(function)
        if len(names) < 3:
            continue
        for order, made, statement in source.assigned(function):
            if called(made) not in _PERMUTATIONS or not isinstance(made, ast.Call):
                continue
            by = {each.id for each in ast.walk(made) if isinstance(each, ast.Name)} & set(names)
            moved = {
                name: node
                for name, value, node in source.assigned(function)
                if isinstance(value, ast.Subscript)
                and dotted(value.slice) == order
                and dotted(value.value) == name
                and name in names
            }
            if len(moved) < 2 or not by & set(moved):
                continue
            last = max(node.lineno for node in moved.values())
            for name in names:
                if name in moved or source.bindings(function, name):
                    continue
                uses = [
                    each
                    for each in source.of(ast.Name)
                    if each.id == name and source.scope(each) is function
                ]
                indexed = [
                    each for each in uses if order in ast.unparse(source.parent(each) or each)
                ]
                products = [
                    each
                    for each in uses
                    if each.lineno > last and _is_combined(source, each, set(moved))
                ]
                if products and not indexed and statement.lineno < last:
                    yield source.pattern("partly sorted", products[0], f"{name}, {order}")
                    break


def _is_combined(source: Source, node: ast.expr, moved: set[str]) -> bool:
    """Whether a product or a difference joins an array with one that was sorted."""
    above = source.parent(node)
    if not isinstance(above, ast.BinOp) or not isinstance(above.op, ast.Mult | ast.Sub):
        return False
    other = above.right if above.left is node else above.left
    return bool({each.id for each in ast.walk(other) if isinstance(each, ast.Name)} & moved)


@reads
def mixed_with_other(source: Source) -> Iterator[Pattern]:
    """`lam * x + (1 - lam) * x[perm]` with `y[torch.randperm(n)]` as the other label."""
    for function in source.scopes:
        mixes = [
            node
            for node in source.of(ast.BinOp)
            if isinstance(node.op, ast.Add) and source.scope(node) is function and _partners(node)
        ]
        for node in mixes:
            for name, order in _partners(node):
                for part in source.of(ast.Subscript):
                    if source.scope(part) is not function or dotted(part.value) == name:
                        continue
                    if called(part.slice) in ("randperm", "permutation") and re.match(
                        r"(y|labels?|targets?)", dotted(part.value)
                    ):
                        yield source.pattern("mixed with another", part, order)


def _partners(node: ast.BinOp) -> list[tuple[str, str]]:
    """Return what is mixed with itself in another order, and that order."""
    found = []
    for side in (node.left, node.right):
        if isinstance(side, ast.BinOp) and isinstance(side.op, ast.Mult):
            for each in (side.left, side.right):
                order = each.slice if isinstance(each, ast.Subscript) else None
                if isinstance(each, ast.Subscript) and isinstance(order, ast.Name):
                    found += [(dotted(each.value), order.id)]
    names = {dotted(each) for each in ast.walk(node)}
    return [(name, order) for name, order in found if name in names]


@reads
def targets_reversed(source: Source) -> Iterator[Pattern]:
    """`cat([score(pos), score(neg)])` with `cat([zeros(len(neg)), ones(len(pos))])`."""
    for scope in source.scopes:
        joined = {
            name: value
            for name, value, _ in source.assigned(scope)
            if called(value) in ("cat", "concat", "concatenate", "hstack")
        }
        for name, value in joined.items():
            parts = _parts(value)
            kinds = [called(each) for each in parts]
            if len(parts) != 2 or set(kinds) not in (
                {"ones", "zeros"},
                {"ones_like", "zeros_like"},
            ):
                continue
            for other, scores in joined.items():
                sides = [_polarity(each) for each in _parts(scores)]
                wanted = [1 if kind.startswith("ones") else -1 for kind in kinds]
                if other == name or len(sides) != 2 or 0 in sides or sides[0] == sides[1]:
                    continue
                if sides != wanted and _are_compared(source, scope, other, name):
                    yield source.pattern("targets reversed", value, other)


def _parts(value: ast.expr) -> list[ast.expr]:
    given = value.args[0] if isinstance(value, ast.Call) and value.args else None
    return given.elts if isinstance(given, ast.List | ast.Tuple) else []


def _polarity(node: ast.expr) -> int:
    """Return +1 for scores of positives, -1 for those of negatives."""
    if isinstance(node, ast.UnaryOp):
        return 0
    names = " ".join(dotted(each) for each in ast.walk(node) if dotted(each))
    positive = bool(re.search(r"(^|[_\W])(pos|positives?|real)([_\W]|$)", names))
    negative = bool(re.search(r"(^|[_\W])(neg|negatives?|fake)([_\W]|$)", names))
    return 0 if positive == negative else (1 if positive else -1)


def _are_compared(source: Source, scope: ast.AST, scores: str, targets: str) -> bool:
    return any(
        source.scope(call) is scope
        and [dotted(each) for each in call.args[:2]] in ([scores, targets], [targets, scores])
        for call in source.of(ast.Call)
    )
