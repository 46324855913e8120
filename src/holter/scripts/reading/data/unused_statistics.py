"""Statistics, splits, offsets and helpers that are made for the data, and that nothing reads."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Function, Pattern, Source, called, dotted

_HELD_OUT = re.compile(r"(^|_)(test|val|va|valid|validation|eval|dev|holdout)(_|$|\d)", re.I)
_TRAIN = re.compile(r"(^|_)(train|training|trn|tr)(_|$|\d)", re.I)
_SPREADS = {"std", "nanstd"}
_KEEPING = {"clamp", "clamp_min", "clip", "item", "float", "to", "astype"}
_CLEANING = re.compile(
    r"^_?(clean(?!_?up)|impute|fill|normali[sz]e|standardi[sz]e|whiten|shift|denoise|dedup)", re.I
)
_OFFSET = re.compile(r"(^|_)(offset|shift|base)s?$", re.I)
_FETCHING = re.compile(r"load_|fetch|download|open")
_DYNAMIC = {"locals", "globals", "vars", "exec", "eval"}


@reads
def idle(source: Source) -> Iterator[Pattern]:
    """What a file that trains makes for its data, and never reads."""
    calls = list(source.of(ast.Call))
    if "backward" not in map(called, calls) or {dotted(each.func) for each in calls} & _DYNAMIC:
        return
    read = _read_names(source)
    for scope in source.scopes:
        for name, value, statement in source.assigned(scope):
            if name in read or name.startswith("_") or source.stores(scope, name) > 1:
                continue
            if any(called(each) in _SPREADS for each in _without_guards(value)):
                yield source.pattern("unused scale", statement, name)
            elif _is_behind_sampler(source, value):
                yield source.pattern("class weights in sampler", statement, name)
    yield from _splits(source, read)
    yield from _folds(source, read)
    for node in source.of(ast.AugAssign):
        name = dotted(node.target)
        is_offset = isinstance(node.target, ast.Name) and _OFFSET.search(name)
        if is_offset and name not in read and isinstance(node.op, ast.Add):
            yield source.pattern("unused offset", node, name)
    for function in source.of(*Function.__args__):
        is_outer = source.parent(function) is source.tree and not function.decorator_list
        is_outer = is_outer and source.is_script  # nothing else calls it
        if is_outer and function.name not in read and _CLEANING.search(function.name):
            yield source.pattern("unused helper", function, function.name)


def _read_names(source: Source) -> set[str]:
    """Return every name that is read or exported in the file."""
    read = {node.id for node in source.of(ast.Name) if isinstance(node.ctx, ast.Load)}
    read |= {name for node in source.of(ast.Global) for name in node.names}
    for assign in source.of(ast.Assign):
        if any(dotted(target) == "__all__" for target in assign.targets):
            read |= {str(getattr(each, "value", "")) for each in source.walk(assign.value)}
    return read


def _without_guards(value: ast.expr) -> Iterator[ast.expr]:
    """Yield an expression, and what is left of it without `+ eps`, `clamp` and conversions."""
    while True:
        yield value
        if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
            value = value.left
        elif isinstance(value, ast.Call) and called(value) in _KEEPING:
            if not isinstance(value.func, ast.Attribute):
                return
            value = value.func.value
        else:
            return


def _is_behind_sampler(source: Source, value: ast.expr) -> bool:
    """Whether weights of rows are made of what `WeightedRandomSampler` is given instead."""
    indexed = {dotted(node.value) for node in source.walk(value) if isinstance(node, ast.Subscript)}
    for call in source.of(ast.Call):
        if called(call) == "WeightedRandomSampler":
            given = [*call.args[:1], *(k.value for k in call.keywords if k.arg == "weights")]
            names = {dotted(node) for each in given for node in source.walk(each)} - {"", "torch"}
            if names & indexed:
                return True
    return False


def _splits(source: Source, read: set[str]) -> Iterator[Pattern]:
    """Yield splits of which the training part is unused, and the held-out part is used."""
    loops: list[ast.For | ast.comprehension] = [*source.of(ast.For), *source.of(ast.comprehension)]
    places: list[ast.Assign | ast.For | ast.comprehension] = [*source.of(ast.Assign), *loops]
    for node in places:
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        value = node.value if isinstance(node, ast.Assign) else node.iter
        names = [each.id for each in getattr(target, "elts", ()) if isinstance(each, ast.Name)]
        if len(names) < 2 or names[0] in read or names[0].startswith("_"):
            continue
        if not isinstance(value, ast.Call):
            continue
        if isinstance(node, ast.Assign):
            is_split = bool(_TRAIN.search(names[0]) and _HELD_OUT.search(names[1]))
            is_split = is_split and not any(_FETCHING.search(called(v)) for v in source.walk(value))
        else:
            is_split = called(value) == "split" and bool(value.args)
            is_split = is_split and not isinstance(value.args[0], ast.Constant)
        if is_split and all(name in read for name in names[1:]):
            yield source.pattern("unused split", target, names[0])


def _folds(source: Source, read: set[str]) -> Iterator[Pattern]:
    """Yield `hold, rest = rows[fold == k], rows[fold != k]` whose second part is unused."""
    for node in source.of(ast.Assign):
        target, value = node.targets[0], node.value
        if not isinstance(target, ast.Tuple) or not isinstance(value, ast.Tuple):
            continue
        names = [each.id for each in target.elts if isinstance(each, ast.Name)]
        texts = [ast.unparse(each) for each in value.elts]
        if len(names) != len(texts) or len(texts) != 2:
            continue
        outside = [text for text in texts if "!=" in text]
        if len(outside) != 1 or outside[0].replace("!=", "==") not in texts:
            continue
        rest = names[texts.index(outside[0])]
        if rest not in read and set(names) & read:
            yield source.pattern("unused split", node, rest)
