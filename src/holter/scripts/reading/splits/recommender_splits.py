"""Held-out rows of recommenders and rankings: which are held out, masked, drawn and trained on."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.expressions import resolved
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.split_names import TEST, VALIDATION
from holter.scripts.reading.source.tree import Pattern, Source, called, dotted, parameters_of

_TRAIN = re.compile(r"(^|_)(train|training|tr|trn)(_|$|\d)", re.I)
_HELD = re.compile(f"{TEST.pattern}|{VALIDATION.pattern}", re.I)
_FIGURES = re.compile(r"eval|rank|metric|recall|ndcg|hit|test|valid", re.I)
_SAMPLES = re.compile(r"neg", re.I)
_TIME = re.compile(r"time|date|stamp|(^|_)ts$|order|position|step", re.I)


def _held_in(source: Source, node: ast.expr) -> set[str]:
    """Return the held-out tables that an argument was made of: `seen_matrix([train, val])`."""
    value = resolved(source, source.scope(node), node)
    if not isinstance(value, ast.Call):
        return set()
    names = {each.id for each in ast.walk(value) if isinstance(each, ast.Name)}
    trained = any(_TRAIN.search(each) for each in names)
    return {each for each in names if _HELD.search(each)} if trained else set()


@reads
def masked_targets(source: Source) -> Iterator[Pattern]:
    """`evaluate(model, val, seen_of_train_and_val)` that hides the items to be found."""
    for call in source.of(ast.Call):
        functions = [each for each in source.of(ast.FunctionDef) if each.name == called(call)]
        if len(functions) != 1 or not _FIGURES.search(called(call)):
            continue
        names = {dotted(each) for each in call.args}
        for place, given in enumerate(call.args):
            hidden = names & _held_in(source, given) if isinstance(given, ast.Name) else set()
            parameters = parameters_of(functions[0])
            if hidden and place < len(parameters) and _hides(source, functions[0]):
                yield source.pattern("target hidden", call, min(hidden))
                break


def _hides(source: Source, function: ast.FunctionDef) -> bool:
    """Whether a function sets scores to minus infinity before it reads those of the targets."""
    fills, reads = [], []
    for node in source.walk(function):
        if isinstance(node, ast.Call) and called(node) in ("masked_fill", "masked_fill_", "where"):
            fills.append(node.lineno)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            if "inf" in ast.unparse(node.value) or "-1e" in ast.unparse(node.value):
                fills.append(node.lineno)
            else:
                return False  # the target's score may be put back
        elif isinstance(node, ast.Call) and called(node) in ("gather", "take_along_axis", "topk"):
            reads.append(node.lineno)
    return bool(fills) and bool(reads) and min(reads) >= min(fills)


@reads
def knowing_negatives(source: Source) -> Iterator[Pattern]:
    """`sample_negatives(users, n, seen_all)` that never draws an item of the test rows."""
    for call in source.of(ast.Call):
        if not _SAMPLES.search(called(call)) or called(call) not in source.defined:
            continue
        loops = [each for each in source.above(call) if isinstance(each, ast.For)]
        if not any(called(each) == "backward" for loop in loops for each in source.walk(loop)):
            continue
        for given in call.args:
            held = _held_in(source, given) if isinstance(given, ast.Name) else set()
            if any(map(TEST.search, held)):
                yield source.pattern("negatives know the test", call, dotted(given))


@reads
def trained_on_all(source: Source) -> Iterator[Pattern]:
    """`train, val = split(df)` and then `users = df["user"].to_numpy()` that is trained on."""
    for split in source.of(ast.Assign):
        if not isinstance(split.targets[0], ast.Tuple) or not isinstance(split.value, ast.Call):
            continue
        names = [dotted(each) for each in split.targets[0].elts]
        if not any(map(_TRAIN.search, names)) or not any(map(_HELD.search, names)):
            continue
        scope = source.scope(split)
        wholes = {each.id for each in split.value.args if isinstance(each, ast.Name)} - set(names)
        for name, value, node in source.assigned(scope):
            if node.lineno <= split.lineno or _HELD.search(name):
                continue
            whole = _column_of(value)
            rebound = [each for each in source.bindings(scope, whole)
                       if each.lineno >= split.lineno] if whole in wholes else [split]  # fmt: skip
            if not rebound and _is_trained_on(source, scope, name):
                yield source.pattern("trained on all rows", node, whole)
                break


def _column_of(value: ast.expr) -> str:
    """Return the frame of `df["user"].to_numpy(np.int64)`, `torch.tensor(df["y"].values)`."""
    while isinstance(value, ast.Call):
        if called(value) in ("tensor", "as_tensor", "from_numpy", "LongTensor") and value.args:
            value = value.args[0]
        elif called(value) in ("to_numpy", "astype", "long", "float"):
            value = value.func.value if isinstance(value.func, ast.Attribute) else ast.Name("")
        else:
            return ""
    if isinstance(value, ast.Attribute) and value.attr == "values":
        value = value.value
    return dotted(value.value) if isinstance(value, ast.Subscript) else ""


def _is_trained_on(source: Source, scope: ast.AST, name: str) -> bool:
    """Whether rows are taken of a name by a batch of indices, in a loop that trains."""
    return any(
        isinstance(each, ast.Subscript) and dotted(each.value) == name
        and not _TRAIN.search(ast.unparse(each.slice))
        for loop in source.walk(scope)
        if isinstance(loop, ast.For)
        and {"backward", "step"} <= {called(call) for call in source.walk(loop)}
        for each in source.walk(loop)
    )  # fmt: skip


@reads
def first_held_out(source: Source) -> Iterator[Pattern]:
    """`n = df.groupby("user").cumcount()` and `df[n >= 2], df[n == 1], df[n == 0]`."""
    for scope in source.scopes:
        for name, value, node in source.assigned(scope):
            if called(value) != "cumcount" or not isinstance(value, ast.Call):
                continue
            if value.args or any(each.arg == "ascending" and getattr(
                    each.value, "value", True) is not True for each in value.keywords):  # fmt: skip
                continue
            tests = {
                (type(each.ops[0]), getattr(each.comparators[0], "value", None))
                for each in source.walk(scope)
                if isinstance(each, ast.Compare) and dotted(each.left) == name
            }
            is_first = (ast.Eq, 0) in tests and (
                (ast.GtE, 1) in tests or (ast.GtE, 2) in tests or (ast.Gt, 0) in tests
                or (ast.Gt, 1) in tests
            )  # fmt: skip
            sorts = [call for call in source.of(ast.Call) if called(call) == "sort_values"]
            by_time = [call for call in sorts if _TIME.search(ast.unparse(call))]
            falling = any("ascending=" in ast.unparse(call) for call in sorts)
            if is_first and by_time and not falling:
                yield source.pattern("first held out", node, name)


@reads
def sorted_otherwise(source: Source) -> Iterator[Pattern]:
    """`df.sort_values(["user", "item"])` before the last row of each user is held out."""
    text = source.code(source.tree)
    if not re.search(r"cumcount\(|\.tail\(1\)|nth\(-1\)|leave_(one|last)", text):
        return
    columns = {
        each.value
        for node in source.of(ast.List)
        for each in node.elts
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    }
    times = {each for each in columns if re.search(r"^(time|timestamp|date|ts)$|_at$", each, re.I)}
    sorts = [call for call in source.of(ast.Call) if called(call) == "sort_values"]
    if len(times) != 1 or not sorts or len(re.findall(rf"['\"]{min(times)}['\"]", text)) != 1:
        return
    for call in sorts:
        if re.search(r"user|customer|session", ast.unparse(call), re.I) and call.args:
            yield source.pattern("sorted without time", call, min(times))


@reads
def other_order(source: Source) -> Iterator[Pattern]:
    """`idx = order[s : s + b]` and `users[idx], items[s : s + b]` in one step."""
    for scope in source.scopes:
        for name, value, node in source.assigned(scope):
            if not isinstance(value, ast.Subscript) or not isinstance(value.slice, ast.Slice):
                continue
            order, cut = dotted(value.value), ast.unparse(value.slice)
            made = resolved(source, scope, value.value)
            if not re.search(r"perm(utation)?\b|randperm|shuffle", ast.unparse(made)):
                continue
            loop = next((each for each in source.above(node) if isinstance(each, ast.For)), None)
            if loop is None:
                continue
            parts = [each for each in source.walk(loop) if isinstance(each, ast.Subscript)
                     and isinstance(each.ctx, ast.Load)]  # fmt: skip
            by_index = {dotted(each.value) for each in parts if dotted(each.slice) == name}
            for each in parts:
                whole = dotted(each.value)
                if ast.unparse(each.slice) != cut or whole in by_index | {order, ""}:
                    continue
                values = [ast.unparse(made) for other, made, _ in source.assigned(scope)
                          if other == whole]  # fmt: skip
                if by_index and not any(order in text or "rand" in text for text in values):
                    yield source.pattern("unpaired batch", each, whole)
