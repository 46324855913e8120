"""Attention pooling: one score alone, softmaxes over another axis, masks after the softmax."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.sequences.mask_meaning import Masks, behind_conversions
from holter.scripts.reading.source.expressions import argument, axis_of, resolved, tensor_of, whole
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Function, Pattern, Source, called, dotted, of_self

_SOFTMAX = {"softmax"}
_MASK = re.compile(r"mask|(^|_)pad(ding)?($|_)|^tril$|causal|^valid$|^keep$", re.I)
_PRODUCTS = {"matmul", "bmm"}


@reads
def single_score(source: Source) -> Iterator[Pattern]:
    """`self.score(h).softmax(-1)` of `nn.Linear(d, 1)`: one score alone has the weight 1."""
    for call in source.of(ast.Call):
        if called(call) in _SOFTMAX and axis_of(call) == -1:
            given = tensor_of(call)
            given = given if given is None else resolved(source, source.scope(call), given)
            if isinstance(given, ast.Call) and _is_single(source, given):
                yield source.pattern("single score", call, ast.unparse(given.func))
        elif called(call) == "Sequential" and len(call.args) > 1:
            *_, score, last = call.args
            if called(last) != "Softmax" or not isinstance(last, ast.Call):
                continue
            dims = [*last.args, *(each.value for each in last.keywords if each.arg == "dim")]
            if dims and whole(dims[0]) == -1 and _width(score) == 1:
                yield source.pattern("single score", last, "Sequential")


def _is_single(source: Source, call: ast.Call) -> bool:
    """Whether a call is of a layer with one output."""
    name = of_self(call.func)
    layers = source.named(name) if name else ()
    if len(layers) != 1:
        return False
    layer = layers[0]
    if called(layer) == "Sequential" and isinstance(layer, ast.Call) and layer.args:
        layer = layer.args[-1]
    return _width(layer) == 1


def _width(layer: ast.expr) -> int | None:
    if called(layer) != "Linear" or not isinstance(layer, ast.Call):
        return None
    given = [*layer.args[1:2], *(k.value for k in layer.keywords if k.arg == "out_features")]
    return whole(given[0]) if given else None


@reads
def weights_across(source: Source) -> Iterator[Pattern]:
    """`a = scores.softmax(0)` and `bmm(a.unsqueeze(1), h)`, or an einsum that keeps that axis."""
    for scope in source.scopes:
        for name, value, statement in source.assigned(scope):
            call = value
            while called(call) in ("dropout", "drop") and isinstance(call, ast.Call) and call.args:
                call = call.args[0]
            if called(call) not in _SOFTMAX or not isinstance(call, ast.Call):
                continue
            axis = axis_of(call)
            if axis is None or source.stores(scope, name) != 1:
                continue
            for node in source.walk(scope):
                if _is_kept_by_einsum(source, node, name, axis) or (
                    axis == 0 and _is_row_of_product(node, name)
                ):
                    yield source.pattern("softmax over another axis", statement, name)
                    break


def _is_row_of_product(node: ast.AST, name: str) -> bool:
    """Whether weights of (batch, time) are `w.unsqueeze(1) @ h`: a sum over their last axis."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        left: ast.expr | None = node.left
    elif called(node) in _PRODUCTS and isinstance(node, ast.Call):
        left = tensor_of(node)
    else:
        return False
    if isinstance(left, ast.Subscript):
        index = ast.unparse(left.slice).strip("()").replace(" ", "")
        return index == ":,None" and dotted(left.value) == name
    if called(left or node) != "unsqueeze" or not isinstance(left, ast.Call):
        return False
    inner = tensor_of(left)
    return inner is not None and dotted(inner) == name and axis_of(left) in (1, -2)


def _is_kept_by_einsum(source: Source, node: ast.AST, name: str, axis: int) -> bool:
    """Whether an einsum sums weights over other axes than that of their softmax."""
    if called(node) != "einsum" or not isinstance(node, ast.Call) or len(node.args) < 3:
        return False
    text = getattr(node.args[0], "value", "")
    if not isinstance(text, str) or "->" not in text or "." in text:
        return False
    given, _, result = text.replace(" ", "").partition("->")
    parts = given.split(",")
    for letters, each in zip(parts, node.args[1:], strict=False):
        if dotted(each) != name or not -len(letters) <= axis < len(letters):
            continue
        others = "".join(part for part in parts if part is not letters)
        summed = [letter for letter in letters if letter not in result and letter in others]
        if letters[axis] in result and len(summed) == 1:
            return not re.search(rf"\b{name} ?/", source.code(source.scope(node)))
    return False


@reads
def mask_after(source: Source) -> Iterator[Pattern]:
    """`w = softmax(s); w = w.masked_fill(pad, 0)`: hidden positions had their share before."""
    masks: Masks | None = None
    for scope in source.scopes:
        if not isinstance(scope, Function):
            continue
        soft = {name: (value, at) for name, value, at in source.assigned(scope)
                if _softmax_in(value) is not None}  # fmt: skip
        for node in source.walk(scope) if soft or "softmax" in source.code(scope) else ():
            hidden = _hidden(node)
            if hidden is None:
                continue
            weights, mask = hidden
            made = soft.get(dotted(weights))
            call = _softmax_in(weights) if made is None else _softmax_in(made[0])
            if call is None or getattr(node, "lineno", 0) < call.lineno:
                continue
            masks = masks or Masks(source)
            bare = behind_conversions(mask)
            if masks.meaning(mask, scope) is None and not (
                _MASK.search(dotted(bare).rpartition(".")[2]) and _weighs(source, scope, node)
            ):
                continue
            if not _is_normalised_again(source, scope, node) and not _is_masked_before(
                source, scope, call
            ) and _weighs(source, scope, node):  # fmt: skip
                yield source.pattern("mask after softmax", node, ast.unparse(mask))


def _softmax_in(value: ast.expr) -> ast.Call | None:
    while isinstance(value, ast.Call) and called(value) in ("dropout", "drop", "type_as", "float"):
        inner = value.args[0] if value.args else tensor_of(value)
        if inner is None:
            return None
        value = inner
    return value if isinstance(value, ast.Call) and called(value) in _SOFTMAX else None


def _hidden(node: ast.AST) -> tuple[ast.expr, ast.expr] | None:
    """Return weights and the mask that sets some of them to 0: `w.masked_fill(m, 0)`, `w * m`."""
    if called(node) in ("masked_fill", "masked_fill_") and isinstance(node, ast.Call):
        given, mask = tensor_of(node), argument(node, 0, "mask")
        filled = argument(node, 1, "value")
        is_number = isinstance(filled, ast.Constant | ast.UnaryOp | ast.Call)
        if given is not None and mask is not None and is_number:
            return given, mask
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        for weights, mask in ((node.left, node.right), (node.right, node.left)):
            if _MASK.search(dotted(behind_conversions(mask)).rpartition(".")[2]):
                return weights, mask
    is_changed = isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Mult)
    if is_changed and _MASK.search(dotted(behind_conversions(node.value)).rpartition(".")[2]):  # type: ignore[attr-defined]
        return node.target, node.value  # type: ignore[attr-defined]
    return None


def _statement(source: Source, node: ast.AST) -> ast.AST:
    if isinstance(node, ast.stmt):
        return node
    return next((each for each in source.above(node) if isinstance(each, ast.stmt)), node)


def _is_normalised_again(source: Source, scope: ast.AST, node: ast.AST) -> bool:
    """Whether weights are divided by their sum after they were masked."""
    first = getattr(_statement(source, node), "lineno", 0)
    return any(
        (isinstance(each, ast.BinOp | ast.AugAssign) and isinstance(each.op, ast.Div)
         and each.lineno >= first)
        or called(each) in ("normalize", "renorm", "log", "cross_entropy", "topk", "argmax")
        for each in source.walk(scope)
    )  # fmt: skip


def _is_masked_before(source: Source, scope: ast.AST, call: ast.Call) -> bool:
    """Whether scores were masked before the softmax as well."""
    given = tensor_of(call)
    text = "" if given is None else ast.unparse(given)
    names = set() if given is None else {
        each.id for each in ast.walk(given) if isinstance(each, ast.Name)
    }  # fmt: skip
    own = _statement(source, call)
    for node in source.walk(scope):
        if getattr(node, "lineno", 0) > call.lineno or node is own:
            continue
        if isinstance(node, ast.Assign | ast.AugAssign):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            root = target.value if isinstance(target, ast.Subscript) else target
            if dotted(root) in names:
                text += ast.unparse(node)
                names |= {each.id for each in ast.walk(node.value) if isinstance(each, ast.Name)}
        elif called(node) == "masked_fill_":
            text += ast.unparse(node)
    is_given = any(_MASK.search(name) for name in names)
    return is_given or bool(re.search(r"masked_fill|where\(|inf\b|finfo|1e\+?\d\d?|1e9|mask", text))


def _weighs(source: Source, scope: ast.AST, node: ast.AST) -> bool:
    """Whether weights multiply values: `w @ v`, `bmm(w, v)`, `(w * h).sum(1)`."""
    statement = _statement(source, node)
    name = ""
    if isinstance(statement, ast.Assign):
        name = dotted(statement.targets[0])
    elif isinstance(statement, ast.AugAssign):
        name = dotted(statement.target)
    for each in source.walk(scope):
        if getattr(each, "lineno", 0) < getattr(statement, "lineno", 0):
            continue
        if isinstance(each, ast.BinOp) and isinstance(each.op, ast.MatMult):
            parts: list[ast.expr] = [each.left]
        elif called(each) in _PRODUCTS | {"einsum"} and isinstance(each, ast.Call):
            parts = [*each.args]
            if isinstance(each.func, ast.Attribute):
                parts.append(each.func.value)
        elif called(each) == "sum" and isinstance(each, ast.Call):
            product = tensor_of(each)
            is_product = isinstance(product, ast.BinOp) and isinstance(product.op, ast.Mult)
            parts = [product] if is_product and product is not None and product is not node else []
        else:
            continue
        inside = [part for whole_ in parts for part in ast.walk(whole_)]
        if node in inside or (name and any(dotted(part) == name for part in inside)):
            return True
    return False
