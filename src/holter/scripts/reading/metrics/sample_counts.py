"""Sums over batches that keep the last one only, or are divided by another count than their own."""

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from holter.scripts.reading.source.expressions import made, resolved
from holter.scripts.reading.source.metric_names import makers
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Function, Pattern, Source, called, dotted

_MEAN_LOSS = re.compile(
    r"^((CrossEntropy|MSE|BCE|BCEWithLogits|L1|SmoothL1|Huber|NLL|KLDiv)Loss"
    r"|cross_entropy|mse_loss|binary_cross_entropy|binary_cross_entropy_with_logits"
    r"|l1_loss|smooth_l1_loss|huber_loss|nll_loss)$"
)
_FUNCTIONS = ("F", "functional", "nn.functional", "torch.nn.functional", "")
_LOADER = re.compile(r"(^|[_.])(dl|batches|iterator)$|loader", re.I)
_SAMPLES = re.compile(
    r"len\([\w.\[\]'\"]+\)|[\w.\[\]'\"]+\.(size\(0\)|shape\[0\]|numel\(\)|batch_size|num_graphs)"
    r"|batch_size|bs",
    re.I,
)
_LENGTH = re.compile(r"len\([\w.]*(dataset|_data|_set|_ds)\)", re.I)
_CASTS = ("int", "float", "max", "round")
_METHODS = ("item", "float", "double", "cpu", "detach")


class _Loop(NamedTuple):
    """A loop with what it adds up in its turns, by the name of the sum."""

    node: ast.For
    scope: ast.AST
    sums: dict[str, list[ast.expr]]

    @property
    def end(self) -> int:
        return self.node.end_lineno or self.node.lineno


class _Ratio(NamedTuple):
    """A division: `a / b` or `a /= b`."""

    node: ast.BinOp | ast.AugAssign
    over: ast.expr
    by: ast.expr


@reads
def miscounted(source: Source) -> Iterator[Pattern]:
    """`right = (p == y).sum()` in a loop that counts `total += len(y)`, and `right / total`.

    Or a count of samples over `len(loader)`, batch means over `len(dataset)`, and `exp` of a sum.
    """
    ratios = list(_ratios(source))
    for loop in _loops(source):
        for ratio in ratios:
            over, by, line = _name(ratio.over), _name(ratio.by), ratio.node.lineno
            if line <= loop.end or (over not in loop.sums and by not in loop.sums):
                continue
            names = {over, by} if by in loop.sums else {over}
            if source.scope(ratio.node) is loop.scope and not _is_changed(
                source, loop, line, names
            ):
                yield from _divided(source, loop, ratio)
        yield from _exponents(source, loop, ratios)


def _loops(source: Source) -> list[_Loop]:
    """Return the loops that add something up."""
    loops: dict[ast.For, _Loop] = {}
    for node in source.of(ast.AugAssign):
        around = (each for each in source.above(node)
                  if isinstance(each, ast.For | ast.While | Function))  # fmt: skip
        inner, name = next(around, None), dotted(node.target)
        if isinstance(inner, ast.For) and isinstance(node.op, ast.Add) and name:
            loop = loops.setdefault(inner, _Loop(inner, source.scope(inner), {}))
            loop.sums.setdefault(name, []).append(node.value)
    return list(loops.values())


def _ratios(source: Source) -> Iterator[_Ratio]:
    for ratio in source.of(ast.BinOp):
        if isinstance(ratio.op, ast.Div):
            yield _Ratio(ratio, ratio.left, ratio.right)
    for change in source.of(ast.AugAssign):
        if isinstance(change.op, ast.Div):
            yield _Ratio(change, change.target, change.value)


def _name(node: ast.expr) -> str:
    """Return the name behind `float(right)`, `right.item()`, `100 * right` or `max(n, 1)`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return _name(node.right) if isinstance(node.left, ast.Constant) else ""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return _name(node.func.value) if called(node) in _METHODS else ""
    if isinstance(node, ast.Call) and called(node) in _CASTS:
        return next((name for each in node.args if (name := _name(each))), "")
    return dotted(node)


def _is_changed(source: Source, loop: _Loop, line: int, names: set[str]) -> bool:
    """Whether something else is done to a sum between its loop and its division."""
    nodes: list[ast.Assign | ast.AugAssign] = [*source.of(ast.Assign), *source.of(ast.AugAssign)]
    return any(
        dotted(target) in names
        for node in nodes
        if loop.end < node.lineno < line and source.scope(node) is loop.scope
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    )


def _divided(source: Source, loop: _Loop, ratio: _Ratio) -> Iterator[Pattern]:
    """Yield what is wrong with the ratio of a sum after its loop."""
    name, count, over = _name(ratio.over), _name(ratio.by), _over(loop.node)
    length = ast.unparse(resolved(source, loop.scope, ratio.by))
    values = loop.sums.get(name, [])
    is_counted = count in loop.sums and _is_samples(loop.sums[count])
    if not values:
        if is_counted:
            yield from _overwritten(source, loop, name)
    elif has_single_samples(source):
        return
    elif all(_is_of_samples(each) for each in values):
        if _LOADER.search(over) and length == f"len({over})":
            yield source.pattern("samples by batches", ratio.node, length)
    elif is_counted or (_LENGTH.fullmatch(length) and _LOADER.search(over)):
        is_mean = all(_is_mean(source, loop.scope, each) for each in values)
        if is_mean:
            yield source.pattern("batches by samples", ratio.node, ast.unparse(ratio.by))


def _over(loop: ast.For) -> str:
    """Return the name of what a loop goes through, without `enumerate` or `tqdm` around it."""
    over = loop.iter
    while isinstance(over, ast.Call) and called(over) in ("enumerate", "tqdm") and over.args:
        over = over.args[0]
    return dotted(over)


def has_single_samples(source: Source) -> bool:
    """Whether a loader of the file has batches of one sample, for which both counts are one."""
    for call in source.of(ast.Call):
        if called(call) != "DataLoader":
            continue
        sizes = [k.value for k in call.keywords if k.arg in ("batch_size", "batch_sampler", None)]
        sizes += call.args[1:2]
        if not sizes or any(isinstance(each, ast.Constant) and each.value == 1 for each in sizes):
            return True
    return False


def _is_samples(values: list[ast.expr]) -> bool:
    """Whether a sum counts samples: `+= len(y)`, `+= y.size(0)`."""
    return all(_SAMPLES.fullmatch(ast.unparse(each)) for each in values)


def _overwritten(source: Source, loop: _Loop, name: str) -> Iterator[Pattern]:
    """Yield the statement that replaces a count in each turn, if it takes it of the batch."""
    every = [(value, statement) for other, value, statement in source.assigned(loop.scope)
             if other == name]  # fmt: skip
    inside = [each for each in every if loop.node in source.above(each[1])]
    begins = any(isinstance(value, ast.Constant) and value.value == 0 for value, _ in every)
    if not begins or len(inside) != 1 or source.parent(inside[0][1]) is not loop.node:
        return
    value, statement = inside[0]
    is_used = any(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
        for node in source.walk(loop.node)
    )
    if not is_used and any(called(node) in ("sum", "item") for node in source.walk(value)):
        yield source.pattern("overwritten sum", statement, name)


def _bare(value: ast.expr) -> ast.expr:
    """Return an expression without what makes it a number: `.item()`, `float(...)`."""
    while isinstance(value, ast.Call):
        if isinstance(value.func, ast.Attribute) and called(value) in _METHODS:
            value = value.func.value
        elif called(value) in ("float", "int") and value.args:
            value = value.args[0]
        else:
            break
    return value


def _is_of_samples(value: ast.expr) -> bool:
    """Whether a value counts the samples that are right, or weighs a mean by the batch."""
    value = _bare(value)
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
        sides = (value.left, value.right)
        return any(
            _is_samples([each]) and not isinstance(each, ast.Name) for each in sides
        ) and any(called(each) == "item" for each in sides)
    if called(value) != "sum" or not isinstance(value, ast.Call):
        return False
    inner = value.args[0] if value.args else getattr(value.func, "value", value)
    while isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
        if inner.func.attr == "eq":
            return True
        inner = inner.func.value
    return isinstance(inner, ast.Compare) and isinstance(inner.ops[0], ast.Eq)


def _is_mean(source: Source, scope: ast.AST, value: ast.expr) -> bool:
    """Whether a value is a loss of torch that is the mean of a batch: `criterion(p, y).item()`."""
    value = _bare(value)
    if isinstance(value, ast.Name):
        values = made(source, scope, value.id)
        return bool(values) and all(
            not isinstance(each, ast.Name) and _is_mean(source, scope, each) for each in values
        )
    if not isinstance(value, ast.Call):
        return False
    if _MEAN_LOSS.match(called(value)):
        home = dotted(value.func).rpartition(".")[0]
        return home in _FUNCTIONS and not _has_reduction(value)
    losses = makers(source, value)
    return bool(losses) and all(
        isinstance(each, ast.Call) and _MEAN_LOSS.match(called(each)) and not _has_reduction(each)
        for each in losses
    )


def _has_reduction(call: ast.Call) -> bool:
    return any(each.arg in ("reduction", "size_average", "reduce", None) for each in call.keywords)


def _exponents(source: Source, loop: _Loop, ratios: list[_Ratio]) -> Iterator[Pattern]:
    """Yield perplexities of a sum of losses: `math.exp(total_loss)`."""
    for call in source.of(ast.Call):
        if called(call) != "exp" or len(call.args) != 1 or call.lineno <= loop.end:
            continue
        name = _name(call.args[0])
        if name not in loop.sums or source.scope(call) is not loop.scope:
            continue
        begins = [value for other, value, _ in source.assigned(loop.scope) if other == name]
        is_kept = all(isinstance(each, ast.Constant) for each in begins) and not any(
            isinstance(ratio.node, ast.AugAssign) and _name(ratio.over) == name for ratio in ratios
        )
        values = loop.sums[name]
        if is_kept and all(_is_mean(source, loop.scope, each) for each in values):
            yield source.pattern("exponent of sum", call, name)
