"""Attention, blocks and positions of transformers: scales, shared layers and contexts."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.expressions import resolved, tensor_of, whole
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.slices import only_value
from holter.scripts.reading.source.tree import Function, Pattern, Source, called, dotted, of_self

_PRODUCTS = {"matmul", "bmm", "einsum", "baddbmm"}
_NORMALISED = re.compile(r"normalize\(|_norm\b|norm\(|qk_norm|cosine|logit_scale|\.exp\(\)", re.I)
_LAYERS = re.compile(r"^(Linear|Conv\w+|LSTM|GRU|\w*Block|\w*Layer|BatchNorm\w+|LayerNorm)$")


@reads
def scaled_up(source: Source) -> Iterator[Pattern]:
    """`q @ k.transpose(-2, -1) * math.sqrt(d)`: the softmax saturates; it is to be divided."""
    for function in source.of(*Function.__args__):
        text = source.code(function)
        if "softmax" not in text or _NORMALISED.search(text):
            continue
        scores = {name for name, value, _ in source.assigned(function)
                  if _is_product(value)}  # fmt: skip
        for node in source.walk(function):
            if isinstance(node, ast.BinOp):
                pairs = [(node.left, node.right)]
                pairs += [(node.right, node.left)] if isinstance(node.op, ast.Mult) else []
            elif isinstance(node, ast.AugAssign):
                pairs = [(node.target, node.value)]
            elif called(node) in ("mul", "mul_") and isinstance(node, ast.Call) and node.args:
                pairs = [(tensor_of(node) or node, node.args[-1])]
            else:
                continue
            operation = getattr(node, "op", ast.Mult())
            if not isinstance(operation, ast.Mult | ast.Div):
                continue
            for given, factor in pairs:
                if not _is_product(given) and dotted(given) not in scores:
                    continue
                power = _power(source, function, factor)
                power = -power if power and isinstance(operation, ast.Div) else power
                if power and power > 0:
                    yield source.pattern("scaled-up attention", node, ast.unparse(factor))


def _is_product(node: ast.AST) -> bool:
    """Whether an expression is a product of queries and keys."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        return bool(re.search(r"\bk\w*\.|key|\.m?T\b", ast.unparse(node.right), re.I)) and bool(
            re.search(r"transpose|permute|\.m?T\b|swap", ast.unparse(node.right))
        )
    if called(node) not in _PRODUCTS or not isinstance(node, ast.Call):
        return False
    text = ast.unparse(node)
    is_turned = re.search(r"transpose|permute|\.m?T\b|swap", text) or called(node) == "einsum"
    return bool(is_turned and re.search(r"\bq\w*\b", text, re.I)
                and re.search(r"\bk\w*\b", text, re.I))  # fmt: skip


def _power(source: Source, scope: ast.AST, factor: ast.expr, depth: int = 0) -> float | None:
    """Return the power of a size that a factor is: 0.5 of `math.sqrt(d)`, -0.5 of `d ** -0.5`."""
    if depth > 3:
        return None
    if isinstance(factor, ast.Call) and called(factor) == "sqrt":
        return 0.5
    if called(factor) == "rsqrt":
        return -0.5
    if isinstance(factor, ast.BinOp) and isinstance(factor.op, ast.Pow):
        text = ast.unparse(factor.right).strip("()")
        return {"0.5": 0.5, "1 / 2": 0.5, "-0.5": -0.5}.get(text)
    if isinstance(factor, ast.BinOp) and isinstance(factor.op, ast.Div):
        inner = _power(source, scope, factor.right, depth + 1)
        return -inner if inner and isinstance(factor.left, ast.Constant) else None
    if called(factor) in ("float", "tensor") and isinstance(factor, ast.Call) and factor.args:
        return _power(source, scope, factor.args[0], depth + 1)
    if isinstance(factor, ast.Name):
        made, home = only_value(source, scope, factor.id)
        return None if made is None else _power(source, home, made, depth + 1)
    known = source.named(of_self(factor)) if of_self(factor) else ()
    if len(known) == 1:
        return _power(source, source.scope(known[0]), known[0], depth + 1)
    return None


@reads
def repeated_layers(source: Source) -> Iterator[Pattern]:
    """`nn.ModuleList([Block(d)] * 6)`: six times the same layer, with the same weights."""
    for node in source.of(ast.BinOp):
        if not isinstance(node.op, ast.Mult):
            continue
        for listed, count in ((node.left, node.right), (node.right, node.left)):
            parts = _listed(source, listed)
            if not parts or isinstance(count, ast.List) or whole(count) in (0, 1):
                continue
            has_weights = [each for each in parts if _has_weights(source, each)]
            if has_weights and _is_stacked(source, node):
                yield source.pattern("repeated layer", node, ast.unparse(has_weights[0])[:40])


def _listed(source: Source, node: ast.expr, depth: int = 0) -> list[ast.expr]:
    """Return the elements of a list, through names and sums."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _listed(source, node.left, depth) + _listed(source, node.right, depth)
    if isinstance(node, ast.Name) and depth < 3:
        node = resolved(source, source.scope(node), node)
        return _listed(source, node, depth + 1) if not isinstance(node, ast.Name) else []
    return list(node.elts) if isinstance(node, ast.List | ast.Tuple) else []


def _has_weights(source: Source, node: ast.expr) -> bool:
    node = resolved(source, source.scope(node), node)
    if not source.makes_module(node):
        return False
    name = called(node)
    return name in source.module_classes or bool(_LAYERS.match(name)) or name == "Sequential"


def _is_stacked(source: Source, node: ast.AST) -> bool:
    """Whether a list becomes layers of a model: `nn.Sequential(*layers)`."""
    for above in source.above(node):
        if called(above) in ("ModuleList", "Sequential"):
            return True
        if isinstance(above, ast.Assign | ast.AugAssign):
            target = above.targets[0] if isinstance(above, ast.Assign) else above.target
            name = dotted(target)
            return bool(name) and any(
                called(call) in ("ModuleList", "Sequential")
                and any(dotted(part) == name for each in call.args for part in ast.walk(each))
                for call in source.of(ast.Call)
            )
        if isinstance(above, ast.stmt):
            break
    return False


@reads
def unread_positions(source: Source) -> Iterator[Pattern]:
    """`self.pos = nn.Embedding(block, d)` that the forward pass does not add."""
    for body in source.module_classes.values():
        if re.search(r"rotary|rope|alibi|LSTM\(|GRU\(|Conv1d\(|getattr", source.code(body), re.I):
            continue
        for node in source.walk(body):
            if not isinstance(node, ast.Assign):
                continue
            pairs = [(node.targets[0], node.value)]
            if isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = list(zip(node.targets[0].elts, node.value.elts, strict=False))
            for target, value in pairs:
                name = of_self(target)
                is_position = re.search(r"(^|_)(pos|position|positional|wpe)(_|$|emb|enc|ition)",
                                        name, re.I)  # fmt: skip
                makes = source.makes_module(value) or dotted(getattr(value, "func", value)) in (
                    "nn.Parameter", "torch.nn.Parameter")  # fmt: skip
                read = any(each.attr == name and isinstance(each.ctx, ast.Load)
                           for each in source.of(ast.Attribute))  # fmt: skip
                if is_position and makes and not read:
                    yield source.pattern("unread positions", node, name)


@reads
def uncropped(source: Source) -> Iterator[Pattern]:
    """`logits = model(ids)` in a loop that appends to `ids`, past the number of its positions."""
    if not re.search(r"(^|[._])(pos|position|wpe)\w* ?(=|,)[^\n]*Embedding\(",
                     source.code(source.tree)):  # fmt: skip
        return
    for loop in source.of(ast.For):
        body = [node for part in loop.body for node in source.walk(part)]
        for node in body:
            if not isinstance(node, ast.Assign) or called(node.value) not in ("cat", "concat"):
                continue
            name = dotted(node.targets[0])
            parts = node.value.args[0] if node.value.args else None  # type: ignore[attr-defined]
            first = (
                parts.elts[0] if isinstance(parts, ast.Tuple | ast.List) and parts.elts else None
            )
            if not name or first is None or dotted(first) != name:
                continue
            calls = [each for each in body if isinstance(each, ast.Call) and each.args
                     and dotted(each.args[0]) == name
                     and (dotted(each.func) == "self" or dotted(each.func).rpartition(".")[2]
                          in source.models)]  # fmt: skip
            scope = source.code(source.scope(loop))
            is_bounded = re.search(rf"\b{name}\[|min\(|block|context|max_len|len\(|size\(1\)"
                                   rf"|shape\[|break|cache|past", scope)  # fmt: skip
            if calls and not is_bounded and not _is_cropped_inside(source):
                yield source.pattern("uncropped context", calls[0], name)


def _is_cropped_inside(source: Source) -> bool:
    """Whether a model crops its own input, or the file trains on sequences of any length."""
    return any(re.search(r"\[:, -", source.code(each)) for body in source.module_classes.values()
               for each in body.body if getattr(each, "name", "") == "forward") or bool(
        re.search(r"pad_sequence|max_len|collate|memory|encoder", source.code(source.tree))
    )  # fmt: skip
