"""Metric learning: margins and anchors of triplets, and rankings in which a query finds itself."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.losses.pairwise import label_of
from holter.scripts.reading.retrieval.contrastive_views import similarity
from holter.scripts.reading.source.expressions import number, resolved, summands, tensor_of
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Pattern, Source, called, dotted

_MARGIN = re.compile(r"margin|^m$|^alpha$", re.I)
_HINGES = {"relu", "clamp", "clamp_min", "clip", "maximum", "max", "ReLU"}
_SORTING = {"argsort", "sort", "topk", "argmax", "argmin", "max", "min"}
_TRIPLET = re.compile(r"triplet", re.I)
_EXCLUDED = re.compile(
    r"diagonal|eye|inf\b|mask|1e9|1e6|\[:, 1:|\[1:|\+ 1, dim|k \+ 1|k=|tri[lu]|!=|drop|- 1|remove"
)


@reads
def subtracted_margin(source: Source) -> Iterator[Pattern]:
    """`relu(d_pos - d_neg - margin)`: the margin lets negatives be nearer than positives."""
    for call in source.of(ast.Call):
        if called(call) not in _HINGES:
            continue
        inner = tensor_of(call)
        if called(call) in ("clamp", "clip") and [
            (each.arg, ast.unparse(each.value)) for each in call.keywords
        ] not in ([("min", "0")], [("min", "0.0")]):
            continue
        if called(call) == "max" and "0" not in map(ast.unparse, call.args):
            continue
        parts = list(summands(inner)) if inner is not None else []
        labels = {label_of(part): sign for sign, part in parts if label_of(part)}
        rest = [(sign, part) for sign, part in parts if not label_of(part)]
        if len(parts) != 3 or set(labels) != {"pos", "neg"} or len(rest) != 1:
            continue
        sign, margin = rest[0]
        value = number(source, margin)
        is_margin = _MARGIN.search(dotted(margin).rpartition(".")[2]) or value is not None
        is_opposite = labels["pos"] != labels["neg"]
        if is_margin and is_opposite and sign < 0 and (value is None or value > 0):
            yield source.pattern("subtracted margin", call, ast.unparse(margin))


@reads
def repeated_anchor(source: Source) -> Iterator[Pattern]:
    """`triplet_margin_loss(a, a, n)`: the anchor is its own positive."""
    for call in source.of(ast.Call):
        values = source.named(dotted(call.func).rpartition(".")[2])
        is_triplet = _TRIPLET.search(called(call)) or (
            len(values) > 0 and all(_TRIPLET.search(called(each)) for each in values)
        )
        names = [ast.unparse(each) for each in call.args[:3]]
        if is_triplet and len(names) == 3 and len(set(names)) < 3 and all(
            isinstance(each, ast.Name | ast.Attribute | ast.Call) for each in call.args[:3]
        ):  # fmt: skip
            twice = next(name for name in names if names.count(name) > 1)
            yield source.pattern("repeated anchor", call, twice)


@reads
def self_match(source: Source) -> Iterator[Pattern]:
    """`(e @ e.t()).argsort(...)` and `ids[order] == ids[:, None]`: the first hit is the query."""
    for call in source.of(ast.Call):
        scope = source.scope(call)
        scores = tensor_of(call) if called(call) in _SORTING else None
        if scores is None or scope is source.tree:
            continue
        base = similarity(source, scope, scores) or _distance(source, scope, scores)
        if not base or _EXCLUDED.search(source.code(scope)):
            continue
        if _is_matched(source, scope, call):
            yield source.pattern("self match", call, base)


def _distance(source: Source, scope: ast.AST, node: ast.expr) -> str:
    """Return `z` of `torch.cdist(z, z)`."""
    made = resolved(source, scope, node)
    if not isinstance(made, ast.Call) or called(made) not in ("cdist", "pairwise_distances"):
        return ""
    names = [dotted(each) for each in made.args[:2]]
    return names[0] if len(names) == 2 and names[0] == names[1] else ""


def _is_matched(source: Source, scope: ast.AST, call: ast.Call) -> bool:
    """Whether labels of what is found are compared with the same labels in their own order."""
    statement = next(each for each in source.above(call) if isinstance(each, ast.stmt))
    targets = {node.id for each in getattr(statement, "targets", [])
               for node in ast.walk(each) if isinstance(node, ast.Name)}  # fmt: skip
    for node in source.walk(scope):
        if not isinstance(node, ast.Compare) or not isinstance(node.ops[0], ast.Eq):
            continue
        for one, other in ((node.left, node.comparators[0]), (node.comparators[0], node.left)):
            if not isinstance(one, ast.Subscript) or not dotted(one.value):
                continue
            found = {each.id for each in ast.walk(one.slice) if isinstance(each, ast.Name)}
            is_found = bool(found & targets) or call in source.walk(one.slice)
            if is_found and _root(other) == dotted(one.value):
                return True
    return False


def _root(node: ast.expr) -> str:
    while True:
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        else:
            return dotted(node)
