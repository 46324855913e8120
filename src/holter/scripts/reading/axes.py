"""Axes that are not what the script takes them for."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source import Pattern, Source, called, dotted, of_self

_RECURRENT = {"LSTM", "GRU", "RNN"}
_TURNING = re.compile(
    r"transpose|permute|swapaxes|swapdims|movedim|moveaxis|rearrange|einsum|\.m?T\b|\.t\(|unsqueeze\(1"
)
_BATCHES = re.compile(r"loader|batch|_dl\b|\bdl\b|\bsplit\(")
_PRODUCTS = {"matmul", "bmm"}
_ATTENTION = re.compile(r"^(att|attn|attention|attention_weights|attn_weights)$", re.I)


def sequence_first(source: Source) -> Iterator[Pattern]:
    """A recurrent layer without `batch_first` whose output is indexed as `out[:, -1]`."""
    for body in source.module_classes.values():
        layers = set()
        for node in ast.walk(body):
            if isinstance(node, ast.Assign) and called(node.value) in _RECURRENT:
                assert isinstance(node.value, ast.Call)
                given = {keyword.arg for keyword in node.value.keywords}
                own = dotted(node.value.func) in source.module_classes
                if not own and not given & {"batch_first", None} and len(node.value.args) < 5:
                    layers |= {of_self(target) for target in node.targets}
        layers -= {""}
        if not layers or _TURNING.search(ast.unparse(body)):
            continue
        outputs = {}
        stored = [node.id for node in ast.walk(body) if isinstance(node, ast.Name)
                  and isinstance(node.ctx, ast.Store)]  # fmt: skip
        for node in ast.walk(body):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                layer = of_self(node.value.func)
                target = node.targets[0]
                first = target.elts[0] if isinstance(target, ast.Tuple) and target.elts else target
                if layer in layers and isinstance(first, ast.Name) and stored.count(first.id) == 1:
                    outputs[first.id] = layer
        for node in ast.walk(body):
            if (
                isinstance(node, ast.Subscript)
                and isinstance(node.value, ast.Name)
                and node.value.id in outputs
                and isinstance(node.slice, ast.Tuple)
                and ast.unparse(node.slice).strip("()") in (":, -1", ":, -1, :")
            ):
                yield source.pattern("sequence first", node, outputs[node.value.id])


def softmax_over_queries(source: Source) -> Iterator[Pattern]:
    """Attention weights that are normalised over the queries: `softmax(dim=-2)`."""
    for node in source.of(ast.Assign):
        target = node.targets[0]
        if not isinstance(target, ast.Name) or not _ATTENTION.match(target.id):
            continue
        for call in ast.walk(node.value):
            if called(call) not in ("softmax", "log_softmax") or not isinstance(call, ast.Call):
                continue
            dims = [keyword.value for keyword in call.keywords if keyword.arg == "dim"]
            if dims and ast.unparse(dims[0]) == "-2" and _weighs(source, node, target.id):
                yield source.pattern("softmax over queries", node, target.id)


def _weighs(source: Source, statement: ast.Assign, name: str) -> bool:
    """Whether weights are multiplied by values as they are: `attn @ v`, not normalised again."""
    scope = source.scope(statement)
    after = [node for node in ast.walk(scope) if getattr(node, "lineno", 0) > statement.lineno]
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
