"""Statistics and codes of each part by itself, or of all parts together."""

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from holter.scripts.reading.source.expressions import number, resolved
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.split_names import TEST, VALIDATION, is_training
from holter.scripts.reading.source.tree import (
    Function,
    Pattern,
    Source,
    called,
    dotted,
    parameters_of,
)

_TRAIN = re.compile(r"(^|_)(train|training|tr|trn|fit)(_|$|\d)", re.I)
_HELD = re.compile(
    r"(^|_)(val|vali|va|valid|validation|test|te|tst|dev|holdout|held_out|eval)(_|$|\d)", re.I
)
_JOINS = {"concat", "concatenate", "vstack", "cat", "row_stack"}
_CENTRES = {"mean", "median", "nanmean", "min", "amin"}
_SPREADS = {"std", "nanstd", "max", "amax", "var"}
_DISTINCT = {"set", "unique", "Counter", "drop_duplicates"}
_MEASURES = re.compile(r"metric|eval|score|auc|group|count|stat|fit|build|vocab|report|plot", re.I)
_SERVED = re.compile(r"TensorDataset|tensor\(|from_numpy|LongTensor|DataLoader|int64")
_CODES = {"factorize", "LabelEncoder", "OrdinalEncoder"}


class _Turn(NamedTuple):
    """A region of the source that runs once for each part, and the name of the part in it."""

    region: ast.AST
    name: str
    held: str


def _turns(source: Source) -> Iterator[_Turn]:
    """Yield `for part in (train, val, test)`, and functions called for several parts."""
    loops: list[ast.For | ast.comprehension] = [*source.of(ast.For), *source.of(ast.comprehension)]
    for loop in loops:
        if not isinstance(loop.iter, ast.Tuple | ast.List) or not isinstance(loop.target, ast.Name):
            continue
        region = source.parent(loop) if isinstance(loop, ast.comprehension) else loop
        held = _held_of([dotted(each).rpartition(".")[2] for each in loop.iter.elts])
        if held and region is not None:
            yield _Turn(region, loop.target.id, held)
    for function in source.of(*Function.__args__):
        if isinstance(source.parent(function), ast.ClassDef) or not parameters_of(function):
            continue
        given = [call.args[0] for call in source.of(ast.Call)
                 if called(call) == function.name and call.args]  # fmt: skip
        held = _held_of([dotted(each).rpartition(".")[2] for each in given])
        if held:
            yield _Turn(function, parameters_of(function)[0], held)


def _held_of(names: list[str]) -> str:
    held = [each for each in names if _HELD.search(each) and not _TRAIN.search(each)]
    trained = [each for each in names if _TRAIN.search(each) and not _HELD.search(each)]
    return held[0] if held and trained else ""


@reads
def scaled_apart(source: Source) -> Iterator[Pattern]:
    """`(x - x.mean(0)) / x.std(0)` for each part, or its own category codes."""
    for turn in _turns(source):
        made = _made_of(source, turn)
        for node in source.walk(turn.region):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
                left = node.left
                if not isinstance(left, ast.BinOp) or not isinstance(left.op, ast.Sub):
                    continue
                centre = _is_statistic(source, turn, left.right, made, _CENTRES)
                if centre and _is_statistic(source, turn, node.right, made, _SPREADS):
                    yield source.pattern("own statistics", node, turn.held)
                    break
            elif _is_coded(node, made) or _is_new_table(source, turn, node, made):
                yield source.pattern("refitted", node, turn.held)
                break
    for turn in _made_tables(source):
        made = _made_of(source, turn)
        for node in source.walk(turn.region):
            if _is_coded(node, made) or _is_new_table(source, turn, node, made):
                yield source.pattern("refitted", node, turn.held)
                break


def _made_tables(source: Source) -> Iterator[_Turn]:
    """Yield the constructors of data sets that are made of several parts."""
    for body in source.of(ast.ClassDef):
        for function in body.body:
            names = parameters_of(function)
            if getattr(function, "name", "") != "__init__" or len(names) < 2:
                continue
            given = [call.args[0] for call in source.of(ast.Call)
                     if called(call) == body.name and call.args]  # fmt: skip
            held = _held_of([dotted(each).rpartition(".")[2] for each in given])
            if held:
                yield _Turn(function, names[1], held)


def _is_new_table(source: Source, turn: _Turn, node: ast.AST, made: set[str]) -> bool:
    """Whether `{v: i for i, v in enumerate(sorted(set(part[c])))}` codes what a network reads."""
    if isinstance(node, ast.DictComp):
        loop = node.generators[0]
        target, over = loop.target, loop.iter
        if called(over) != "enumerate" or not isinstance(over, ast.Call) or not over.args:
            return False
        if not isinstance(target, ast.Tuple) or ast.unparse(node.key) != dotted(target.elts[-1]):
            return False
        values: ast.AST = _behind(source, turn, over.args[0])
        if not any(called(each) in _DISTINCT for each in ast.walk(values)):
            return False
    elif isinstance(node, ast.Call) and called(node) == "unique":
        options = [each.arg for each in node.keywords]
        if "return_inverse" not in options or isinstance(source.parent(node), ast.Expr):
            return False
        values = node
    elif isinstance(node, ast.Attribute) and node.attr == "codes":
        values = node.value
        if called(values) != "Categorical" or "categories" in ast.unparse(values):
            return False
    else:
        return False
    read = {each.id for each in ast.walk(values) if isinstance(each, ast.Name)}
    name = getattr(turn.region, "name", "")
    is_chosen = any(isinstance(each, ast.If | ast.IfExp) for each in source.above(node))
    return bool(
        read & made
        and not is_chosen
        and not _MEASURES.search(name)
        and (name == "__init__" or _SERVED.search(source.code(turn.region)))
    )


def _made_of(source: Source, turn: _Turn) -> set[str]:
    """Return the names that hold rows of the part in the region."""
    names = {turn.name}
    for _ in range(2):
        for node in source.walk(turn.region):
            if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
                continue
            read = {each.id for each in ast.walk(node.value) if isinstance(each, ast.Name)}
            if names & read:
                names.add(node.targets[0].id)
    return names


def _is_statistic(
    source: Source, turn: _Turn, node: ast.expr, made: set[str], kinds: set[str]
) -> bool:
    """Whether an expression is a statistic over the rows of the part: of columns, not of a row."""
    node = _behind(source, turn, node)
    while True:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
            node = _behind(source, turn, node.left)
        elif isinstance(node, ast.Call) and called(node) in ("replace", "clip", "clamp", "maximum"):
            inner = node.func.value if isinstance(node.func, ast.Attribute) else node
            node = _behind(source, turn, node.args[0] if dotted(inner) == "np" else inner)
        else:
            break
    if not isinstance(node, ast.Call) or called(node) not in kinds:
        return False
    owner = node.func.value if isinstance(node.func, ast.Attribute) else node
    is_function = dotted(owner) in ("np", "numpy", "torch")
    arguments = node.args[1:] if is_function else node.args
    of = node.args[0] if is_function and node.args else owner
    axes = [number(source, each) for each in arguments]
    axes += [number(source, each.value) for each in node.keywords if each.arg in ("axis", "dim")]
    is_frame = not axes and "fillna" in source.code(turn.region)
    names = {each.id for each in ast.walk(of) if isinstance(each, ast.Name)}
    return bool(names & made) and (axes == [0.0] or is_frame) and not _is_element(source, of)


def _is_element(source: Source, of: ast.expr) -> bool:
    """Whether a statistic is of one sample of the part: `for x in part`."""
    names = {each.id for each in ast.walk(of) if isinstance(each, ast.Name)}
    return (
        any(
            names & {each.id for each in ast.walk(loop.target) if isinstance(each, ast.Name)}
            for loop in source.of(ast.comprehension)
            if source.parent(loop) in [*source.above(of)]
        )
        and called(of) not in _JOINS
    )


def _behind(source: Source, turn: _Turn, node: ast.expr) -> ast.expr:
    """Return what the region assigns to a name, if it does so once."""
    if isinstance(node, ast.Name):
        scope = source.scope(node)
        found = [(value, at) for name, value, at in source.assigned(scope) if name == node.id]
        if len(found) == 1 and found[0][1] in source.walk(turn.region):
            return found[0][0]
    return node


def _is_coded(node: ast.AST, made: set[str]) -> bool:
    """Whether codes are made of the part itself: `part[k].astype("category").cat.codes`."""
    if isinstance(node, ast.Attribute) and node.attr == "codes":
        text = ast.unparse(node.value)
        is_own = text.endswith(".cat") and "astype('category')" in text
    elif isinstance(node, ast.Call) and called(node) == "factorize":
        is_own = True
    elif isinstance(node, ast.Call) and called(node) == "fit_transform":
        owner = node.func.value if isinstance(node.func, ast.Attribute) else node
        is_own = called(owner) in _CODES | {"StandardScaler", "MinMaxScaler", "OneHotEncoder"}
    else:
        return False
    names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    return is_own and bool(names & made)


@reads
def of_all_parts(source: Source) -> Iterator[Pattern]:
    """`everything = pd.concat([train, test])` whose mean scales both, or `Scaler().fit(df)`."""
    for node in source.of(ast.Assign):
        scope = source.scope(node)
        targets, values = node.targets[0], node.value
        pairs = [(targets, values)]
        if isinstance(targets, ast.Tuple) and isinstance(values, ast.Tuple):
            pairs = list(zip(targets.elts, values.elts, strict=False))
        for target, value in pairs:
            if not isinstance(target, ast.Name):
                continue
            call = value
            while isinstance(call, ast.Call) and called(call) in ("replace", "clip", "to_numpy"):
                call = call.func.value if isinstance(call.func, ast.Attribute) else call.args[0]
            if not isinstance(call, ast.Call) or called(call) not in _CENTRES | _SPREADS:
                continue
            if _joins(source, scope, call) and _scales(source, scope, target.id):
                yield source.pattern("fitted on held-out", node, target.id)
                break
    for fit in source.of(ast.Call):
        yield from _of_own_scaler(source, fit)


def _joins(source: Source, scope: ast.AST, node: ast.expr, depth: int = 0) -> bool:
    """Whether an expression is made of a table that joins training and held-out rows."""
    if re.search(r"adj|edge_index|GCN|graph", source.code(source.tree)):
        return False
    for each in ast.walk(node):
        if isinstance(each, ast.Call) and called(each) in _JOINS and each.args:
            names = [dotted(part).rpartition(".")[2] for part in ast.walk(each.args[0])]
            if _held_of(names):
                return True
        elif isinstance(each, ast.Name) and depth < 3:
            value = resolved(source, scope, each)
            if value is not each and _joins(source, scope, value, depth + 1):
                return True
    return False


def _scales(source: Source, scope: ast.AST, name: str) -> bool:
    """Whether a statistic is subtracted from rows, or divides them."""
    return any(
        isinstance(each.op, ast.Sub | ast.Div) and dotted(each.right) == name
        for each in source.walk(scope)
        if isinstance(each, ast.BinOp)
    )


def _of_own_scaler(source: Source, fit: ast.Call) -> Iterator[Pattern]:
    """Yield `Scaler().fit(df)` where `df` was split, and the parts are transformed."""
    if called(fit) not in ("fit", "fit_transform") or len(fit.args) != 1:
        return
    scope = source.scope(fit)
    owner = fit.func.value if isinstance(fit.func, ast.Attribute) else fit
    kind = called(resolved(source, scope, owner))
    is_own = any(
        body.name == kind and any(getattr(each, "name", "") == "transform" for each in body.body)
        for body in source.of(ast.ClassDef)
    )
    given = fit.args[0]
    while isinstance(given, ast.Subscript | ast.Attribute):
        given = given.value
    if not isinstance(given, ast.Name) or _TRAIN.search(given.id) or _HELD.search(given.id):
        return
    if not is_own and not re.search(r"Scaler$|Imputer$|PCA$|Transformer$", kind):
        return
    for node in source.of(ast.Assign):
        if source.scope(node) is not scope or not isinstance(node.targets[0], ast.Tuple):
            continue
        names = [dotted(each) for each in node.targets[0].elts]
        is_whole = isinstance(node.value, ast.Call) and any(
            dotted(each) == given.id for each in node.value.args
        )
        if is_whole and _held_of(names) and any(map(is_training, names)):
            transforms = any(called(each) in ("transform", "fit_transform")
                             for each in source.walk(scope))  # fmt: skip
            if transforms:
                yield source.pattern("scaled on all", fit, given.id)
                return


@reads
def own_statistics(source: Source) -> Iterator[Pattern]:
    """`def encode(frame): return (frame - frame.mean()) / frame.std()` for training and test."""
    for node in source.of(ast.BinOp):
        function = source.scope(node)
        if not isinstance(node.op, ast.Div) or not isinstance(function, Function):
            continue
        if not isinstance(node.left, ast.BinOp) or not isinstance(node.left.op, ast.Sub):
            continue
        whole = dotted(node.left.left)
        if not whole or not _is_own(source, function, node.left.right, whole, "mean"):
            continue
        if not _is_own(source, function, node.right, whole, "std"):
            continue
        name = function.name
        above = source.parent(function)
        if isinstance(above, ast.ClassDef):
            name = above.name if function.name == "__init__" else ""
        given = [
            ast.unparse(call.args[0])
            for call in source.of(ast.Call)
            if name and called(call) == name and call.args
        ]
        trained = [each for each in given if re.search(r"train|(^|_)tr(_|$|\b)", each, re.I)]
        held = [
            each
            for each in given
            if (VALIDATION.search(each) or TEST.search(each)) and each not in trained
        ]
        if trained and held:
            yield source.pattern("own statistics", node, held[0])


def _is_own(source: Source, function: Function, node: ast.expr, whole: str, kind: str) -> bool:
    """Whether an expression is a statistic over the rows of the very table: `x.mean(0)`."""
    node = resolved(source, function, node)
    while True:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            node = resolved(source, function, node.left)
        elif isinstance(node, ast.Call) and called(node) in ("replace", "clip", "clamp"):
            inner = node.func.value if isinstance(node.func, ast.Attribute) else node
            node = resolved(source, function, inner)
        else:
            break
    if called(node) != kind or not isinstance(node, ast.Call):
        return False
    of = dotted(node.func.value) if isinstance(node.func, ast.Attribute) else ""
    arguments = [*node.args, *(each.value for each in node.keywords if each.arg in ("axis", "dim"))]
    axes = [number(source, each) for each in arguments]
    is_frame = not node.args and not node.keywords and "fillna" in source.code(function)
    return of == whole and (axes == [0.0] or is_frame)
