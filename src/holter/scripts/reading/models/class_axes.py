"""Axes of classes and targets that are reshaped, or transposed on one side only."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.expressions import resolved, tensor_of, whole
from holter.scripts.reading.source.layouts import (
    RECURRENT,
    RESHAPING,
    flat,
    is_batch_size,
    own_arguments,
    sizes_of,
)
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Pattern, Source, called, dotted


@reads
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


@reads
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


@reads
def turned_targets(source: Source) -> Iterator[Pattern]:
    """`criterion(out.reshape(-1, V), y.t().reshape(-1))` of layers with their batches first."""
    text = source.code(source.tree)
    layers = [call for call in source.of(ast.Call) if called(call) in RECURRENT
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
