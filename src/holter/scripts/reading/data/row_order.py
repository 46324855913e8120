"""Rows under another number: results of a shuffled loader beside rows in order, sorted ids."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.expressions import made_once, resolved
from holter.scripts.reading.source.origins import Frame, origins, passed
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import (
    Function,
    Pattern,
    Source,
    called,
    dotted,
    parameters_of,
)

_STACKING = {"cat", "concatenate", "concat", "vstack", "hstack", "stack", "array"}
_TOGETHER = {"TensorDataset", "zip"}
_DEEPEST = 4  # functions that pass a loader on
_IDS = re.compile(r"(^|_)(ids?|nodes?|papers?|users?|items?|keys?|names?|accounts?|genes?)$", re.I)
_LABELS = re.compile(r"^(labels?|targets?|y|ys|truth|tags|classes)$", re.I)


@reads
def cached(source: Source) -> Iterator[Pattern]:
    """`cat([teacher(x) for (x,) in shuffled_loader])` beside the rows in their own order."""
    loaders: dict[str, tuple[ast.stmt, set[str]]] = {}
    for scope in source.scopes:
        for name, value, statement in source.assigned(scope):
            rows = _shuffled_rows(source, value)
            if rows:
                loaders[name] = (statement, rows)
    if not loaders:
        return
    for scope in source.scopes:
        for name, value, statement in source.assigned(scope):
            loader = _collected_from(source, scope, value)
            if loader not in loaders or source.stores(scope, name) > 1:
                continue
            rows = loaders[loader][1]
            if any(_are_paired(node, name, rows) for node in source.walk(source.tree)):
                yield source.pattern("shuffled cache", statement, f"{loader}")


def _shuffled_rows(source: Source, value: ast.expr) -> set[str]:
    """Return the names of the tensors that a shuffled loader serves."""
    if called(value) != "DataLoader" or not isinstance(value, ast.Call) or not value.args:
        return set()
    options = {each.arg: each.value for each in value.keywords}
    shuffle = options.get("shuffle")
    if not isinstance(shuffle, ast.Constant) or shuffle.value is not True:
        return set()
    served = value.args[0]
    if isinstance(served, ast.Name):
        made = [each for scope in source.scopes for name, each, _ in source.assigned(scope)
                if name == served.id]  # fmt: skip
        served = made[0] if len(made) == 1 else served
    if called(served) != "TensorDataset" or not isinstance(served, ast.Call):
        return set()
    return {each.id for each in served.args if isinstance(each, ast.Name)}


def _collected_from(source: Source, scope: ast.AST, value: ast.expr) -> str:
    """Return the name of the loader over whose batches results are joined, or ""."""
    if not isinstance(value, ast.Call) or called(value) not in _STACKING or not value.args:
        return ""
    given = value.args[0]
    if isinstance(given, ast.ListComp) and len(given.generators) == 1:
        return dotted(given.generators[0].iter)
    if not isinstance(given, ast.Name):
        return ""
    loops = {
        dotted(above.iter)
        for node in source.walk(scope)
        if called(node) == "append"
        and isinstance(node, ast.Call)
        and dotted(node.func) == f"{given.id}.append"
        for above in source.above(node)
        if isinstance(above, ast.For)
    }
    return loops.pop() if len(loops) == 1 else ""


def _are_paired(node: ast.AST, name: str, rows: set[str]) -> bool:
    """Whether a call puts results beside the rows in their own order."""
    if not isinstance(node, ast.Call) or called(node) not in _TOGETHER:
        return False
    given = {each.id for each in node.args if isinstance(each, ast.Name)}
    return name in given and bool(given & rows)


@reads
def read_by_number(source: Source) -> Iterator[Pattern]:
    """`kept = [teacher(x) for x, _ in loader]`, then `zip(kept, loader)` of a shuffled loader."""
    for scope in source.scopes:
        for name, value, _ in source.assigned(scope):
            if not isinstance(value, ast.ListComp) or len(value.generators) != 1:
                continue
            loader = dotted(value.generators[0].iter)
            calls = [each for each in ast.walk(value.elt) if isinstance(each, ast.Call)]
            if not loader or not calls or not _is_shuffled(source, scope, value.generators[0].iter):
                continue
            for node in source.walk(scope):
                given = node.iter if isinstance(node, ast.For) else None
                while isinstance(given, ast.Call) and called(given) in ("enumerate", "tqdm"):
                    given = given.args[0] if given.args else None
                if given is None or node.lineno <= value.lineno:  # type: ignore[attr-defined]
                    continue
                is_zipped = isinstance(given, ast.Call) and called(given) == "zip" and {
                    name, loader} <= set(map(dotted, given.args))  # fmt: skip
                is_indexed = dotted(given) == loader and any(
                    isinstance(each, ast.Subscript) and dotted(each.value) == name
                    for each in source.walk(node)
                )
                if is_zipped or is_indexed:
                    yield source.pattern("cache by number", node, name)


def _is_shuffled(source: Source, scope: ast.AST, node: ast.expr) -> bool:
    """Whether a name is a loader that shuffles, also if a function returns it among others."""
    if not isinstance(node, ast.Name):
        return False
    values = list(origins(source, node, Frame(scope)))
    if len(values) != 1 or called(values[0].node) != "DataLoader":
        return False
    made = values[0].node
    return isinstance(made, ast.Call) and any(
        each.arg == "shuffle" and getattr(each.value, "value", None) is True
        for each in made.keywords
    )


@reads
def shuffled_passes(source: Source) -> Iterator[Pattern]:
    """`cat([f(x) for x, _ in loader])` and `cat([g(y) for _, y in loader])` of a shuffled one."""
    for scope in source.scopes:
        collected: dict[str, list[tuple[str, ast.expr]]] = {}
        for name, value, _ in source.assigned(scope):
            for node in source.walk(value):
                if isinstance(node, ast.ListComp) and len(node.generators) == 1:
                    loader = dotted(node.generators[0].iter)
                    used = {each.id for each in source.walk(node.elt) if isinstance(each, ast.Name)}
                    drawn = {each.id for each in source.walk(node.generators[0].target)
                             if isinstance(each, ast.Name)}  # fmt: skip
                    if loader and used & drawn:
                        collected.setdefault(loader, []).append((name, value))
        for loader, parts in collected.items():
            names = {name for name, _ in parts}
            is_shuffled = 1 < len(parts) == len(names) and _is_shuffled_loader(
                source, scope, loader
            )
            if is_shuffled and _are_combined(source, scope, names):
                yield source.pattern("shuffled passes", parts[1][1], loader)


def _is_shuffled_loader(source: Source, scope: ast.AST, name: str, depth: int = 0) -> bool:
    """Whether a loader that a name may stand for is shuffled."""
    if depth > _DEEPEST:
        return False
    if name in parameters_of(scope) and isinstance(scope, Function):
        given = [each for each in passed(source, scope, name) if isinstance(each, ast.Name)]
        return bool(given) and any(
            _is_shuffled_loader(source, source.scope(each), each.id, depth + 1) for each in given
        )
    made = made_once(source, scope, name) if name.isidentifier() else None
    if not isinstance(made, ast.Call) or called(made) != "DataLoader":
        return False
    return any(each.arg == "shuffle" and getattr(each.value, "value", False) is True
               for each in made.keywords)  # fmt: skip


def _are_combined(source: Source, scope: ast.AST, names: set[str]) -> bool:
    """Whether two names are used in one operation or call."""
    for node in source.walk(scope):
        if isinstance(node, ast.BinOp | ast.Compare):
            sides = [node.left, getattr(node, "right", None) or node.comparators[0]]  # type: ignore[union-attr]
            inside = [names & {each.id for each in ast.walk(side) if isinstance(each, ast.Name)}
                      for side in sides]  # fmt: skip
            if all(inside) and inside[0] != inside[1]:
                return True
        if isinstance(node, ast.Call) and len(names & {dotted(each) for each in node.args}) > 1:
            return True
    return False


@reads
def sorted_ids(source: Source) -> Iterator[Pattern]:
    """`{p: i for i, p in enumerate(sorted(ids))}` for edges of rows that are in another order."""
    for node in source.of(ast.DictComp):
        loop = node.generators[0]
        over = loop.iter
        if called(over) != "enumerate" or not isinstance(over, ast.Call) or not over.args:
            continue
        inner = over.args[0]
        if called(inner) not in ("sorted", "unique") or not isinstance(inner, ast.Call):
            continue
        ids = dotted(inner.args[0]) if inner.args else ""
        scope = source.scope(node)
        if not ids or not _IDS.search(ids) or ids not in parameters_of(scope):
            continue
        assert isinstance(scope, Function)
        above = source.parent(node)
        name = dotted(above.targets[0]) if isinstance(above, ast.Assign) else ""
        if name and _makes_pairs(source, scope, name) and _has_rows(source, scope, ids):
            yield source.pattern("sorted ids", node, ids)


def _makes_pairs(source: Source, scope: Function, name: str) -> bool:
    """Whether a function looks up both ends of pairs, and gives only these back."""
    looked_up = [
        node
        for node in source.of(ast.Subscript)
        if source.scope(node) is scope and dotted(node.value) == name
    ]
    returned = [node.value for node in source.of(ast.Return) if source.scope(node) is scope]
    is_kept = any(
        name in {dotted(part) for part in getattr(each, "elts", [each]) if part is not None}
        for each in returned
    )
    return len(looked_up) >= 2 and not is_kept


def _has_rows(source: Source, scope: Function, ids: str) -> bool:
    """Whether the ids are read beside the features, whose order they share."""
    place = parameters_of(scope).index(ids)
    for call in source.of(ast.Call):
        if called(call) != scope.name or len(call.args) <= place:
            continue
        given = dotted(call.args[place])
        if any(
            called(each) in ("sort", "sorted", "argsort", "unique") and given in ast.unparse(each)
            for each in source.of(ast.Call)
            if source.scope(each) is source.scope(call)
        ):
            return False
        for node in source.of(ast.Assign):
            target = node.targets[0]
            if (
                source.scope(node) is source.scope(call)
                and isinstance(target, ast.Tuple)
                and given
                and given in {dotted(each) for each in target.elts}
            ):
                return True
    return False


@reads
def stored_labels(source: Source) -> Iterator[Pattern]:
    """`truth = loader.dataset.labels` beside predictions of a loader that shuffles."""
    for loop in source.of(ast.For):
        scope, loader = source.scope(loop), dotted(loop.iter)
        if not isinstance(scope, Function) or loader not in parameters_of(scope):
            continue
        gathered = {
            dotted(call.func).rpartition(".")[0]
            for call in source.walk(loop)
            if isinstance(call, ast.Call) and called(call) in ("append", "extend")
        }
        if not gathered:
            continue
        stored = [
            node
            for node in source.of(ast.Attribute)
            if source.scope(node) is scope
            and dotted(node.value) == f"{loader}.dataset"
            and _LABELS.match(node.attr)
        ]
        if stored and _shuffles(source, scope, loader):
            yield source.pattern("labels of stored order", stored[0], dotted(stored[0]))


def _shuffles(source: Source, scope: Function, loader: str) -> bool:
    """Whether every loader that a function is given shuffles: by a constant, for any split."""
    place = parameters_of(scope).index(loader)
    given = [
        call.args[place]
        for call in source.of(ast.Call)
        if called(call) == scope.name and len(call.args) > place
    ]
    if not given:
        return False
    makers = []
    for each in given:
        home = source.scope(each)
        value = resolved(source, home, each)
        if isinstance(value, ast.Subscript):  # `loaders[1]` of a list of loaders
            every = resolved(source, home, value.value)
            if isinstance(every, ast.ListComp | ast.GeneratorExp):
                value = every.elt
        if isinstance(value, ast.Name):
            value = _of_tuple(source, home, value.id) or value
        makers.append(_loader(source, value))
    return any(makers)


def _of_tuple(source: Source, scope: ast.AST, name: str) -> ast.expr | None:
    """Return what makes each element that a name is unpacked from: `a, b = (f(d) for d in s)`."""
    for node in source.of(ast.Assign):
        target = node.targets[0]
        if (
            source.scope(node) is scope
            and isinstance(target, ast.Tuple)
            and name in {dotted(each) for each in target.elts}
            and isinstance(node.value, ast.GeneratorExp | ast.ListComp)
        ):
            return node.value.elt
    return made_once(source, scope, name)


def _loader(source: Source, value: ast.expr) -> bool:
    if not isinstance(value, ast.Call):
        return False
    if called(value) != "DataLoader":
        made = [
            node.value
            for function in source.of(ast.FunctionDef)
            if function.name == called(value)
            for node in source.of(ast.Return)
            if source.scope(node) is function
        ]
        if len(made) != 1 or called(made[0] or value) != "DataLoader":
            return False
        value = made[0]  # type: ignore[assignment]
    return any(
        each.arg == "shuffle" and getattr(each.value, "value", None) is True
        for each in getattr(value, "keywords", ())
    )
