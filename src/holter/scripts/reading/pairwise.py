"""Pairwise ranking losses whose negatives are known by where they come from, not by a name."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.objective import objectives
from holter.scripts.reading.origins import Frame, origins
from holter.scripts.reading.source import Pattern, Source, called, dotted
from holter.scripts.reading.values import tensor_of

_NEGATIVE = re.compile(r"(^|_)(neg|negs|negatives?|sampled|corrupt\w*)(_|$|\d)", re.I)
_DISTANCE = re.compile(r"dist|cdist|norm\(|energy|margin", re.I)


def reversed_difference(source: Source) -> Iterator[Pattern]:
    """`-logsigmoid(model(u, j) - model(u, i))` where `j` is what the negatives were made of."""
    for terms in objectives(source):
        for term in terms:
            node = term.node
            if not isinstance(node, ast.Call) or called(node) not in ("logsigmoid", "softplus"):
                continue
            inner = tensor_of(node)
            if isinstance(inner, ast.Name):
                found = list(origins(source, inner, term.frame))
                inner = found[0].node if len(found) == 1 else None
            sign = term.sign
            if isinstance(inner, ast.UnaryOp) and isinstance(inner.op, ast.USub):
                continue
            if not isinstance(inner, ast.BinOp) or not isinstance(inner.op, ast.Sub) or not sign:
                continue
            sides = [inner.left, inner.right]
            first, second = (_is_negative(source, each, term.frame) for each in sides)
            if first == second or _DISTANCE.search(source.code(source.scope(node))):
                continue
            if first != (sign > 0):
                yield source.pattern("reversed pair", node, "score")


def _is_negative(source: Source, node: ast.expr, frame: Frame) -> bool:
    """Whether a score is of negatives: `f(u, j)` with `u, i, j = (t(a) for a in (x, y, neg))`."""
    if isinstance(node, ast.Name):
        if _NEGATIVE.search(node.id):
            return True
        found = list(origins(source, node, frame))
        node = found[0].node if len(found) == 1 else node
    if not isinstance(node, ast.Call):
        return False
    return any(_made_of_negatives(source, each) for each in node.args)


def _made_of_negatives(source: Source, node: ast.expr) -> bool:
    names = {dotted(each).rpartition(".")[2] for each in ast.walk(node)} - {""}
    if any(map(_NEGATIVE.search, names)):
        return True
    if not isinstance(node, ast.Name):
        return False
    for bound in source.bindings(source.scope(node), node.id):
        if not isinstance(bound, ast.Assign) or not isinstance(bound.targets[0], ast.Tuple):
            continue
        names_of = [dotted(each) for each in bound.targets[0].elts]
        value = bound.value
        if isinstance(value, ast.GeneratorExp | ast.ListComp):
            value = value.generators[0].iter
        if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(names_of):
            made = value.elts[names_of.index(node.id)]
            return any(_NEGATIVE.search(dotted(each)) for each in ast.walk(made))
    return False
