"""Axes that are not what the script takes them for."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source import Pattern, Source, called

_BATCHES = re.compile(r"loader|batch|_dl\b|\bdl\b|\bsplit\(")
_PRODUCTS = {"matmul", "bmm"}
_ATTENTION = re.compile(r"^(att|attn|attention|attention_weights|attn_weights)$", re.I)


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
            if dims and ast.unparse(dims[0]) == "-2" and _weighs(source, node, target.id):
                yield source.pattern("softmax over queries", node, target.id)


def _weighs(source: Source, statement: ast.Assign, name: str) -> bool:
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


def whole_maximum(source: Source) -> Iterator[Pattern]:
    """`(logits.argmax() == y)`: one index of the whole batch is compared with every label."""
    for node in source.of(ast.Compare):
        above = source.parent(node)
        is_counted = isinstance(above, ast.Attribute) and above.attr in ("sum", "float", "mean")
        if not isinstance(node.ops[0], ast.Eq) or not is_counted:
            continue
        call = node.left
        if isinstance(call, ast.Call) and called(call) == "argmax" and not call.keywords:
            own = isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) not in (
                "torch",
                "np",
            )
            other = node.comparators[0]
            if own and not call.args and isinstance(other, ast.Name) and _has_batches(source, node):
                yield source.pattern("argmax of all", node, ast.unparse(call))


def _has_batches(source: Source, node: ast.AST) -> bool:
    """Whether an expression is about batches of several samples, as far as the source says."""
    loops = [each for each in source.above(node) if isinstance(each, ast.For)]
    around = ast.unparse(loops[0] if loops else source.scope(node))
    if re.search(r"unsqueeze\(0\)|\[None|batch_size=1\b", around):
        return False
    if not loops:
        return source.scope(node) is not source.tree
    return bool(_BATCHES.search(ast.unparse(loops[0].iter)))
