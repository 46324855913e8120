"""Indices in another order than beside them, and batches taken for features."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source import Function, Pattern, Source, called, dotted, of_self
from holter.scripts.reading.values import resolved, tensor_of

_PAIRS = (("x", "y"), ("col", "row"), ("column", "row"), ("cols", "rows"))


def exchanged(source: Source) -> Iterator[Pattern]:
    """`mask[b, x, y] = 1` and `boxes[b, :, y, x] = ...` in one block."""
    for block in _blocks(source):
        written: dict[str, tuple[tuple[str, str], ast.stmt]] = {}
        for statement in block:
            if not isinstance(statement, ast.Assign):
                continue
            for target in statement.targets:
                pair = _pair(target)
                if pair is None or not isinstance(target, ast.Subscript):
                    continue
                name = ast.unparse(target.value)
                known = [(other, each) for other, each in written.items() if other != name]
                written.setdefault(name, (pair, statement))
                for other, (before, first) in known:
                    if before == pair[::-1]:
                        wrong = first if _is_x_first(before) else statement
                        about = name if wrong is first else other
                        yield source.pattern("exchanged indices", wrong, about)
                        return


def _blocks(source: Source) -> Iterator[list[ast.stmt]]:
    for node in source.of(ast.For, ast.While, *Function.__args__):
        yield node.body


def _pair(target: ast.expr) -> tuple[str, str] | None:
    """Return the last two indices of a place, if these are a column and a row."""
    if not isinstance(target, ast.Subscript) or not isinstance(target.slice, ast.Tuple):
        return None
    last = target.slice.elts[-2:]
    names = [each.id for each in last if isinstance(each, ast.Name)]
    if len(names) != len(last) or len(names) != 2:
        return None
    one, other = names
    return (one, other) if _differ(one, other) or _differ(other, one) else None


def _differ(column: str, row: str) -> bool:
    """Whether two names are the same but for x and y, or column and row."""
    return any(
        column != row and re.sub(rf"{x}(?=\d*$|_)|^{x}", y, column) == row for x, y in _PAIRS
    )


def _is_x_first(pair: tuple[str, str]) -> bool:
    return _differ(*pair)


# Barlow Twins correlate features over the batch.
_DECORRELATED = re.compile(r"barlow|cross_?corr|off_?diag|vicreg|whiten|\.(T|mT|t\(\)) @", re.I)


def batch_normalised(source: Source) -> Iterator[Pattern]:
    """`return F.normalize(self.net(x), dim=0)`: lengths over the batch, not of each vector."""
    for body in source.module_classes.values():
        for function in body.body:
            if not isinstance(function, ast.FunctionDef) or function.name == "__init__":
                continue
            if function.name != "forward" and _DECORRELATED.search(source.code(source.tree)):
                continue
            for call in source.walk(function):
                if not isinstance(call, ast.Call) or called(call) != "normalize":
                    continue
                dims = [each.value for each in call.keywords if each.arg == "dim"]
                dims += call.args[2:3]
                is_over_batch = bool(dims) and ast.unparse(dims[0]) == "0"
                if is_over_batch and call.args and _is_activation(source, function, call.args[0]):
                    yield source.pattern("batch normalised", call, ast.unparse(call.args[0]))


def _is_activation(source: Source, function: ast.FunctionDef, value: ast.expr) -> bool:
    """Whether an expression is what a layer returns for what the forward pass computes."""
    if isinstance(value, ast.Name):
        made = [each for name, each, _ in source.assigned(function) if name == value.id]
        return bool(made) and all(
            not isinstance(each, ast.Name) and _is_activation(source, function, each)
            for each in made
        )
    if not isinstance(value, ast.Call) or not of_self(value.func):
        return False
    return any(isinstance(each, ast.Name | ast.Call) for each in value.args)


def batch_embeddings(source: Source) -> Iterator[Pattern]:
    """`z = F.normalize(model(x), dim=0)` before similarities of samples: the same elsewhere."""
    if _DECORRELATED.search(source.code(source.tree)):
        return
    for call in source.of(ast.Call):
        if called(call) not in ("normalize", "norm") or of_self(call.func):
            continue
        options = {each.arg: each.value for each in call.keywords}
        dim, given = options.get("dim"), tensor_of(call)
        if dim is None or ast.unparse(dim) != "0" or given is None:
            continue
        above = source.parent(call)
        if called(call) == "norm":  # `z / z.norm(dim=0, keepdim=True)`
            is_divided = isinstance(above, ast.BinOp) and isinstance(above.op, ast.Div)
            left = ast.unparse(above.left) if isinstance(above, ast.BinOp) else ""
            if not is_divided or left != ast.unparse(given) or "keepdim" not in options:
                continue
        made = resolved(source, source.scope(call), given)
        if isinstance(made, ast.Call) and dotted(made.func) in source.models and made.args:
            yield source.pattern("batch normalised", call, ast.unparse(given))
