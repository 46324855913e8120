"""Contrastive losses: embeddings without unit length, and views whose order is another one."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.indexing import batch_embeddings
from holter.scripts.reading.source import Pattern, Source, called, dotted
from holter.scripts.reading.values import axis_of, tensor_of, whole

_TEMPERATURE = re.compile(r"^(t|temp|temperature|tau|logit_scale|scale)$|temp|tau", re.I)
_UNIT = re.compile(
    r"(?<!transforms\.)(?<!TF\.)\bnormali[sz]e|\.norm\(|linalg\.norm|cosine|vector_norm|rsqrt|renorm|cdist|l2norm|unit|sphere"
)
_KEPT = {"to", "float", "contiguous", "detach", "cuda"}


def unnormalised(source: Source) -> Iterator[Pattern]:
    """`z @ z.t() / temperature` whose diagonal is hidden, where nothing has unit length."""
    if _UNIT.search(source.code(source.tree)):
        return
    for product, tensor in _similarities(source):
        scope = source.scope(product)
        text = source.code(scope)
        is_masked = re.search(r"fill_diagonal_|\beye\(|masked_fill", text) is not None
        is_scaled = any(
            isinstance(each, ast.BinOp) and isinstance(each.op, ast.Div)
            and _TEMPERATURE.search(dotted(each.right).rpartition(".")[2])
            for each in source.walk(scope)
        )  # fmt: skip
        if (
            is_masked
            and is_scaled
            and re.search(r"cross_entropy|CrossEntropy|logsumexp|log_softmax", text)
        ):
            yield source.pattern("embeddings without unit length", product, tensor)


def _similarities(source: Source) -> Iterator[tuple[ast.expr, str]]:
    """Yield products of a matrix with itself, transposed, and its name."""
    for node in source.walk(source.tree):
        sides: list[ast.expr] = []
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            sides = [node.left, node.right]
        elif isinstance(node, ast.Call) and called(node) in ("mm", "matmul"):
            first = tensor_of(node)
            sides = [first, node.args[-1]] if first is not None and node.args else []
        if len(sides) != 2 or not isinstance(sides[0], ast.Name):
            continue
        other = _untransposed(sides[1])
        if isinstance(other, ast.Name) and other.id == sides[0].id:
            yield node, other.id  # type: ignore[misc]


def _untransposed(node: ast.expr) -> ast.expr | None:
    if isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
        return node.value
    if isinstance(node, ast.Call) and called(node) in ("t", "transpose", "permute"):
        return tensor_of(node)
    return None


def normalised_over_batch(source: Source) -> Iterator[Pattern]:
    """`z = F.normalize(z, dim=0)` before `z @ z.t()`: rows have no unit length."""
    if any(True for _ in batch_embeddings(source)):
        return  # read there already
    for call in source.of(ast.Call):
        if called(call) != "normalize" or not isinstance(call.func, ast.Attribute):
            continue
        if dotted(call.func.value) not in (
            "F",
            "functional",
            "nn.functional",
            "torch.nn.functional",
        ):
            continue
        axis = axis_of(call, 1)
        if axis is None:
            axis = whole(next((each.value for each in call.keywords if each.arg == "dim"), None))
        statement = source.parent(call)
        if axis != 0 or not isinstance(statement, ast.Assign):
            continue
        name = dotted(statement.targets[0])
        scope = source.scope(call)
        used = [tensor for product, tensor in _pairs(source) if source.scope(product) is scope]
        if name and name in used:
            yield source.pattern("unit length over batch", call, name)


def _pairs(source: Source) -> Iterator[tuple[ast.expr, str]]:
    """Yield products `a @ b.t()`, each with the names of both."""
    for node in source.walk(source.tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            other = _untransposed(node.right)
            is_last = (other is not None and ".t()" in ast.unparse(node.right)) or (
                other is not None and ast.unparse(node.right).endswith(".T")
            )
            for each in (node.left, other) if is_last else ():
                if each is not None and dotted(each):
                    yield node, dotted(each)


def interleaved_views(source: Source) -> Iterator[Pattern]:
    """`model(torch.stack([a, b], 1).flatten(0, 1)).chunk(2)`: halves mix both views."""
    for scope in source.scopes:
        values = {name: value for name, value, _ in source.assigned(scope)}
        counts = [name for name, _, _ in source.assigned(scope)]
        for name, value in values.items():
            if counts.count(name) != 1 or not isinstance(value, ast.Call):
                continue
            order = _order(source, values, counts, value, 0)
            if not order:
                continue
            for use in source.walk(scope):
                halved = _halving(use, name)
                if halved and halved != order and _is_contrast(source, scope):
                    yield source.pattern("order of views", use, name)


def _order(
    source: Source, values: dict[str, ast.expr], counts: list[str], node: ast.expr, depth: int
) -> str:
    """Return "turns" for views that alternate and "halves" for one after the other, or ""."""
    if depth > 5:
        return ""
    if isinstance(node, ast.Name):
        value = values.get(node.id) if counts.count(node.id) == 1 else None
        return _order(source, values, counts, value, depth + 1) if value is not None else ""
    if not isinstance(node, ast.Call):
        return ""
    kind, inner = called(node), tensor_of(node)
    if kind in ("flatten", "view", "reshape") and inner is not None:
        stacked = values.get(inner.id, inner) if isinstance(inner, ast.Name) else inner
        is_pair = isinstance(stacked, ast.Call) and called(stacked) == "stack" and _is_pair(stacked)
        if is_pair and isinstance(stacked, ast.Call):
            is_flat = kind != "flatten" or ast.unparse(node).replace(" ", "").endswith(
                ("(0,1)", "start_dim=0,end_dim=1)", "(end_dim=1)")
            )
            axis = axis_of(stacked) or 0
            return {0: "halves", 1: "turns"}.get(axis, "") if is_flat else ""
        return ""
    if kind in ("cat", "concat") and _is_pair(node):
        return "halves" if axis_of(node) in (None, 0) else ""
    if kind in _KEPT or kind == "normalize":
        return _order(source, values, counts, inner, depth + 1) if inner is not None else ""
    is_network = kind in source.models or dotted(node.func).rpartition(".")[2] in source.models
    if is_network and len(node.args) == 1:
        return _order(source, values, counts, node.args[0], depth + 1)
    return ""


def _is_pair(call: ast.Call) -> bool:
    first = call.args[0] if call.args else None
    return isinstance(first, ast.Tuple | ast.List) and len(first.elts) == 2


def _halving(node: ast.AST, name: str) -> str:
    """Return how a tensor is divided into two: "halves", "turns", or ""."""
    if isinstance(node, ast.Call) and called(node) == "chunk":
        inner = tensor_of(node)
        places = [whole(each) for each in node.args]
        return (
            "halves"
            if dotted(inner or node) == name
            and 2 in places
            and len(places) <= 2
            and 1 not in places
            else ""
        )
    if isinstance(node, ast.Subscript) and dotted(node.value) == name:
        text = ast.unparse(node.slice).replace(" ", "")
        return "turns" if text in ("::2", "0::2", "1::2") else ""
    return ""


def _is_contrast(source: Source, scope: ast.AST) -> bool:
    """Whether a function trains on what it divides."""
    return any(called(each) == "backward" for each in source.walk(scope))
