"""Accuracies of one index for a whole batch, or of some rows divided by the number of all."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.expressions import resolved, tensor_of
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Pattern, Source, called, dotted

_BATCHES = re.compile(r"loader|batch|_dl\b|\bdl\b|\bsplit\(")
_SHAPES = {"size", "shape", "numel", "len"}


@reads
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


@reads
def share_of_all(source: Source) -> Iterator[Pattern]:
    """`(pred == y[mask]).sum() / n` where `n` counts every row."""
    for node in source.of(ast.BinOp):
        if not isinstance(node.op, ast.Div):
            continue
        count = node.left
        while isinstance(count, ast.Call) and called(count) in ("item", "float", "int"):
            count = count.func.value if isinstance(count.func, ast.Attribute) else count.args[0]
        if called(count) != "sum" or not isinstance(count, ast.Call):
            continue
        compare = tensor_of(count)
        if not isinstance(compare, ast.Compare) or not isinstance(compare.ops[0], ast.Eq):
            continue
        chosen = [each for each in (compare.left, compare.comparators[0])
                  if isinstance(each, ast.Subscript) and re.search(
                      "mask|idx|index", ast.unparse(each.slice))]  # fmt: skip
        if not chosen:
            continue
        mask, whole = ast.unparse(chosen[0].slice), dotted(chosen[0].value)
        total = resolved(source, source.scope(node), node.right)
        text = ast.unparse(total)
        is_count = any(word in text for word in _SHAPES)
        if is_count and mask not in text and (whole in text or _is_of_nodes(source, total)):
            yield source.pattern("share of all rows", node, ast.unparse(node.right))


def _is_of_nodes(source: Source, total: ast.expr) -> bool:
    """Whether a number is the length of a table of the module, which masks are made for."""
    if called(total) != "len" or not isinstance(total, ast.Call) or not total.args:
        return False
    name = dotted(total.args[0])
    numbers = {dotted(node.targets[0]) for node in source.of(ast.Assign) if node.value is total}
    return bool(name) and any(
        called(call) in ("zeros", "full") and call.args and dotted(call.args[0]) in numbers
        and "bool" in ast.unparse(call)
        for call in source.of(ast.Call)
    )  # fmt: skip
