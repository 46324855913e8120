"""Layouts: which size is at which axis of a tensor, through views, transposes and products."""

import ast
import re

from holter.scripts.reading.source.expressions import argument, axis_of, tensor_of, whole
from holter.scripts.reading.source.tree import Source, called, dotted, of_self

Layout = tuple[str, ...]
RESHAPING = {"view", "reshape"}
_SAME = {"softmax", "dropout", "contiguous", "float", "masked_fill", "relu", "tanh", "clamp", "to"}
_SAME |= {"masked_fill_", "half", "type_as", "nan_to_num", "exp", "sigmoid", "detach", "clone"}
_KEEPING = {"Dropout", "LayerNorm", "Identity", "Softmax", "ReLU", "GELU", "RMSNorm"}
RECURRENT = {"LSTM", "GRU", "RNN"}
_DEEPEST = 12


def layout(source: Source, scope: ast.AST, value: ast.expr, depth: int = 0) -> Layout | None:
    """Return the sizes of a tensor in the order of its axes, as they are written, or None."""
    if depth > _DEEPEST:
        return None
    if isinstance(value, ast.Name):
        made = made_before(source, scope, value)
        return None if made is None else _of_part(source, scope, *made, depth + 1)
    if isinstance(value, ast.BinOp):
        return _of_operation(source, scope, value, depth)
    if isinstance(value, ast.Subscript):
        inner = layout(source, scope, value.value, depth + 1)
        is_first = isinstance(value.slice, ast.Constant) and type(value.slice.value) is int
        return inner[1:] if inner and is_first else None
    return _of_call(source, scope, value, depth) if isinstance(value, ast.Call) else None


def made_before(source: Source, scope: ast.AST, name: ast.Name) -> tuple[ast.expr, bool] | None:
    """Return what a name was given last before its place, and whether it is a part of that."""
    around = {*source.above(name)}
    found = [each for each in source.bindings(scope, name.id)
             if each not in around and each.lineno < name.lineno]  # fmt: skip
    if not found or not isinstance(found[-1], ast.Assign):
        return None
    last = found[-1]
    if source.parent(last) not in around or last.value is None:
        return None
    target = last.targets[0]
    if isinstance(target, ast.Name):
        return last.value, False
    if not isinstance(target, ast.Tuple):
        return None
    if isinstance(last.value, ast.Tuple) and len(last.value.elts) == len(target.elts):
        return last.value.elts[[dotted(each) for each in target.elts].index(name.id)], False
    return last.value, True


def _of_part(
    source: Source, scope: ast.AST, value: ast.expr, is_part: bool, depth: int
) -> Layout | None:
    if not is_part:
        return layout(source, scope, value, depth)
    if isinstance(value, ast.ListComp | ast.GeneratorExp) and len(value.generators) == 1:
        return _of_comprehension(source, scope, value, depth)
    if called(value) == "unbind" and isinstance(value, ast.Call):
        axis, inner = axis_of(value), tensor_of(value)
        known = None if inner is None else layout(source, scope, inner, depth)
        if known is None or (axis or 0) < 0:
            return None
        return tuple(each for place, each in enumerate(known) if place != (axis or 0))
    if called(value) in ("chunk", "split", "tensor_split"):
        return None
    known = layout(source, scope, value, depth)
    is_turned = called(value) in ("permute", "view", "reshape")
    return known[1:] if known and is_turned else None


def _of_comprehension(
    source: Source, scope: ast.AST, value: ast.ListComp | ast.GeneratorExp, depth: int
) -> Layout | None:
    """Return the layout of each `t.view(B, T, H, D).transpose(1, 2) for t in (q, k, v)`."""
    return layout(source, scope, value.elt, depth + 1)


def _of_operation(source: Source, scope: ast.AST, value: ast.BinOp, depth: int) -> Layout | None:
    left = layout(source, scope, value.left, depth + 1)
    if isinstance(value.op, ast.MatMult):
        return _product(left, layout(source, scope, value.right, depth + 1))
    right = layout(source, scope, value.right, depth + 1)
    if left is None or right is None:
        known = right if left is None else left
        other = value.left if left is None else value.right
        return known if isinstance(other, ast.Constant | ast.Call | ast.Attribute) else None
    return left if left == right else None


def _product(left: Layout | None, right: Layout | None) -> Layout | None:
    if not left or not right or len(left) != len(right) or len(left) < 2:
        return None
    return (*left[:-1], right[-1])


def _of_call(source: Source, scope: ast.AST, call: ast.Call, depth: int) -> Layout | None:
    name = called(call)
    if name in ("matmul", "bmm"):
        first, second = tensor_of(call), argument(call, 0, "other", "mat2")
        if first is None or second is None:
            return None
        return _product(layout(source, scope, first, depth + 1),
                        layout(source, scope, second, depth + 1))  # fmt: skip
    if name == "scaled_dot_product_attention" and len(call.args) > 2:
        query, values = (layout(source, scope, call.args[place], depth + 1) for place in (0, 2))
        return _product(query, values)
    if name in RESHAPING and isinstance(call.func, ast.Attribute):
        sizes = sizes_of(call)
        return tuple(sizes) if sizes and "*" not in "".join(each[:1] for each in sizes) else None
    if of_self(call.func):
        layers = source.named(of_self(call.func))
        keeps = bool(layers) and all(called(each) in _KEEPING for each in layers)
        return layout(source, scope, call.args[0], depth + 1) if keeps and call.args else None
    given = tensor_of(call)
    known = None if given is None else layout(source, scope, given, depth + 1)
    if known is None:
        return None
    if name in _SAME:
        return known
    if name in ("transpose", "swapaxes", "swapdims"):
        return _turned(known, [axis_of(call), whole(argument(call, 1, "dim1", "axis1"))])
    if name == "permute":
        given_axes = [whole(each) for each in flat(own_arguments(call))]
        axes = [each for each in given_axes if each is not None]
        if len(axes) != len(given_axes) or sorted(each % len(known) for each in axes) != list(
            range(len(known))
        ):
            return None
        return tuple(known[each] for each in axes)
    return None


def own_arguments(call: ast.Call) -> list[ast.expr]:
    """Return the arguments of a method, without the tensor of a function of torch."""
    is_function = isinstance(call.func, ast.Attribute) and dotted(call.func.value) == "torch"
    return call.args[1:] if is_function else call.args


def flat(values: list[ast.expr]) -> list[ast.expr]:
    """Return the sizes or axes of `x.view(a, b)` and of `x.view((a, b))`."""
    if len(values) == 1 and isinstance(values[0], ast.Tuple | ast.List):
        return values[0].elts
    return values


def _turned(known: Layout, axes: list[int | None]) -> Layout | None:
    if axes[0] is None or axes[1] is None:
        return None
    if not all(-len(known) <= each < len(known) for each in axes if each is not None):
        return None
    sizes = list(known)
    sizes[axes[0]], sizes[axes[1]] = sizes[axes[1]], sizes[axes[0]]
    return tuple(sizes)


def sizes_of(call: ast.Call) -> list[str]:
    """Return the sizes that `view` or `reshape` is given, as they are written."""
    return [ast.unparse(each) for each in flat(call.args)]


def is_batch_size(size: str) -> bool:
    """Whether a size is the number of samples, as far as its name says."""
    return bool(re.fullmatch(
        r"\w+\.size\(0\)|\w+\.shape\[0\]|len\(\w+\)|B|b|N|bs|bsz|batch|batch_size|n", size
    ))  # fmt: skip
