"""Training rows that are held-out rows as well: masks, slices and draws that share them."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.expressions import resolved, whole
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.slices import at_most_zero, difference, windows
from holter.scripts.reading.source.tree import Function, Pattern, Source, called, dotted

_VALID = re.compile(r"(^|_)(val|va|vl|valid|validation|dev)(_|$|\d)", re.I)
_TEST = re.compile(r"(^|_)(test|te|ts|tst|eval|holdout|heldout|held_out|held)(_|$|\d)", re.I)
_TRAIN = re.compile(r"(^|_)(train|training|tr|trn)(_|$|\d)", re.I)
_DRAWS = {"permutation", "randperm", "choice", "sample", "shuffled"}
_ROWS = re.compile(
    r"mask|(^|_)(idx|ids|index|indices|rows|sel|part|nodes)(_|$)|^is_|^(val|valid|test|train|tr|va|te)$",
    re.I,
)
_GROUP = re.compile(
    r"^(patient|subject|person|speaker|slide|building|customer|user|group|session|site|video|scene"
    r"|machine|writer|author|household|animal|plate|wearer|donor|house|participant|case|student"
    r"|study|recording|track|sequence|clip|source|device|vehicle|family)s?(_?(ids?|idx|no|key|codes?|of|names?))?$",
    re.I,
)
_SEQUENCES = re.compile(r"forecast|horizon|histor|window|seq_?len|look_?back|context|block", re.I)
_GROUPED = re.compile(r"groups?\s*=|Group(KFold|Shuffle)|OneGroup|unique\(|isin\(|in1d\(|groupby")


@reads
def complement(source: Source) -> Iterator[Pattern]:
    """`train_mask = ~val_mask` where a test mask exists: its rows are trained on."""
    changes: list[ast.Assign | ast.AugAssign] = [
        *source.of(ast.Assign),
        *source.of(ast.AugAssign),
    ]
    for scope in source.scopes:
        every = [
            (name, value, node)
            for name, value, node in source.assigned(scope)
            if _ROWS.search(name)
        ]
        tests = {name for name, _, _ in every if _TEST.search(name) and not _VALID.search(name)}
        tests |= _marked(source, scope)
        for name, value, node in every:
            inner = _inverted(value)
            other = dotted(inner) if inner is not None else ""
            if not _TRAIN.search(name) or not other or not tests or other in tests:
                continue
            if _VALID.search(other) and not _TRAIN.search(other):
                narrowed = any(
                    name in _stored(each) and each.lineno > node.lineno
                    for each in changes
                    if source.scope(each) is scope
                )
                # A test mask that is taken from within the validation rows is excluded as well.
                within = any(
                    other in {dotted(each) for each in ast.walk(made)} - {""}
                    for test, made, _ in every
                    if test in tests and not called(made).endswith("_like")
                )
                is_or = any(isinstance(made, ast.BinOp) for that, made, _ in every if that == other)
                if not narrowed and not within and not is_or:
                    yield source.pattern("test among training", node, min(tests))


def _marked(source: Source, scope: ast.AST) -> set[str]:
    return {
        target.value.id
        for node in source.of(ast.Assign)
        if source.scope(node) is scope
        for target in node.targets
        if isinstance(target, ast.Subscript)
        and isinstance(target.value, ast.Name)
        and _TEST.search(target.value.id)
        and _ROWS.search(target.value.id)
    }


def _stored(node: ast.Assign | ast.AugAssign) -> set[str]:
    """Return the names that a statement gives a value, or writes into."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return {dotted(each.value if isinstance(each, ast.Subscript) else each) for each in targets}


def _inverted(value: ast.expr) -> ast.expr | None:
    """Return what a mask is the complement of: `~m`, `np.logical_not(m)`, `m == 0`."""
    if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Invert):
        return value.operand
    if called(value) == "logical_not" and isinstance(value, ast.Call) and value.args:
        return value.args[0]
    return None


@reads
def two_draws(source: Source) -> Iterator[Pattern]:
    """`tr = rng.permutation(n)[k:]` and `va = rng.permutation(n)[:k]`: two different orders."""
    for scope in source.scopes:
        found: dict[str, list[tuple[str, ast.Call, ast.stmt]]] = {}
        for name, value, node in source.assigned(scope):
            if not isinstance(value, ast.Subscript) or not isinstance(value.slice, ast.Slice):
                continue
            call = value.value
            if called(call) not in _DRAWS or not isinstance(call, ast.Call):
                continue
            if "manual_seed" in ast.unparse(call) or "default_rng(" in ast.unparse(call):
                continue  # each begins with the same seed
            part = (
                "train"
                if _TRAIN.search(name)
                else ("held-out" if _VALID.search(name) or _TEST.search(name) else "")
            )
            if part:
                found.setdefault(part, []).append((name, call, node))
        for _, one, first in found.get("train", ()):
            for name, other, second in found.get("held-out", ()):
                if not (_is_same_range(source, scope, one, other)):
                    continue
                later = max(first, second, key=lambda each: each.lineno)
                if not _is_seeded_between(source, first.lineno, second.lineno):
                    yield source.pattern("drawn again", later, name)


def _is_same_range(source: Source, scope: ast.AST, one: ast.Call, other: ast.Call) -> bool:
    """Whether two permutations are of the same rows, or of two data sets made the same way."""
    if not one.args or not other.args:
        return False
    first, second = ast.unparse(one.args[0]), ast.unparse(other.args[0])
    if first == second:
        return True
    if re.fullmatch(r"len\(\w+\)", first) and re.fullmatch(r"len\(\w+\)", second):
        made = [
            resolved(source, scope, each.args[0].args[0])
            for each in (one, other)
            if isinstance(each.args[0], ast.Call)
        ]
        if len(made) == 2 and all(isinstance(each, ast.Call) and each.args for each in made):
            texts = {
                (called(each), ast.unparse(each.args[0]))
                for each in made
                if isinstance(each, ast.Call)
            }
            return len(texts) == 1
    return False


def _is_seeded_between(source: Source, first: int, second: int) -> bool:
    low, high = sorted((first, second))
    return any(
        low < call.lineno < high and re.search(r"seed", called(call))
        for call in source.of(ast.Call)
    )


@reads
def shared_rows(source: Source) -> Iterator[Pattern]:
    """`train, val = x[:900], x[800:]`, or two slices of held-out and training rows that are one."""
    for scope in source.scopes:
        slices = []
        for name, value, node in source.assigned(scope):
            if (
                isinstance(value, ast.Subscript)
                and isinstance(value.slice, ast.Slice)
                and (_TRAIN.search(name) or _VALID.search(name) or _TEST.search(name))
            ):
                slices.append((name, value, node))
        for name, value, node in slices:
            if not _TRAIN.search(name) or _VALID.search(name) or _TEST.search(name):
                continue
            for other, held, place in slices:
                if _TRAIN.search(other) or _stem(name, _TRAIN) != _stem(other, _VALID, _TEST):
                    continue
                if ast.unparse(value.value) != ast.unparse(held.value):
                    continue
                if _is_rebound(source, scope, value, node, place):
                    continue
                if _overlap(source, scope, value, held):
                    yield source.pattern("shared rows", place, f"{name} and {other}")


def _stem(name: str, *patterns: re.Pattern[str]) -> str:
    """Return a name without the word for its part: `x` of `x_train` and `val_x`."""
    for pattern in patterns:
        name = pattern.sub("_", name)
    return name.strip("_")


def _is_rebound(
    source: Source, scope: ast.AST, value: ast.Subscript, one: ast.stmt, other: ast.stmt
) -> bool:
    """Whether the table is another one between two slices: shuffled again, or cut."""
    name = dotted(value.value)
    if not name:
        return True
    low, high = sorted((one.lineno, other.lineno))
    return any(low < node.lineno < high for node in source.bindings(scope, name))


def _overlap(source: Source, scope: ast.AST, one: ast.Subscript, other: ast.Subscript) -> bool:
    """Whether two slices certainly share rows: equal, or with bounds that are known to cross."""
    if ast.unparse(one.slice) == ast.unparse(other.slice):
        return True
    assert isinstance(one.slice, ast.Slice) and isinstance(other.slice, ast.Slice)
    if one.slice.step is not None or other.slice.step is not None:
        return False
    if _SEQUENCES.search(source.code(source.tree)):
        return False  # a held-out part begins with the history of its first window
    first, second = (windows(source, scope, each) for each in (one, other))
    if len(first) != 1 or len(second) != 1:
        return _crosses(one.slice, other.slice) or _crosses(other.slice, one.slice)
    left, right = first[0], second[0]
    first_begins = not left.start or _is_before_or_same(left.start, right.start)
    return first_begins and _is_before(right.start, left.stop)


def _is_before(one: dict[str, int], other: dict[str, int]) -> bool:
    """Whether a bound is smaller than another one for certain."""
    gap = difference(one, other)
    return bool(gap) and at_most_zero(gap) and set(gap) == {""}


def _is_before_or_same(one: dict[str, int], other: dict[str, int]) -> bool:
    gap = difference(one, other)
    return not gap or (at_most_zero(gap) and set(gap) == {""})


def _crosses(one: ast.Slice, other: ast.Slice) -> bool:
    """Whether `[:900]` and `[800:]` share rows."""
    stop, start = one.upper, other.lower
    if one.lower is not None or stop is None or start is None:
        return False
    last, first = whole(stop), whole(start)
    return last is not None and first is not None and 0 <= first < last


@reads
def windows_at_random(source: Source) -> Iterator[Pattern]:
    """`random_split(Windows(series), ...)` of windows that overlap."""
    classes = {each.name: each for each in source.of(ast.ClassDef)}
    for call in source.of(ast.Call):
        if called(call) not in ("random_split", "train_test_split") or not call.args:
            continue
        if any(
            k.arg == "shuffle" and getattr(k.value, "value", None) is False for k in call.keywords
        ):
            continue
        data = resolved(source, source.scope(call), call.args[0])
        body = classes.get(called(data))
        if (body is not None and _has_dense_windows(source, body)) or _is_dense_list(data):
            yield source.pattern("windows at random", call, ast.unparse(call.args[0]))


def _has_dense_windows(source: Source, body: ast.ClassDef) -> bool:
    """Whether item `i` of a data set is a window that begins at row `i`."""
    for method in body.body:
        if isinstance(method, Function) and method.name == "__getitem__":
            place = method.args.args[-1].arg if len(method.args.args) == 2 else ""
            for node in source.walk(method):
                if isinstance(node, ast.Slice) and dotted(node.lower or node) == place:
                    upper = resolved(source, method, node.upper) if node.upper else None
                    if (
                        isinstance(upper, ast.BinOp)
                        and isinstance(upper.op, ast.Add)
                        and place in {dotted(each) for each in ast.walk(upper)}
                        and whole(upper.right) != 1
                    ):
                        return True
    return False


def _is_dense_list(data: ast.expr) -> bool:
    """Whether a list has a window for each row: `[s[i : i + n] for i in range(len(s) - n)]`."""
    for node in ast.walk(data):
        if not isinstance(node, ast.ListComp) or len(node.generators) != 1:
            continue
        loop = node.generators[0]
        if called(loop.iter) != "range" or len(getattr(loop.iter, "args", ())) > 2:
            continue
        for part in ast.walk(node.elt):
            if isinstance(part, ast.Slice) and part.upper is not None:
                bounds = ast.unparse(part.upper)
                if dotted(part.lower or part) == dotted(loop.target) and "+" in bounds:
                    return True
    return False


@reads
def groups_apart(source: Source) -> Iterator[Pattern]:
    """`slide_ids` that are read and never used, where rows are split at random."""
    for scope in source.scopes:
        for name, value, node in source.assigned(scope):
            is_person = re.search(r"id|patient|subject|speak|slide|build|custom|user|person", name)
            if (
                not _GROUP.match(name)
                or not is_person
                or not isinstance(value, ast.Call | ast.Subscript)
            ):
                continue
            used = any(
                each.id == name and isinstance(each.ctx, ast.Load) for each in source.of(ast.Name)
            )
            if used or not re.search(r"load|read|\[['\"]", ast.unparse(value)):
                continue
            for other in source.of(ast.Assign):
                if (
                    source.scope(other) is scope
                    and other.lineno > node.lineno
                    and _is_row_split(other)
                ):
                    yield source.pattern("groups at random", other, name)
                    break
    yield from _by_random_mask(source)


def _is_row_split(node: ast.Assign) -> bool:
    call = node.value
    if called(call) in ("train_test_split", "random_split"):
        return not _GROUPED.search(ast.unparse(call))
    return called(call) in ("permutation", "randperm") and "len(" in ast.unparse(call)


def _by_random_mask(source: Source) -> Iterator[Pattern]:
    """Yield masks of random rows where another part of the file makes folds by a group."""
    columns = {
        key.value
        for node in source.of(ast.Subscript)
        if isinstance(key := node.slice, ast.Constant)
        and isinstance(key.value, str)
        and _GROUP.match(key.value)
        and re.search(r"_id|_no|_key", key.value)
    }
    text = source.code(source.tree)
    folds = [each for each in columns if re.search(rf"\['{each}'\]\.unique\(\)", text)]
    if not folds:
        return
    for scope in source.scopes:
        if isinstance(scope, Function) and any(each in source.code(scope) for each in folds):
            continue
        for name, value, node in source.assigned(scope):
            if not isinstance(value, ast.Compare) or "len(" not in ast.unparse(value.left):
                continue
            if called(value.left) not in ("random", "rand", "uniform"):
                continue
            if (
                re.search(r"mask|val|held|test|train", name)
                and isinstance(scope, Function)
                and re.search(rf"\[~{name}\]", source.code(scope))
            ):
                yield source.pattern("groups at random", node, folds[0])
