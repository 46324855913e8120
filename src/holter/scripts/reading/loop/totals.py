"""Totals, defaults and variables of loops that carry over what they should not."""

import ast
import re
from collections.abc import Iterator, Sequence

from holter.scripts.reading.loop.best_scores import key_of
from holter.scripts.reading.source.expressions import number
from holter.scripts.reading.source.loops import LOOPS, owner_of
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Function, Pattern, Source, called, dotted

_CACHE = re.compile(r"cache|memo|seen|registry|store|counter|^_|state|once|history_of", re.I)
_MUTABLE = {"list", "dict", "set", "defaultdict", "Counter", "OrderedDict", "deque"}
_MUTATING = {"append", "extend", "add", "update", "insert", "setdefault", "appendleft"}


@reads
def unreset(source: Source) -> Iterator[Pattern]:
    """`total += loss.item()`, shown as `total / log_every`, and never set to 0."""
    for node in source.of(ast.AugAssign):
        name = key_of(node.target)
        if not name or not isinstance(node.op, ast.Add) or "[" in name:
            continue
        loops = [each for each in source.above(node) if isinstance(each, LOOPS)]
        if not loops or number(source, node.value) is not None:
            continue
        yield from _by_interval(source, node, name, loops[0])
        if len(loops) > 1:
            yield from _by_epoch(source, node, name, loops)


def _by_interval(
    source: Source, node: ast.AugAssign, name: str, loop: ast.AST
) -> Iterator[Pattern]:
    """Yield a total that is divided by the interval at which it is shown."""
    if _is_stored_otherwise(source, node, name, loop):
        return
    for test in source.walk(loop):
        if not isinstance(test, ast.If):
            continue
        every = {ast.unparse(each.right) for each in source.walk(test.test)
                 if isinstance(each, ast.BinOp) and isinstance(each.op, ast.Mod)}  # fmt: skip
        for statement in test.body:
            for each in source.walk(statement):
                is_mean = isinstance(each, ast.BinOp) and isinstance(each.op, ast.Div)
                if is_mean and key_of(each.left) == name and ast.unparse(each.right) in every:  # type: ignore[attr-defined]
                    yield source.pattern("total never reset", node, name)
                    return


def _is_stored_otherwise(source: Source, node: ast.AugAssign, name: str, loop: ast.AST) -> bool:
    """Whether a loop changes a total by another statement as well."""
    for each in source.walk(loop):
        if each is node.target:
            continue
        is_stored = isinstance(getattr(each, "ctx", None), ast.Store | ast.Del)
        if is_stored and key_of(each) == name:
            return True
        owner = owner_of(each)
        in_place = called(each) in ("zero_", "fill_", "reset", "clear", "mul_")
        if in_place and owner is not None and ast.unparse(owner) == name:
            return True
    return False


def _by_epoch(
    source: Source, node: ast.AugAssign, name: str, loops: Sequence[ast.AST]
) -> Iterator[Pattern]:
    """Yield a total over all epochs that each of them divides by its own number of batches."""
    inner, outer = loops[0], loops[1]
    if not isinstance(inner, ast.For) or _is_stored_otherwise(source, node, name, outer):
        return
    given = inner.iter
    while called(given) in ("enumerate", "tqdm") and isinstance(given, ast.Call) and given.args:
        given = given.args[0]
    counts = {f"len({ast.unparse(given)})", f"len({ast.unparse(given)}.dataset)"}
    inside = set(source.walk(inner))
    for each in source.walk(outer):
        if each in inside or not isinstance(each, ast.BinOp) or not isinstance(each.op, ast.Div):
            continue
        if key_of(each.left) == name and ast.unparse(each.right) in counts:
            others = [other for other in source.above(each) if isinstance(other, LOOPS)]
            if others and others[0] is outer:
                yield source.pattern("total never reset", node, name)
                return


@reads
def defaults(source: Source) -> Iterator[Pattern]:
    """`def evaluate(model, totals=[0, 0])`: one list for all calls, to which each one adds."""
    for function in source.of(*Function.__args__):
        if function.name == "__init__":
            continue
        arguments = [*function.args.posonlyargs, *function.args.args]
        values = function.args.defaults
        pairs = [*zip(arguments[len(arguments) - len(values) :], values, strict=True)]
        pairs += [(a, d) for a, d in zip(function.args.kwonlyargs, function.args.kw_defaults,
                                         strict=True) if d is not None]  # fmt: skip
        for argument, value in pairs:
            if not _is_mutable(value) or _CACHE.search(argument.arg):
                continue
            if _is_added_to(source, function, argument.arg) and _is_left_out(
                source, function, argument.arg
            ):
                yield source.pattern("shared default", value, argument.arg)


def _is_mutable(node: ast.expr) -> bool:
    if isinstance(node, ast.List | ast.Dict | ast.Set):
        return True
    if not isinstance(node, ast.Call):
        return False
    is_array = called(node) in ("zeros", "array", "tensor")
    home = dotted(node.func).partition(".")[0]
    return called(node) in _MUTABLE or (is_array and home in ("np", "torch", "numpy"))


def _is_added_to(source: Source, function: Function, name: str) -> bool:
    """Whether a function changes what a parameter holds, without giving it another value."""
    changed = False
    for each in source.walk(function):
        if isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Store):
            above = source.parent(each)
            if not isinstance(above, ast.AugAssign):
                return False
            changed = True
        if isinstance(each, ast.AugAssign | ast.Assign):
            targets = each.targets if isinstance(each, ast.Assign) else [each.target]
            changed |= any(isinstance(target, ast.Subscript) and dotted(target.value) == name
                           for target in targets)  # fmt: skip
        owner = owner_of(each)
        changed |= called(each) in _MUTATING and owner is not None and dotted(owner) == name
    return changed


def _is_left_out(source: Source, function: Function, name: str) -> bool:
    """Whether calls of the file leave the parameter to its default, in a loop or twice."""
    names = [each.arg for each in function.args.args]
    body = source.parent(function)
    place = names.index(name) - isinstance(body, ast.ClassDef) if name in names else 99
    without = [
        call for call in source.of(ast.Call)
        if called(call) == function.name and len(call.args) <= place
        and not any(each.arg in (name, None) for each in call.keywords)
        and not any(isinstance(each, ast.Starred) for each in call.args)
    ]  # fmt: skip
    in_loop = any(isinstance(each, LOOPS) for call in without for each in source.above(call))
    recursive = any(source.scope(call) is function for call in source.of(ast.Call)
                    if called(call) == function.name)  # fmt: skip
    return (len(without) > 1 or in_loop) and not recursive


@reads
def shadowed(source: Source) -> Iterator[Pattern]:
    """`for i in ...:` within `for i in ...:`, and `i` of the outer one is used after it."""
    for inner in source.of(ast.For):
        names = {each.id for each in source.walk(inner.target) if isinstance(each, ast.Name)}
        outer = source.parent(inner)
        while isinstance(outer, ast.If | ast.With):
            outer = source.parent(outer)
        if not isinstance(outer, ast.For):
            continue
        own = {each.id for each in source.walk(outer.target) if isinstance(each, ast.Name)}
        for name in sorted((names & own) - {"_", "__"}):
            later = [
                each for each in source.walk(outer)
                if isinstance(each, ast.Name) and each.id == name
                and each.lineno > (inner.end_lineno or inner.lineno)
            ]  # fmt: skip
            first = min(later, key=lambda each: (each.lineno, each.col_offset), default=None)
            holder = (
                [each for each in source.above(first) if isinstance(each, ast.For)] if first else []
            )
            if first is not None and isinstance(first.ctx, ast.Load) and holder and (
                holder[0] is outer
            ) and not _leaves_itself(source, inner):  # fmt: skip
                yield source.pattern("shadowed variable", inner, name)


def _leaves_itself(source: Source, inner: ast.For) -> bool:
    """Whether a loop searches: it is left early, so that its variable means the found one."""
    return any(isinstance(each, ast.Break) for each in source.walk(inner)) or bool(inner.orelse)


@reads
def short_range(source: Source) -> Iterator[Pattern]:
    """`range(0, len(x) // size, size)`: the bound counts batches and the steps count samples."""
    for call in source.of(ast.Call):
        if called(call) not in ("range", "trange") or len(call.args) != 3:
            continue
        bound, step = call.args[1], call.args[2]
        if isinstance(bound, ast.BinOp) and isinstance(bound.op, ast.FloorDiv):
            is_same = ast.unparse(bound.right) == ast.unparse(step)
            if is_same and not re.fullmatch(r"1|2", ast.unparse(step)):
                yield source.pattern("range of batches", call, ast.unparse(step))
