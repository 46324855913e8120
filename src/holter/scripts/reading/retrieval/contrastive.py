"""Contrastive losses: lengths of embeddings, temperatures, labels, and the order of views."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.models.batch_statistics import batch_embeddings
from holter.scripts.reading.source.expressions import (
    axis_of,
    made_once,
    number,
    resolved,
    tensor_of,
    whole,
)
from holter.scripts.reading.source.origins import passed
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import (
    Pattern,
    Source,
    called,
    dotted,
    names_in,
    parameters_of,
)

_TEMPERATURE = re.compile(r"^(t|temp|temperature|tau|logit_scale|scale)$|temp|tau", re.I)
_UNIT = re.compile(
    r"(?<!transforms\.)(?<!TF\.)\bnormali[sz]e|\.norm\(|linalg\.norm|cosine|vector_norm|rsqrt|renorm|cdist|l2norm|unit|sphere"
)
_KEPT = {"to", "float", "contiguous", "detach", "cuda"}
_TEMPERATURE_NAME = re.compile(
    r"^(temp|temperature|tau|t)$|_(temp|temperature|tau)$|^(temp|tau)_", re.I
)
_SCALE = re.compile(r"^(log|logit)_?scale$", re.I)
_PRODUCTS = {"matmul", "mm", "bmm", "cosine_similarity", "einsum", "cdist"}
_SOFT = re.compile(r"cross_entropy|softmax|logsumexp|criterion|loss_fn|nll_loss", re.I)
_NO_DIAGONAL = {"zeros", "ones", "full", "randperm", "randint", "zeros_like", "ones_like"}
_MATRIX_PRODUCTS = {"matmul", "mm"}
_CLASSES = {"cross_entropy", "nll_loss"}


@reads
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


@reads
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


@reads
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


@reads
def multiplied(source: Source) -> Iterator[Pattern]:
    """`cross_entropy(a @ b.t() * 0.1, y)`: similarities are divided by a temperature."""
    for node in source.of(ast.BinOp):
        if isinstance(node.op, ast.Mult):
            for scores, by in ((node.left, node.right), (node.right, node.left)):
                name = dotted(by).rpartition(".")[2]
                value = number(source, by) if _TEMPERATURE_NAME.search(name) else None
                if value is not None and 0 < value < 1 and _are_logits(source, node, scores):
                    yield source.pattern("multiplied temperature", node, name)
        elif isinstance(node.op, ast.Div) and _are_logits(source, node, node.left):
            name = _inverse(source, node.right)
            if name:
                yield source.pattern("divided scale", node, name)


def _inverse(source: Source, by: ast.expr) -> str:
    """Return the name of `log_scale` if an expression is its exponential, or always given that."""
    scope = source.scope(by)
    if isinstance(by, ast.Name) and by.id in parameters_of(scope):
        given = [each for each in passed(source, scope, by.id) if not isinstance(each, ast.Name)]
        names = {_inverse(source, each) for each in given}
        return names.pop() if len(names) == 1 else ""
    for node in source.walk(resolved(source, scope, by)):
        if called(node) == "exp" and isinstance(node, ast.Call):
            inner = node.func.value if isinstance(node.func, ast.Attribute) else node
            inner = node.args[0] if node.args else inner
            name = dotted(inner).rpartition(".")[2]
            if _SCALE.match(name):
                return name
    return ""


def _are_logits(source: Source, node: ast.BinOp, scores: ast.expr) -> bool:
    """Whether scores are products of vectors, and what is made of them goes to a softmax."""
    scope = source.scope(node)
    if not _is_product(source, scope, scores):
        return False
    for above in source.above(node):
        if isinstance(above, ast.Call) and _SOFT.search(called(above)):
            return True
        if isinstance(above, ast.Return):
            return _is_loss_input(source, scope)
        if isinstance(above, ast.Assign):
            names = {dotted(target) for target in above.targets}
            is_returned = any(names & names_in(each) for each in source.walk(scope)
                              if isinstance(each, ast.Return))  # fmt: skip
            if is_returned and _is_loss_input(source, scope):
                return True
            return any(
                _SOFT.search(called(call))
                and any(dotted(each) in names for part in call.args for each in source.walk(part))
                for call in source.walk(scope)
                if isinstance(call, ast.Call)
            )
    return False


def _is_loss_input(source: Source, scope: ast.AST) -> bool:
    """Whether what a function of the file returns goes to a softmax: by a name, or at once."""
    name = getattr(scope, "name", "")
    if not name or name == "forward":
        return bool(name) and any(_SOFT.search(called(call)) for call in source.of(ast.Call))
    return any(
        called(each) == name
        for call in source.of(ast.Call)
        if _SOFT.search(called(call))
        for part in call.args
        for each in source.walk(part)
    )


def _is_product(source: Source, scope: ast.AST, scores: ast.expr) -> bool:
    """Whether an expression holds a matrix product, by up to two names."""
    seen: set[str] = set()
    parts: list[ast.AST] = [scores]
    for _ in range(3):
        nodes = [node for part in parts for node in source.walk(part)]
        if any(called(node) in _PRODUCTS or (isinstance(node, ast.BinOp) and isinstance(
                node.op, ast.MatMult)) for node in nodes):  # fmt: skip
            return True
        names = {node.id for node in nodes if isinstance(node, ast.Name)} - seen
        seen |= names
        parts = [value for name in names if (value := made_once(source, scope, name)) is not None]
    return False


@reads
def shifted(source: Source) -> Iterator[Pattern]:
    """`cat([negative, q @ d.T], 1)` with labels `arange`: the diagonal begins in column 1."""
    for call in source.of(ast.Call):
        if called(call) not in _CLASSES or len(call.args) < 2:
            continue
        scope = source.scope(call)
        logits = _made(source, scope, call.args[0])
        labels = _made(source, scope, call.args[1])
        if logits is None or called(labels or call) != "arange":
            continue
        while isinstance(logits, ast.BinOp) and isinstance(logits.op, ast.Div | ast.Mult):
            logits = logits.left
        if called(logits) not in ("cat", "concat") or not isinstance(logits, ast.Call):
            continue
        parts = logits.args[0] if logits.args else None
        if not isinstance(parts, ast.List | ast.Tuple) or not _is_along_columns(logits):
            continue
        first, *others = [_made(source, scope, each) for each in parts.elts]
        if first is None or not _is_column(first):
            continue
        if len(others) == 1 and others[0] is not None and _is_square(others[0]):
            yield source.pattern("shifted diagonal", call, ast.unparse(parts.elts[0]))
    yield from _off_diagonal(source)


def _off_diagonal(source: Source) -> Iterator[Pattern]:
    """Yield `ce(logits, t) + ce(logits.T, t)` whose targets are all the same, or random."""
    for call in source.of(ast.Call):
        if called(call) not in _CLASSES or len(call.args) < 2:
            continue
        scope = source.scope(call)
        target = _made(source, scope, call.args[1])
        while called(target or call) in ("to", "long", "cuda") and isinstance(target, ast.Call):
            target = target.func.value if isinstance(target.func, ast.Attribute) else None
        if target is None or called(target) not in _NO_DIAGONAL:
            continue
        logits = ast.unparse(call.args[0])
        turned = {f"{logits}.T", f"{logits}.t()", f"{logits}.mT", f"{logits}.transpose(0, 1)",
                  f"{logits}.transpose(1, 0)", f"{logits}.permute(1, 0)"}  # fmt: skip
        others = {
            ast.unparse(each.args[0])
            for each in source.of(ast.Call)
            if called(each) in _CLASSES and source.scope(each) is scope and each.args
        }
        if turned & others:
            yield source.pattern("targets off diagonal", call, ast.unparse(call.args[1]))


def _made(source: Source, scope: ast.AST, value: ast.expr) -> ast.expr | None:
    """Return the one expression that a name stands for, or the expression itself."""
    if not isinstance(value, ast.Name):
        return value
    made = [each for name, each, _ in source.assigned(scope) if name == value.id]
    return made[0] if len(made) == 1 and source.stores(scope, value.id) == 1 else None


def _is_along_columns(call: ast.Call) -> bool:
    dims = [each.value for each in call.keywords if each.arg in ("dim", "axis")]
    dims += call.args[1:2]
    return bool(dims) and ast.unparse(dims[0]) in ("1", "-1")


def _is_column(value: ast.expr) -> bool:
    """Whether an expression is one column: `(q * d).sum(-1, keepdim=True)`."""
    text = ast.unparse(value)
    is_sum = isinstance(value, ast.Call) and called(value) in ("sum", "unsqueeze")
    return is_sum and ("keepdim=True" in text or "unsqueeze(1)" in text or "unsqueeze(-1)" in text)


def _is_square(value: ast.expr) -> bool:
    """Whether an expression holds the products of all rows of two batches: `q @ d.t()`."""
    while isinstance(value, ast.BinOp) and isinstance(value.op, ast.Div | ast.Mult):
        value = value.left
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.MatMult):
        right = value.right
    elif called(value) in _MATRIX_PRODUCTS and isinstance(value, ast.Call) and value.args:
        right = value.args[-1]
    else:
        return False
    other = ast.unparse(right)
    if not re.search(r"\.t\(\)$|\.m?T$|transpose\(", other):
        return False
    return not re.search(r"queue|bank|memory|negative|weight|proto", other, re.I)
