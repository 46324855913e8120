"""Channels of pictures and frames that are reshaped instead of transposed."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.expressions import resolved, tensor_of, whole
from holter.scripts.reading.source.layouts import RESHAPING, is_batch_size, own_arguments, sizes_of
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.slices import only_value
from holter.scripts.reading.source.tree import (
    Pattern,
    Source,
    called,
    dotted,
    of_self,
    parameters_of,
)


@reads
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


@reads
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
