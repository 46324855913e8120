"""Skip connections that join a tensor with itself."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.expressions import axis_of, tensor_of
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Function, Pattern, Source, called, dotted, of_self

_JOINS = {"cat", "concat", "concatenate", "hstack", "stack"}


@reads
def same_part_twice(source: Source) -> Iterator[Pattern]:
    """`torch.cat([x, x], 1)` in a forward pass that computes a skip connection and drops it."""
    for body in source.module_classes.values():
        for function in body.body:
            if not isinstance(function, Function) or function.name != "forward":
                continue
            read = [node.id for node in source.walk(function) if isinstance(node, ast.Name)
                    and isinstance(node.ctx, ast.Load)]  # fmt: skip
            for call in source.walk(function):
                if not isinstance(call, ast.Call) or called(call) not in _JOINS or not call.args:
                    continue
                parts = call.args[0]
                if not isinstance(parts, ast.Tuple | ast.List) or len(parts.elts) != 2:
                    continue
                first, second = parts.elts
                if not isinstance(first, ast.Name) or ast.unparse(first) != ast.unparse(second):
                    continue
                lost = [name for name, value, _ in source.assigned(function)
                        if isinstance(value, ast.Call) and name not in read]  # fmt: skip
                joins = [other.args[0] for other in source.walk(function)
                         if isinstance(other, ast.Call) and called(other) in _JOINS
                         and other.args and other is not call]  # fmt: skip
                skips = [each for each in joins if isinstance(each, ast.Tuple | ast.List)
                         and len({ast.unparse(part) for part in each.elts}) == 2]  # fmt: skip
                if lost or (skips and first.id in map(dotted, [
                    part for each in skips for part in ast.walk(each)
                ])) or _is_upsampled(source, function, first):  # fmt: skip
                    yield source.pattern("same part twice", call, first.id)


def _is_upsampled(source: Source, function: Function, name: ast.Name) -> bool:
    """Whether a name is a map that was made larger, to which a skip connection belongs."""
    return any(
        other == name.id
        and (called(value) == "interpolate" or re.search(r"(^|_)up", of_self(
            getattr(value, "func", value))))
        for other, value, _ in source.assigned(function)
    )  # fmt: skip


@reads
def joined_twice(source: Source) -> Iterator[Pattern]:
    """`b = self.up(c)` and `torch.cat([b, b], 1)`, where `b` was the skip connection before."""
    for call in source.of(ast.Call):
        function = source.scope(call)
        if called(call) not in ("cat", "concat") or axis_of(call) not in (1, -1, -3):
            continue
        parts = tensor_of(call)
        if not isinstance(parts, ast.List | ast.Tuple) or len(parts.elts) != 2:
            continue
        first, second = parts.elts
        if not isinstance(first, ast.Name) or dotted(second) != first.id:
            continue
        if isinstance(function, Function) and function.name == "forward":
            before = [each for each in source.bindings(function, first.id)
                      if each.lineno < call.lineno]  # fmt: skip
            if before and re.search(r"up|dec", ast.unparse(before[-1]), re.I):
                yield source.pattern("joined twice", call, first.id)
