"""Pooling over time: means over padding, and a last position that is padding."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.sequences.mask_meaning import behind_conversions
from holter.scripts.reading.source.expressions import axis_of, tensor_of
from holter.scripts.reading.source.layouts import RECURRENT
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.slices import only_value
from holter.scripts.reading.source.tree import Function, Pattern, Source, called, dotted, of_self

_STATES = "last_hidden_state"
_MASKS = {"src_key_padding_mask", "key_padding_mask", "attention_mask"}
_PADDED_LEFT = re.compile(r"padding_side|flip\(|\[::-1\]|left|reversed\(")
_SAME = {"dropout", "relu", "tanh", "gelu", "contiguous", "float"}


@reads
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
    name = dotted(behind_conversions(value)).rpartition(".")[2]
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


@reads
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
    if len(layers) != 1 or called(layers[0]) not in RECURRENT:
        return ""
    is_first = "batch_first=True" in ast.unparse(layers[0])
    given = made.args[0] if made.args else None
    if isinstance(given, ast.Name):
        given, _ = only_value(source, function, given.id)
    is_packed = "pack" in ast.unparse(given) if given is not None else True
    return layer if is_first and not is_packed else ""
