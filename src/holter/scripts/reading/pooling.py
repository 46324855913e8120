"""Pooling over time: attention weights, padding in means, and the last position."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.bounds import only_value
from holter.scripts.reading.polarity import Masks
from holter.scripts.reading.source import Function, Pattern, Source, called, dotted, of_self
from holter.scripts.reading.values import argument, axis_of, resolved, tensor_of, whole

_SOFTMAX = {"softmax"}
_RECURRENT = {"LSTM", "GRU", "RNN"}
_STATES = "last_hidden_state"
_MASKS = {"src_key_padding_mask", "key_padding_mask", "attention_mask"}
_MASK = re.compile(r"mask|(^|_)pad(ding)?($|_)|^tril$|causal|^valid$|^keep$", re.I)
_PADDED_LEFT = re.compile(r"padding_side|flip\(|\[::-1\]|left|reversed\(")
_SAME = {"dropout", "relu", "tanh", "gelu", "contiguous", "float"}
_PRODUCTS = {"matmul", "bmm"}


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
            bare = _bare(mask)
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
            if _MASK.search(dotted(_bare(mask)).rpartition(".")[2]):
                return weights, mask
    is_changed = isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Mult)
    if is_changed and _MASK.search(dotted(_bare(node.value)).rpartition(".")[2]):  # type: ignore[attr-defined]
        return node.target, node.value  # type: ignore[attr-defined]
    return None


def _bare(mask: ast.expr) -> ast.expr:
    while True:
        if isinstance(mask, ast.Call) and isinstance(mask.func, ast.Attribute):
            mask = mask.func.value
        elif isinstance(mask, ast.Subscript):
            mask = mask.value
        elif isinstance(mask, ast.UnaryOp):
            mask = mask.operand
        elif isinstance(mask, ast.Compare):
            mask = mask.left
        else:
            return mask


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


def padded_mean(source: Source) -> Iterator[Pattern]:
    """`h = encoder(x, src_key_padding_mask=pad)` and `h.mean(1)`: padding is averaged too."""
    for function in source.of(*Function.__args__):
        text = source.code(function)
        is_packed = "pad_packed_sequence(" in text
        if not is_packed and not re.search(
            r"key_padding_mask=(?!None)|attention_mask|mask\)", text
        ):
            continue
        for call in source.walk(function):
            if not isinstance(call, ast.Call) or called(call) != "mean":
                continue
            given = tensor_of(call)
            if given is None or axis_of(call) != 1:
                continue
            if _is_of_padded(source, function, given):
                yield source.pattern("padded mean", call, ast.unparse(given))


def _is_of_padded(source: Source, function: ast.AST, value: ast.expr) -> bool:
    """Whether a value is what a masked encoder, or an unpacked layer, gave: padding included."""
    for _ in range(8):
        inner: ast.expr | None = None
        is_element = isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Constant)
        if isinstance(value, ast.Name):
            inner = _latest(source, function, value)
        elif is_element or (isinstance(value, ast.Attribute) and value.attr == _STATES):
            inner = value.value  # type: ignore[attr-defined]
        elif isinstance(value, ast.Call):
            known = _is_padded_call(source, function, value)
            if known is not None:
                return known
            is_layer = bool(of_self(value.func)) or called(value) in _SAME
            inner = value.args[0] if is_layer and len(value.args) == 1 else None
        if inner is None:
            return False
        value = inner
    return False


def _is_padded_call(source: Source, function: ast.AST, call: ast.Call) -> bool | None:
    """Whether a call returns padding with its batches first; None if it is given no mask."""
    if called(call) == "pad_packed_sequence":
        return any(each.arg == "batch_first" for each in call.keywords)
    if any(each.arg in _MASKS and ast.unparse(each.value) != "None" for each in call.keywords):
        return _is_encoder(source, call) or _is_pretrained(source, call)
    if len(call.args) == 2 and _is_padding(source, function, call.args[1]):
        return isinstance(call.func, ast.Name) or bool(of_self(call.func))
    return None


def _is_pretrained(source: Source, call: ast.Call) -> bool:
    """Whether a model of transformers is given an attention mask."""
    is_imported = "transformers" in source.imported.values()
    return is_imported and any(each.arg == "attention_mask" for each in call.keywords)


def _is_padding(source: Source, function: ast.AST, value: ast.expr) -> bool:
    """Whether an argument is a mask of padding: `ids != PAD`, or a parameter `pad_mask`."""
    name = dotted(_bare(value)).rpartition(".")[2]
    made = [each for other, each, _ in source.assigned(function) if other == name]
    is_made = len(made) == 1 and bool(re.search(r"(==|!=) (self\.)?(\w*pad\w*|0)\b",
                                                ast.unparse(made[0]), re.I))  # fmt: skip
    return is_made or bool(re.fullmatch(r"(\w+_)?pad(ding)?_mask|key_padding_mask", name))


def _is_encoder(source: Source, call: ast.Call) -> bool:
    """Whether a layer of torch is called that has its batches first."""
    layers = source.named(of_self(call.func)) if of_self(call.func) else ()
    is_torch = all(source.makes_module(each) and dotted(getattr(each, "func", each))
                   not in source.module_classes for each in layers)  # fmt: skip
    text = source.code(source.tree)
    return bool(layers) and is_torch and "batch_first=True" in text


def _latest(source: Source, scope: ast.AST, name: ast.Name) -> ast.expr | None:
    """Return what a name was given last before its place, if that is certain."""
    around = {*source.above(name)}
    bound = [each for each in source.bindings(scope, name.id)
             if each not in around and each.lineno < name.lineno]  # fmt: skip
    if not bound or not isinstance(bound[-1], ast.Assign):
        return None
    above = source.parent(bound[-1])
    if above not in around and not (isinstance(above, ast.For) and source.parent(above) in around):
        return None
    target, value = bound[-1].targets[0], bound[-1].value
    if isinstance(target, ast.Tuple) and dotted(target.elts[0]) == name.id:
        return value if isinstance(value, ast.Call) else None
    return value if isinstance(target, ast.Name) else None


def last_padded(source: Source) -> Iterator[Pattern]:
    """`out, _ = self.gru(self.emb(ids))` of padded batches, and `out[:, -1]`: that is padding."""
    if _PADDED_LEFT.search(source.code(source.tree)):
        return
    is_padded = _pads(source)
    for body in source.module_classes.values():
        for function in body.body:
            if not isinstance(function, Function):
                continue
            unused = _unused_lengths(source, function)
            for node in source.walk(function):
                if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name):
                    continue
                if ast.unparse(node.slice).strip("()") not in (":, -1", ":, -1, :"):
                    continue
                layer = _unpacked(source, function, node.value)
                if layer == "pad_packed_sequence" or (
                    layer and (unused or (is_padded and _is_of_tokens(source, body, function)))
                ):
                    yield source.pattern("last padding", node, node.value.id)


def _pads(source: Source) -> bool:
    """Whether the inputs of a file are padded: not only its labels."""
    return any(
        called(call) == "pad_sequence"
        and call.args
        and not re.search(r"label|target|tag|tgt|(^|[^a-z])ys?\b", ast.unparse(call.args[0]))
        for call in source.of(ast.Call)
    )


def _is_of_tokens(source: Source, body: ast.ClassDef, function: ast.AST) -> bool:
    text = source.code(body)
    return "Embedding(" in text and not re.search(r"len|mask|gather|pack", source.code(function))


def _unused_lengths(source: Source, function: Function) -> bool:
    """Whether a forward pass is given lengths that it never reads."""
    names = [each.arg for each in function.args.args if re.fullmatch(
        r"(\w+_)?(len|lens|length|lengths)", each.arg)]  # fmt: skip
    read = {node.id for node in source.walk(function) if isinstance(node, ast.Name)}
    return bool(names) and not read & {*names} and "mask" not in source.code(function)


def _unpacked(source: Source, function: ast.AST, name: ast.Name) -> str:
    """Return the recurrent layer with `batch_first` that a name is the output of, or ""."""
    made = _latest(source, function, name)
    for _ in range(3):
        if isinstance(made, ast.Call) and called(made) in _SAME and made.args:
            made = made.args[0]
        elif isinstance(made, ast.Subscript) and ast.unparse(made.slice) == "0":
            made = made.value
    if not isinstance(made, ast.Call):
        return ""
    if called(made) == "pad_packed_sequence":
        return "pad_packed_sequence"
    layer = of_self(made.func)
    layers = source.named(layer) if layer else ()
    if len(layers) != 1 or called(layers[0]) not in _RECURRENT:
        return ""
    is_first = "batch_first=True" in ast.unparse(layers[0])
    given = made.args[0] if made.args else None
    if isinstance(given, ast.Name):
        given, _ = only_value(source, function, given.id)
    is_packed = "pack" in ast.unparse(given) if given is not None else True
    return layer if is_first and not is_packed else ""
