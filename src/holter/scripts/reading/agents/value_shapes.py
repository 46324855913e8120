"""Shapes of values that a loss compares: a column of Q values beside a row of targets."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.expressions import argument, tensor_of, unsigned, whole
from holter.scripts.reading.source.origins import Frame, origins
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Pattern, Source, called, dotted

_DEEPEST = 8
_LOSSES = re.compile(r"^(mse_loss|smooth_l1_loss|huber_loss|l1_loss)$")
_NAMED = re.compile(r"^(criterion|loss_fn|loss_func|crit|mse)$")  # made in another file
_CRITERIA = re.compile(r"^(MSELoss|SmoothL1Loss|HuberLoss|L1Loss)$")


@reads
def spread(source: Source) -> Iterator[Pattern]:
    """`q` of shape (B, 1) beside a target of shape (B,): their difference is (B, B)."""
    for node, sides in _compared(source):
        frame = Frame(source.scope(node))
        shapes = [_shape(source, each, frame, 0) for each in sides]
        if set(shapes) == {"column", "flat"}:
            column = sides[shapes.index("column")]
            yield source.pattern("column beside row", node, ast.unparse(column))


def _compared(source: Source) -> Iterator[tuple[ast.expr, list[ast.expr]]]:
    """Yield losses and squared differences, with what they compare."""
    for call in source.of(ast.Call):
        is_named = _NAMED.match(called(call)) and not source.named(called(call))
        if (is_loss(source, call) or is_named) and len(call.args) > 1:
            yield call, call.args[:2]
    for node in source.of(ast.BinOp):
        above = source.parent(node)
        is_power = isinstance(above, ast.BinOp) and isinstance(above.op, ast.Pow)
        is_method = isinstance(above, ast.Attribute) and above.attr in ("pow", "square", "abs")
        if isinstance(node.op, ast.Sub) and (is_power or is_method):
            yield node, [node.left, node.right]


def is_loss(source: Source, call: ast.Call) -> bool:
    """Whether a call is of a regression loss, as a function or an object."""
    name = called(call)
    if _LOSSES.match(name):
        return True
    made = source.named(dotted(call.func).rpartition(".")[2])
    return bool(made) and all(_CRITERIA.match(called(each)) for each in made)


def _shape(source: Source, node: ast.expr, frame: Frame, depth: int) -> str:
    """Return "column" for (B, 1), "flat" for (B,), or ""."""
    _, value = unsigned(node)
    if value is None or depth > _DEEPEST:
        return ""
    if isinstance(value, ast.Name):
        found = {_shape(source, each, where, depth + 1)
                 for each, where, _ in origins(source, value, frame)}  # fmt: skip
        return found.pop() if len(found) == 1 else ""
    if isinstance(value, ast.BinOp):
        kinds = {_shape(source, side, frame, depth + 1) for side in (value.left, value.right)}
        return "flat" if kinds in ({"flat"}, {"flat", ""}) else ""
    if isinstance(value, ast.Subscript):
        return _of_index(value)
    if isinstance(value, ast.Attribute) and value.attr in ("values", "indices"):
        return _of_maximum(value.value)
    if isinstance(value, ast.Call):
        return _of_call(source, value, frame, depth)
    return ""


def _of_index(node: ast.Subscript) -> str:
    index = node.slice
    if whole(index) in (0, 1):
        return _of_maximum(node.value)
    if isinstance(index, ast.Tuple) and len(index.elts) == 2:
        is_new = isinstance(index.elts[1], ast.Constant) and index.elts[1].value is None
        return "column" if is_new and isinstance(index.elts[0], ast.Slice) else ""
    return ""


def _of_maximum(node: ast.expr) -> str:
    """Return the shape of `q.max(1)[0]`."""
    if not isinstance(node, ast.Call) or called(node) not in ("max", "min"):
        return ""
    place = argument(node, 0, "dim", "axis")
    if whole(place) not in (1, -1):
        return ""
    keep = argument(node, 1, "keepdim")
    if keep is None:
        return "flat"
    return "column" if isinstance(keep, ast.Constant) and keep.value is True else ""


def _of_call(source: Source, node: ast.Call, frame: Frame, depth: int) -> str:
    name, inner = called(node), tensor_of(node)
    if inner is None:
        return ""
    if name in ("argmax", "amax"):
        place, keep = argument(node, 0, "dim", "axis"), argument(node, 1, "keepdim")
        if whole(place) not in (1, -1):
            return ""
        return "flat" if keep is None else (
            "column" if isinstance(keep, ast.Constant) and keep.value is True else ""
        )  # fmt: skip
    if name == "gather":
        index = argument(node, 1, "index")
        return "" if index is None else _shape(source, index, frame, depth + 1)
    if name == "unsqueeze":
        return "column" if whole(argument(node, 0, "dim")) in (1, -1) else ""
    if name in ("view", "reshape"):
        sizes = [whole(each) for each in node.args]
        if sizes == [-1, 1] or (len(sizes) == 2 and sizes[1] == 1):
            return "column"
        return "flat" if sizes == [-1] else ""
    if name == "flatten" and not node.args:
        return "flat"
    if name == "squeeze":
        place = argument(node, 0, "dim")
        inside = _shape(source, inner, frame, depth + 1)
        is_last = place is None or whole(place) in (1, -1)
        is_gathered = inside == "column" or called(inner) == "gather"
        return "flat" if is_last and is_gathered else ""
    if name in ("detach", "float", "to", "clone", "double", "long", "cpu", "cuda", "type"):
        return _shape(source, inner, frame, depth + 1)
    return ""
