"""Results that are kept in another order than what they belong to, or beside something else."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source import Pattern, Source, called, dotted

_STACKING = {"cat", "concatenate", "concat", "vstack", "hstack", "stack", "array"}
_TOGETHER = {"TensorDataset", "zip"}
_STORING = {"append", "push", "add", "store", "put", "insert", "remember"}
_NO_DIAGONAL = {"zeros", "ones", "full", "randperm", "randint", "zeros_like", "ones_like"}
_PRODUCTS = {"matmul", "mm"}
_CLASSES = {"cross_entropy", "nll_loss"}
_EXPLORING = re.compile(r"eps|explor|rand|random", re.I)


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


def shifted(source: Source) -> Iterator[Pattern]:
    """`cat([negative, q @ d.T], 1)` with labels `arange`: the diagonal begins in column 1."""
    for call in source.of(ast.Call):
        if called(call) not in _CLASSES or len(call.args) < 2:
            continue
        scope = source.scope(call)
        logits = _made(source, scope, call.args[0])
        labels = _made(source, scope, call.args[1])
        if logits is None or called(labels or call) != "arange":
            continue
        while isinstance(logits, ast.BinOp) and isinstance(logits.op, ast.Div | ast.Mult):
            logits = logits.left
        if called(logits) not in ("cat", "concat") or not isinstance(logits, ast.Call):
            continue
        parts = logits.args[0] if logits.args else None
        if not isinstance(parts, ast.List | ast.Tuple) or not _is_along_columns(logits):
            continue
        first, *others = [_made(source, scope, each) for each in parts.elts]
        if first is None or not _is_column(first):
            continue
        if len(others) == 1 and others[0] is not None and _is_square(others[0]):
            yield source.pattern("shifted diagonal", call, ast.unparse(parts.elts[0]))
    yield from _off_diagonal(source)


def _off_diagonal(source: Source) -> Iterator[Pattern]:
    """Yield `ce(logits, t) + ce(logits.T, t)` whose targets are all the same, or random."""
    for call in source.of(ast.Call):
        if called(call) not in _CLASSES or len(call.args) < 2:
            continue
        scope = source.scope(call)
        target = _made(source, scope, call.args[1])
        while called(target or call) in ("to", "long", "cuda") and isinstance(target, ast.Call):
            target = target.func.value if isinstance(target.func, ast.Attribute) else None
        if target is None or called(target) not in _NO_DIAGONAL:
            continue
        logits = ast.unparse(call.args[0])
        turned = {f"{logits}.T", f"{logits}.t()", f"{logits}.mT", f"{logits}.transpose(0, 1)",
                  f"{logits}.transpose(1, 0)", f"{logits}.permute(1, 0)"}  # fmt: skip
        others = {
            ast.unparse(each.args[0])
            for each in source.of(ast.Call)
            if called(each) in _CLASSES and source.scope(each) is scope and each.args
        }
        if turned & others:
            yield source.pattern("targets off diagonal", call, ast.unparse(call.args[1]))


def _made(source: Source, scope: ast.AST, value: ast.expr) -> ast.expr | None:
    """Return the one expression that a name stands for, or the expression itself."""
    if not isinstance(value, ast.Name):
        return value
    made = [each for name, each, _ in source.assigned(scope) if name == value.id]
    return made[0] if len(made) == 1 and source.stores(scope, value.id) == 1 else None


def _is_along_columns(call: ast.Call) -> bool:
    dims = [each.value for each in call.keywords if each.arg in ("dim", "axis")]
    dims += call.args[1:2]
    return bool(dims) and ast.unparse(dims[0]) in ("1", "-1")


def _is_column(value: ast.expr) -> bool:
    """Whether an expression is one column: `(q * d).sum(-1, keepdim=True)`."""
    text = ast.unparse(value)
    is_sum = isinstance(value, ast.Call) and called(value) in ("sum", "unsqueeze")
    return is_sum and ("keepdim=True" in text or "unsqueeze(1)" in text or "unsqueeze(-1)" in text)


def _is_square(value: ast.expr) -> bool:
    """Whether an expression holds the products of all rows of two batches: `q @ d.t()`."""
    while isinstance(value, ast.BinOp) and isinstance(value.op, ast.Div | ast.Mult):
        value = value.left
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.MatMult):
        right = value.right
    elif called(value) in _PRODUCTS and isinstance(value, ast.Call) and value.args:
        right = value.args[-1]
    else:
        return False
    other = ast.unparse(right)
    if not re.search(r"\.t\(\)$|\.m?T$|transpose\(", other):
        return False
    return not re.search(r"queue|bank|memory|negative|weight|proto", other, re.I)


def unexecuted(source: Source) -> Iterator[Pattern]:
    """`a = where(explore, random, greedy)` is executed, and `greedy` is stored."""
    for step in source.of(ast.Assign):
        call = step.value
        if called(call) != "step" or not isinstance(call, ast.Call) or not call.args:
            continue
        executed = [each.id for each in source.walk(call.args[0]) if isinstance(each, ast.Name)]
        scope = source.scope(step)
        returned = {each.id for target in step.targets for each in source.walk(target)
                    if isinstance(each, ast.Name)}  # fmt: skip
        for name in executed:
            chosen = _chosen_from(source, scope, name)
            for store in source.walk(scope):
                if not isinstance(store, ast.Call) or called(store) not in _STORING:
                    continue
                held = {each.id for part in [*store.args, *(k.value for k in store.keywords)]
                        for each in source.walk(part) if isinstance(each, ast.Name)}  # fmt: skip
                if held & returned and name not in held and held & chosen:
                    yield source.pattern("unexecuted action", store, sorted(held & chosen)[0])


def _chosen_from(source: Source, scope: ast.AST, name: str) -> set[str]:
    """Return the names that an exploring choice replaces: `b` of `where(explore, random, b)`."""
    found = set()
    for other, value, _ in source.assigned(scope):
        if other != name:
            continue
        if called(value) == "where" and isinstance(value, ast.Call) and len(value.args) == 3:
            test, *sides = value.args
        elif isinstance(value, ast.IfExp):
            test, *sides = value.test, value.body, value.orelse
        else:
            return set()
        if _EXPLORING.search(ast.unparse(value)) and test is not None:
            found |= {each.id for each in sides if isinstance(each, ast.Name)}
    return found
