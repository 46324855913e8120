"""Softmaxes over one axis whose results are used along another."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.expressions import axis_of, tensor_of
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Pattern, Source, called

_CHOOSING = {"max", "argmax", "topk", "amax"}
_WEIGHING = {"matmul", "bmm"}
_LAST = {"...,None": -1, ":,:,None": 2}  # subscripts that add an axis, and where
_PRODUCTS = {"matmul", "bmm"}
_ATTENTION = re.compile(r"^(att|attn|attention|attention_weights|attn_weights)$", re.I)


@reads
def used_across(source: Source) -> Iterator[Pattern]:
    """`w = a.softmax(0)` and then `(w.unsqueeze(-1) * h).sum(1)`, or `w.max(dim=1)`."""
    for scope in source.scopes:
        for name, value, statement in source.assigned(scope):
            if called(value) != "softmax" or not isinstance(value, ast.Call):
                continue
            axis = axis_of(value)
            if axis is None or axis < 0 or source.stores(scope, name) != 1:
                continue
            calls = [node for node in source.walk(scope) if isinstance(node, ast.Call)]
            if any(_is_summed_across(source, call, name, value, axis) for call in calls):
                yield source.pattern("softmax over another axis", statement, name)
            elif axis == 0 and any(_chosen_over(call, name) == 1 for call in calls):
                yield source.pattern("softmax over the batch", statement, name)


def _is_summed_across(
    source: Source, call: ast.Call, name: str, value: ast.Call, axis: int
) -> bool:
    """Whether what `name` weighs is added over a later axis than its softmax."""
    product = tensor_of(call) if called(call) == "sum" else None
    if not isinstance(product, ast.BinOp) or not isinstance(product.op, ast.Mult):
        return False
    other = axis_of(call)
    if other is None or other <= axis or _is_divided(source, source.scope(call), name):
        return False
    for weights, weighed in ((product.left, product.right), (product.right, product.left)):
        tensor, added = _without_added(weights)
        if isinstance(tensor, ast.Name) and tensor.id == name:
            # Weights of one axis fit an axis of any place: they have two, or are made of `weighed`.
            return added == 2 or bool(_origins(source, value) & _names(weighed))
    return False


def _without_added(node: ast.expr) -> tuple[ast.expr | None, int | None]:
    """Return `w` of `w.unsqueeze(-1)` and `w[:, :, None]`, and the axis that was added."""
    if called(node) == "unsqueeze" and isinstance(node, ast.Call):
        return (tensor_of(node), axis_of(node)) if axis_of(node) in (-1, 2) else (None, None)
    if isinstance(node, ast.Subscript):
        place = _LAST.get(ast.unparse(node.slice).strip("()").replace(" ", ""))
        return (node.value, place) if place else (None, None)
    return node, None


def _origins(source: Source, value: ast.expr) -> set[str]:
    """Return the names that a value is computed from, in the same scope."""
    scope, names = source.scope(value), _names(value)
    for _ in range(3):
        for name, made, _statement in source.assigned(scope):
            if name in names:
                names |= _names(made)
    return names


def _names(node: ast.AST) -> set[str]:
    every = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    return every - {"self", "torch", "F", "nn"}


def _chosen_over(call: ast.Call, name: str) -> int | None:
    if called(call) not in _CHOOSING:
        return None
    tensor = tensor_of(call)
    if not isinstance(tensor, ast.Name) or tensor.id != name:
        return None
    return axis_of(call, 1 if called(call) == "topk" else 0)


@reads
def over_queries(source: Source) -> Iterator[Pattern]:
    """`softmax(q @ k.transpose(1, 2), dim=1) @ v`: the weights of one query do not sum to 1."""
    for scope in source.scopes:
        for name, value, statement in source.assigned(scope):
            if called(value) != "softmax" or not isinstance(value, ast.Call):
                continue
            if axis_of(value) not in (1, 0) or source.stores(scope, name) != 1:
                continue
            scores = tensor_of(value)
            if scores is None or not _is_batched_product(source, scope, scores):
                continue
            is_used = any(_weighs(node, name) for node in source.walk(scope))
            if is_used and not _is_divided(source, scope, name):
                yield source.pattern("softmax over queries", statement, name)


def _is_batched_product(source: Source, scope: ast.AST, scores: ast.expr) -> bool:
    """Whether scores are products of two batches of vectors: of three axes or more."""
    names = {node.id for node in source.walk(scores) if isinstance(node, ast.Name)}
    parts = [scores, *(value for name, value, _ in source.assigned(scope) if name in names)]
    for node in (each for part in parts for each in source.walk(part)):
        is_product = called(node) in _WEIGHING or (
            isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult)
        )
        if called(node) == "bmm":
            return True
        if is_product and any(_turns_last(each) for each in source.walk(node)):
            return True
    return False


def _turns_last(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute) and node.attr == "mT":
        return True
    if not isinstance(node, ast.Call) or called(node) not in ("transpose", "permute"):
        return False
    text = ast.unparse(node).rpartition("(")[2].strip(")").replace(" ", "")
    return text in ("1,2", "2,1", "-1,-2", "-2,-1", "0,2,1", "2,3", "3,2")


def _weighs(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        return isinstance(node.left, ast.Name) and node.left.id == name
    if called(node) in _WEIGHING and isinstance(node, ast.Call) and node.args:
        first = tensor_of(node)
        return isinstance(first, ast.Name) and first.id == name
    return False


def _is_divided(source: Source, scope: ast.AST, name: str) -> bool:
    """Whether weights are normalised again, as in slot attention."""
    return any(
        isinstance(node, ast.BinOp | ast.AugAssign)
        and isinstance(node.op, ast.Div)
        and ast.unparse(node.left if isinstance(node, ast.BinOp) else node.target) == name
        for node in source.walk(scope)
    )


@reads
def softmax_over_queries(source: Source) -> Iterator[Pattern]:
    """Attention weights that are normalised over the queries: `softmax(dim=-2)`."""
    for node in source.of(ast.Assign):
        target = node.targets[0]
        if not isinstance(target, ast.Name) or not _ATTENTION.match(target.id):
            continue
        for call in source.walk(node.value):
            if called(call) not in ("softmax", "log_softmax") or not isinstance(call, ast.Call):
                continue
            dims = [keyword.value for keyword in call.keywords if keyword.arg == "dim"]
            if dims and ast.unparse(dims[0]) == "-2" and _weighs_values(source, node, target.id):
                yield source.pattern("softmax over queries", node, target.id)


def _weighs_values(source: Source, statement: ast.Assign, name: str) -> bool:
    """Whether weights are multiplied by values as they are: `attn @ v`, not normalised again."""
    scope = source.scope(statement)
    after = [node for node in source.walk(scope) if getattr(node, "lineno", 0) > statement.lineno]
    is_divided = any(
        isinstance(node, ast.BinOp | ast.AugAssign)
        and isinstance(node.op, ast.Div)
        and ast.unparse(node.left if isinstance(node, ast.BinOp) else node.target) == name
        for node in after
    )
    lefts = [node.left for node in after if isinstance(node, ast.BinOp)
             and isinstance(node.op, ast.MatMult)]  # fmt: skip
    lefts += [node.args[0] for node in after if isinstance(node, ast.Call)
              and called(node) in _PRODUCTS and node.args]  # fmt: skip
    return not is_divided and any(
        ast.unparse(left) == name
        or (isinstance(left, ast.Call) and [ast.unparse(each) for each in left.args] == [name])
        for left in lefts
    )
