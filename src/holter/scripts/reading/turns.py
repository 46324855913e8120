"""Axes that are to be exchanged, of frames, pictures, classes and targets, and are not."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.bounds import only_value
from holter.scripts.reading.layouts import (
    RESHAPING,
    flat,
    is_batch_size,
    own_arguments,
    sizes_of,
)
from holter.scripts.reading.source import Pattern, Source, called, dotted, of_self, parameters_of
from holter.scripts.reading.values import resolved, tensor_of, whole

_RECURRENT = {"LSTM", "GRU", "RNN"}


def channels_by_reshape(source: Source) -> Iterator[Pattern]:
    """`self.conv(x.reshape(B, n_mels, -1))` of padded sequences: frames are no channels."""
    is_padded = _pads_batch_first(source)
    for body in source.module_classes.values():
        inputs = {of_self(target): _in_channels(node.value) for node in source.walk(body)
                  if isinstance(node, ast.Assign) for target in node.targets}  # fmt: skip
        for call in source.walk(body):
            if not isinstance(call, ast.Call) or not call.args:
                continue
            wanted = inputs.get(of_self(call.func), "")
            given = resolved(source, source.scope(call), call.args[0])
            if not wanted or called(given) not in RESHAPING or not isinstance(given, ast.Call):
                continue
            sizes = sizes_of(given)
            if len(sizes) != 3 or sizes[1].rpartition(".")[2] != wanted.rpartition(".")[2]:
                continue
            assert isinstance(given.func, ast.Attribute)
            is_given = dotted(given.func.value) in parameters_of(source.scope(call))
            if not is_padded and not _is_turned_back(source, call):
                continue
            if is_given and is_batch_size(sizes[0]):
                yield source.pattern("reshaped axes", given, dotted(given.func.value))


def _is_turned_back(source: Source, call: ast.Call) -> bool:
    """Whether the output of a convolution is turned to (batch, time, channels) at once."""
    for above in source.above(call):
        if isinstance(above, ast.stmt):
            break
        if called(above) == "transpose" and isinstance(above, ast.Call):
            return {whole(each) for each in own_arguments(above)} in ({1, 2}, {-1, -2})
    return False


def _in_channels(value: ast.expr) -> str:
    """Return the number of channels that `nn.Conv1d`, or a `Sequential` of it, is given."""
    while called(value) == "Sequential" and isinstance(value, ast.Call) and value.args:
        value = value.args[0]
    if called(value) != "Conv1d" or not isinstance(value, ast.Call):
        return ""
    given = [*value.args[:1], *(k.value for k in value.keywords if k.arg == "in_channels")]
    text = ast.unparse(given[0]) if given else ""
    return text if not text.isdigit() or int(text) > 1 else ""


def _pads_batch_first(source: Source) -> bool:
    return any(
        called(call) == "pad_sequence" and any(each.arg == "batch_first" for each in call.keywords)
        for call in source.of(ast.Call)
    )


def pictures_by_reshape(source: Source) -> Iterator[Pattern]:
    """`img.reshape(3, *img.shape[:2])` of a picture: its last axis is cut, not moved."""
    for call in source.of(ast.Call):
        if called(call) not in RESHAPING or not isinstance(call.func, ast.Attribute):
            continue
        text = ast.unparse(call)
        sizes = sizes_of(call)
        owner = call.func.value
        while isinstance(owner, ast.Call) and called(owner) in (
            *("ascontiguousarray", "asarray", "array", "from_numpy", "as_tensor", "tensor"),
            *("contiguous", "float", "astype", "copy"),
        ):
            inner = tensor_of(owner)
            if inner is None:
                break
            owner = inner
        name = dotted(owner)
        channels = sizes[:1] in (["3"], ["1"], ["4"], [f"{name}.shape[2]"], [f"{name}.shape[-1]"])
        rest = [each.replace(" ", "") for each in sizes[1:]]
        match = re.fullmatch(r"\*(\w+)\.shape\[:2\]", "".join(rest))
        if match and sizes[:1] == ["3"] and name != match[1]:
            bound = source.bindings(source.scope(call), name)
            texts = [ast.unparse(each) for each in bound if each.lineno < call.lineno]
            is_same = any(re.search(rf"\b{match[1]}\b", each) for each in texts)
            if is_same and not re.search(r"transpose|permute|moveaxis|\.T\b", "".join(texts)):
                yield source.pattern("reshaped axes", call, name)
            continue
        is_named = len(sizes) == 3 and sizes == _channels_first(source, call, owner)
        is_rest = rest in (
            [f"*{name}.shape[:2]"],
            [f"{name}.shape[0]", f"{name}.shape[1]"],
        )
        if (name and channels and is_rest and sizes[0] != "1") or is_named:
            yield source.pattern("reshaped axes", call, name)
        elif sizes[:1] == ["3"] and len(sizes) == 3 and _is_read_picture(source, call, owner, text):
            yield source.pattern("reshaped axes", call, ast.unparse(owner))


def _channels_first(source: Source, call: ast.Call, owner: ast.expr) -> list[str]:
    """Return `[c, h, w]` of a picture with `h, w, c = img.shape`."""
    scope, shape = source.scope(call), f"{ast.unparse(owner)}.shape"
    for assign in source.of(ast.Assign):
        target = assign.targets[0]
        is_shape = source.scope(assign) is scope and ast.unparse(assign.value) == shape
        if is_shape and isinstance(target, ast.Tuple):
            names = [dotted(each) for each in target.elts]
            if len(names) == 3 and re.match(r"(?i)c|ch|channels?", names[2]):
                return [names[2], *names[:2]]
    return []


def _is_read_picture(source: Source, call: ast.Call, owner: ast.expr, text: str) -> bool:
    """Whether an array was read from a file of a picture, whose last axis are the channels."""
    if isinstance(owner, ast.Name):
        made, _ = only_value(source, source.scope(call), owner.id)
        text += "" if made is None else ast.unparse(made)
    is_read = re.search(r"Image\.open|imread|\.convert\(['\"]RGB['\"]\)", text)
    return bool(is_read) and not re.search(r"transpose|permute|moveaxis|rollaxis", text)


def classes_turned(source: Source) -> Iterator[Pattern]:
    """`cross_entropy(logits.transpose(1, 2).reshape(-1, C), y.flatten())`: classes are cut."""
    for call in source.of(ast.Call):
        if not re.search(r"cross_entropy|nll_loss|criterion|loss_fn|^ce$", called(call)):
            continue
        if len(call.args) < 2:
            continue
        given = resolved(source, source.scope(call), call.args[0])
        if called(given) not in RESHAPING or not isinstance(given, ast.Call):
            continue
        sizes = sizes_of(given)
        inner = given.func.value if isinstance(given.func, ast.Attribute) else given
        while called(inner) == "contiguous" and isinstance(inner, ast.Call):
            assert isinstance(inner.func, ast.Attribute)
            inner = inner.func.value
        if len(sizes) != 2 or sizes[0] != "-1" or not isinstance(inner, ast.Call):
            continue
        is_turned = called(inner) == "transpose" and {
            whole(each) for each in own_arguments(inner)
        } in ({1, 2}, {-1, -2}, {1, -1})  # fmt: skip
        is_turned |= called(inner) == "permute" and [
            whole(each) for each in flat(own_arguments(inner))
        ] == [0, 2, 1]
        logits = tensor_of(inner)
        if not is_turned or logits is None:
            continue
        # `logits.size(-1)` of the tensor before the turn: the classes were its last axis.
        name = dotted(logits)
        if sizes[1] in (f"{name}.size(-1)", f"{name}.shape[-1]", f"{name}.size(2)",
                        f"{name}.shape[2]"):  # fmt: skip
            yield source.pattern("reshaped classes", given, name)


def classes_by_view(source: Source) -> Iterator[Pattern]:
    """`criterion(logits.view(B, V, -1), y)` of scores whose `argmax(-1)` is the class."""
    text = source.code(source.tree)
    for call in source.of(ast.Call):
        if not re.search(r"cross_entropy|nll_loss|criterion|loss_fn|^ce$", called(call)):
            continue
        if len(call.args) < 2:
            continue
        given = resolved(source, source.scope(call), call.args[0])
        if called(given) not in RESHAPING or not isinstance(given, ast.Call):
            continue
        name = dotted(given.func.value) if isinstance(given.func, ast.Attribute) else ""
        sizes = sizes_of(given)
        is_cut = len(sizes) == 3 and sizes[2] == "-1" and is_batch_size(sizes[0])
        is_read = rf"\b{name}(\[[^\]]*\])?\.argmax\((dim=)?(-1|2)\)"
        if name and is_cut and re.search(is_read, text):
            yield source.pattern("reshaped classes", given, name)


def turned_targets(source: Source) -> Iterator[Pattern]:
    """`criterion(out.reshape(-1, V), y.t().reshape(-1))` of layers with their batches first."""
    text = source.code(source.tree)
    layers = [call for call in source.of(ast.Call) if called(call) in _RECURRENT
              and source.makes_module(call)]  # fmt: skip
    if not layers or any("batch_first=True" not in ast.unparse(each) for each in layers):
        return
    if re.search(r"permute\(1, 0|swapaxes\(0, 1|rearrange", text):
        return
    for call in source.of(ast.Call):
        if not re.search(r"cross_entropy|nll_loss|criterion|loss_fn|^ce$", called(call)):
            continue
        if len(call.args) < 2:
            continue
        turned = re.fullmatch(
            r"(\w+)(\.t\(\)|\.T|\.transpose\(0, 1\)|\.transpose\(1, 0\))(\.contiguous\(\))?"
            r"\.(reshape\(-1\)|view\(-1\)|flatten\(\))", ast.unparse(call.args[1])
        )  # fmt: skip
        scores = re.fullmatch(r"(\w+)\.((reshape|view)\(-1, .*\)|flatten\(0, 1\))",
                              ast.unparse(call.args[0]))  # fmt: skip
        if turned is None or scores is None:
            continue
        rest = text.replace(ast.unparse(call.args[1]), "")
        if not re.search(r"\.t\(\)|transpose\((0, 1|1, 0)\)|\.T\b", rest):
            yield source.pattern("turned targets", call, turned[1])
