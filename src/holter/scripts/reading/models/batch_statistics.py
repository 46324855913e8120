"""Forward passes and embeddings that are normalised over the batch."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.expressions import resolved, tensor_of
from holter.scripts.reading.source.provenance import is_part_of_model
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Function, Pattern, Source, called, dotted, of_self

_REDUCED = re.compile(r"loss|decorrel|barlow|vicreg|whiten|cross_?corr", re.I)
# Barlow Twins correlate features over the batch.
_DECORRELATED = re.compile(r"barlow|cross_?corr|off_?diag|vicreg|whiten|\.(T|mT|t\(\)) @", re.I)


@reads
def batch_scaled(source: Source) -> Iterator[Pattern]:
    """`(x - x.mean()) / (x.std() + 1e-5)` in a forward pass: scaled by the rest of the batch."""
    for name, body in source.module_classes.items():
        if _REDUCED.search(source.code(body)) or not is_part_of_model(source, name):
            continue
        for function in body.body:
            if not isinstance(function, Function) or function.name != "forward":
                continue
            text = source.code(function)
            if re.search(r"F\.mse|entropy|\.backward|advantage|reward", text):
                continue
            for node in source.walk(function):
                if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Div):
                    continue
                given = _centred(node.left)
                if given and _is_spread(node.right, given):
                    yield source.pattern("scaled by batch", node, given)


def _centred(node: ast.expr) -> str:
    """Return `x` of `x - x.mean()`, or ""."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Sub):
        return ""
    given, mean = ast.unparse(node.left), node.right
    return given if _is_whole(mean, "mean", given) else ""


def _is_whole(node: ast.expr, kind: str, given: str) -> bool:
    """Whether an expression is `x.mean()` of all elements, or over the first axis."""
    if called(node) != kind or not isinstance(node, ast.Call):
        return False
    of = tensor_of(node)
    extra = [*node.args[1 if isinstance(node.func, ast.Attribute)
             and dotted(node.func.value) == "torch" else 0 :],
             *(each.value for each in node.keywords if each.arg in ("dim", "axis"))]  # fmt: skip
    return of is not None and ast.unparse(of) == given and not extra


def _is_spread(node: ast.expr, given: str) -> bool:
    """Whether an expression is `x.std() + eps`, or the root of `x.var() + eps`."""
    while True:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            node = node.right if isinstance(node.left, ast.Constant) else node.left
        elif called(node) in ("clamp", "clamp_min", "sqrt") and isinstance(node, ast.Call):
            inner = tensor_of(node)
            if inner is None:
                return False
            node = inner
        else:
            return _is_whole(node, "std", given) or _is_whole(node, "var", given)


@reads
def batch_normalised(source: Source) -> Iterator[Pattern]:
    """`return F.normalize(self.net(x), dim=0)`: lengths over the batch, not of each vector."""
    for body in source.module_classes.values():
        for function in body.body:
            if not isinstance(function, ast.FunctionDef) or function.name == "__init__":
                continue
            if function.name != "forward" and _DECORRELATED.search(source.code(source.tree)):
                continue
            for call in source.walk(function):
                if not isinstance(call, ast.Call) or called(call) != "normalize":
                    continue
                dims = [each.value for each in call.keywords if each.arg == "dim"]
                dims += call.args[2:3]
                is_over_batch = bool(dims) and ast.unparse(dims[0]) == "0"
                if is_over_batch and call.args and _is_activation(source, function, call.args[0]):
                    yield source.pattern("batch normalised", call, ast.unparse(call.args[0]))


def _is_activation(source: Source, function: ast.FunctionDef, value: ast.expr) -> bool:
    """Whether an expression is what a layer returns for what the forward pass computes."""
    if isinstance(value, ast.Name):
        made = [each for name, each, _ in source.assigned(function) if name == value.id]
        return bool(made) and all(
            not isinstance(each, ast.Name) and _is_activation(source, function, each)
            for each in made
        )
    if not isinstance(value, ast.Call) or not of_self(value.func):
        return False
    return any(isinstance(each, ast.Name | ast.Call) for each in value.args)


@reads
def batch_embeddings(source: Source) -> Iterator[Pattern]:
    """`z = F.normalize(model(x), dim=0)` before similarities of samples: the same elsewhere."""
    if _DECORRELATED.search(source.code(source.tree)):
        return
    for call in source.of(ast.Call):
        if called(call) not in ("normalize", "norm") or of_self(call.func):
            continue
        options = {each.arg: each.value for each in call.keywords}
        dim, given = options.get("dim"), tensor_of(call)
        if dim is None or ast.unparse(dim) != "0" or given is None:
            continue
        above = source.parent(call)
        if called(call) == "norm":  # `z / z.norm(dim=0, keepdim=True)`
            is_divided = isinstance(above, ast.BinOp) and isinstance(above.op, ast.Div)
            left = ast.unparse(above.left) if isinstance(above, ast.BinOp) else ""
            if not is_divided or left != ast.unparse(given) or "keepdim" not in options:
                continue
        made = resolved(source, source.scope(call), given)
        if isinstance(made, ast.Call) and dotted(made.func) in source.models and made.args:
            yield source.pattern("batch normalised", call, ast.unparse(given))
