"""Loops over batches that take other rows than those that are meant."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.loops import LOOPS
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.slices import only_value
from holter.scripts.reading.source.tree import Function, Pattern, Source, called, dotted

_PROGRESS = {"enumerate", "tqdm"}
_LAZY = {"zip", "map", "filter", "iter", "chain", "itertools.chain", "islice", "itertools.islice"}
_ENDLESS = re.compile(r"cycle|count\(|repeat|infinite|forever|endless", re.I)
_SPLIT_MASK = re.compile(r"(^|_)(train|val|valid|dev|test)(ing|idation)?_?mask$", re.I)
_MOVING = {"shuffle", "permutation", "roll", "pop", "popleft", "rotate"}


@reads
def offset_by_count(source: Source) -> Iterator[Pattern]:
    """`for i in range(n // size): rows[i : i + size]`: batches that overlap in all rows but one."""
    for loop in source.of(ast.For):
        size = _divisor(source, loop)
        index = dotted(loop.target)
        if not size or not index or index in _stored(source, loop):
            continue
        for node in _read(source, loop):
            if _slice(node) in ((index, f"{index} + {size}"), (index, f"{size} + {index}")):
                yield source.pattern("overlapping batches", node, size)
                break


@reads
def same_slice(source: Source) -> Iterator[Pattern]:
    """`for i in range(0, n, size): rows = order[:size]`: the same rows in each turn."""
    for loop in source.of(ast.For):
        size = _divisor(source, loop) or _stride(loop)
        if not size or not isinstance(loop.target, ast.Name):
            continue
        inside = [node for part in loop.body for node in source.walk(part)]
        if any(dotted(node) == loop.target.id for node in inside):
            continue  # the place of the batch is used in another way
        for node in _read(source, loop):
            name = dotted(node.value)
            is_first = name != "" and _slice(node) in (("", size), ("0", size))
            if is_first and not _is_moved(source, inside, name):
                yield source.pattern("same rows", node, name)
                break


def _bounds(loop: ast.For) -> list[ast.expr]:
    """Return the arguments of `range` that a loop goes over."""
    over = loop.iter
    if called(over) == "tqdm" and isinstance(over, ast.Call) and over.args:
        over = over.args[0]
    is_range = isinstance(over, ast.Call) and called(over) in ("range", "trange")
    return over.args if is_range and isinstance(over, ast.Call) else []


def _divisor(source: Source, loop: ast.For) -> str:
    """Return what the number of turns is divided by: `range(len(x) // size)`."""
    bounds = _bounds(loop)
    if len(bounds) not in (1, 2):
        return ""
    turns: ast.expr | None = bounds[-1]
    if isinstance(turns, ast.Name):
        turns = only_value(source, source.scope(loop), turns.id)[0]
    if isinstance(turns, ast.Call) and called(turns) in ("int", "ceil") and turns.args:
        turns = turns.args[0]
    if isinstance(turns, ast.BinOp) and isinstance(turns.op, ast.FloorDiv | ast.Div):
        return _named(turns.right)
    return ""


def _stride(loop: ast.For) -> str:
    """Return the step of a loop: `range(0, len(x), size)`."""
    bounds = _bounds(loop)
    return _named(bounds[2]) if len(bounds) == 3 else ""


def _named(size: ast.expr) -> str:
    """Return a size as it is written, if it is a name or a number above 1."""
    if isinstance(size, ast.Constant):
        return str(size.value) if isinstance(size.value, int) and size.value > 1 else ""
    return dotted(size)


def _stored(source: Source, loop: ast.For) -> set[str]:
    return {node.id for part in loop.body for node in source.walk(part)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}  # fmt: skip


def _read(source: Source, loop: ast.For) -> list[ast.Subscript]:
    return [node for part in loop.body for node in source.walk(part)
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load)]  # fmt: skip


def _slice(node: ast.Subscript) -> tuple[str, str] | None:
    """Return the bounds of a slice of the first axis as they are written."""
    part = node.slice
    if isinstance(part, ast.Tuple) and part.elts:
        part = part.elts[0]
    if not isinstance(part, ast.Slice) or part.step is not None or part.upper is None:
        return None
    return "" if part.lower is None else ast.unparse(part.lower), ast.unparse(part.upper)


def _is_moved(source: Source, inside: list[ast.AST], name: str) -> bool:
    """Whether a loop writes to an array, reorders it, or takes elements out of it."""
    head = name.partition(".")[0]
    for node in inside:
        written: ast.AST = node.value if isinstance(node, ast.Subscript) else node
        is_written = not isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
        if is_written and dotted(written) in (head, name):
            return True
        if called(node) in _MOVING and any(dotted(each) == name for each in source.walk(node)):
            return True
    return False


@reads
def consumed(source: Source) -> Iterator[Pattern]:
    """`batches = zip(a, b)` before the loop over epochs that goes through it."""
    generators = _generators(source)
    for scope in source.scopes:
        for name, value, statement in source.assigned(scope):
            is_lazy = isinstance(value, ast.GeneratorExp) or (
                isinstance(value, ast.Call)
                and (dotted(value.func) in _LAZY or called(value) in generators)
            )
            if not is_lazy or source.stores(scope, name) != 1:
                continue
            text = ast.unparse(value)  # `iterators.exhausted` reads those of parameters
            if _ENDLESS.search(text) or "parameters(" in text:
                continue
            loops = [loop for loop in source.of(ast.For)
                     if source.scope(loop) is scope and _goes_through(loop, name)]  # fmt: skip
            again = next((each for each in loops if _is_repeated(source, each, statement)), None)
            if again is not None:
                yield source.pattern("consumed in the first epoch", again.iter, name)


def _generators(source: Source) -> set[str]:
    """Return the names of functions of the file that yield, and come to an end."""
    yielding = {source.scope(node) for node in source.of(ast.Yield, ast.YieldFrom)}
    ending = {each for each in yielding if isinstance(each, Function) and not each.decorator_list}
    ending -= {each for each in ending if _is_endless(source, each)}
    others = {each.name for each in source.of(*Function.__args__) if each not in ending}
    return {each.name for each in ending if isinstance(each, Function)} - others


def _is_endless(source: Source, function: ast.AST) -> bool:
    return any(isinstance(node, ast.While) for node in source.walk(function)) or bool(
        _ENDLESS.search(source.code(function))
    )


def _goes_through(loop: ast.For, name: str) -> bool:
    over = loop.iter
    while isinstance(over, ast.Call) and called(over) in _PROGRESS and over.args:
        over = over.args[0]
    return isinstance(over, ast.Name) and over.id == name


def _is_repeated(source: Source, loop: ast.For, statement: ast.stmt) -> bool:
    """Whether a loop that runs to its end is inside of another one, and the statement is not."""
    around = set(source.above(statement))
    outer = [each for each in source.above(loop) if isinstance(each, LOOPS) and each not in around]
    return bool(outer) and not any(
        isinstance(node, ast.Break | ast.Return) for node in source.walk(outer[0])
    )


@reads
def mask_as_index(source: Source) -> Iterator[Pattern]:
    """`out[mask.long()]`: rows 0 and 1, over and over, instead of those that the mask chooses.

    A table of two rows may be indexed so. Masks of a split, and those that two arrays of one
    expression are indexed by, choose samples.
    """
    found: dict[tuple[ast.AST, str], list[ast.Subscript]] = {}
    for node in source.of(ast.Subscript):
        if mask := _whole_mask(source, node):
            statement = next(each for each in source.above(node) if isinstance(each, ast.stmt))
            found.setdefault((statement, mask), []).append(node)
    for (_, mask), nodes in found.items():
        is_pair = len({ast.unparse(node.value) for node in nodes}) > 1
        if is_pair or _SPLIT_MASK.search(mask):
            yield source.pattern("mask as index", nodes[0], mask)


def _whole_mask(source: Source, node: ast.Subscript) -> str:
    """Return the name of a mask that a subscript turns into whole numbers, or ""."""
    index: ast.expr | None = node.slice
    if isinstance(index, ast.Name):
        index = only_value(source, source.scope(node), index.id)[0]
    if not isinstance(node.ctx, ast.Load) or not isinstance(index, ast.Call) or index.args:
        return ""
    if called(index) not in ("long", "int") or not isinstance(index.func, ast.Attribute):
        return ""
    name = dotted(index.func.value).rpartition(".")[2]
    return name if name.lower().endswith("mask") else ""
