"""Features that are means of the target over groups, with the row's own target among them."""

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from holter.scripts.reading.source.expressions import resolved
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.split_names import is_held_out
from holter.scripts.reading.source.tree import (
    Function,
    Pattern,
    Source,
    called,
    dotted,
    parameters_of,
    statement_around,
)
from holter.scripts.reading.splits.target_columns import is_target, strings_of

_MEANS = {"mean", "sum", "median"}
_OWN = re.compile(r"- ?1\b|shift\(|expanding|cumsum|cumcount|leave|loo\b|fold", re.I)


class _Table(NamedTuple):
    """What is known of a table of group means: its keys, its target and where it is looked up."""

    node: ast.AST
    keys: ast.expr
    target: ast.expr
    query: ast.expr


@reads
def own_target(source: Source) -> Iterator[Pattern]:
    """`rate = np.bincount(city, weights=y) / np.bincount(city)` and a feature `rate[city]`."""
    for table in _tables(source):
        scope = source.scope(table.node)
        if is_target(source, table.target) and _is_within(source, scope, table.query, table.keys):
            yield source.pattern("own target", table.node, ast.unparse(table.target))


def _sums(source: Source) -> Iterator[tuple[ast.Call, str, ast.expr, ast.expr]]:
    """Yield sums over groups: the call, the name of the sums, the keys, and what is added up."""
    for call in source.of(ast.Call):
        weights = [each.value for each in call.keywords if each.arg == "weights"]
        if called(call) == "bincount" and weights and call.args:
            yield call, _assigned_to(source, call), call.args[0], weights[0]
        elif dotted(call.func) in ("np.add.at", "numpy.add.at") and len(call.args) == 3:
            yield call, dotted(call.args[0]), call.args[1], call.args[2]
        elif called(call) in ("index_add_", "scatter_add_") and len(call.args) == 3:
            owner = call.func.value if isinstance(call.func, ast.Attribute) else call.func
            name = dotted(owner) or _assigned_to(source, call)
            yield call, name, call.args[1], call.args[2]


def _tables(source: Source) -> Iterator[_Table]:
    """Yield the tables of sums by `bincount` or `np.add.at`, and what they are looked up with."""
    for call, name, keys, target in _sums(source):
        scope = source.scope(call)
        looked_up = list(_lookups(source, scope, name))
        if isinstance(scope, Function):
            if _OWN.search(scope.name) or _subtracts(scope, target):
                continue
            yield from _by_calls(source, scope, keys, target, looked_up)
        for query in looked_up:
            statement = statement_around(source, query)
            if isinstance(query, ast.Name) and query.id in parameters_of(scope):
                continue
            if not _subtracts(statement, target):
                yield _Table(statement, keys, target, query)


@reads
def looked_up_means(source: Source) -> Iterator[Pattern]:
    """`m = {c: y[city == c].mean() for c in cities}` and `[m[c] for c in city]`."""
    for scope in source.scopes:
        for name, value, _ in source.assigned(scope):
            if not isinstance(value, ast.DictComp) or called(value.value) not in _MEANS:
                continue
            owner = getattr(getattr(value.value, "func", None), "value", None)
            if not isinstance(owner, ast.Subscript) or not isinstance(owner.slice, ast.Compare):
                continue
            if not is_target(source, owner.value):
                continue
            keys = ast.unparse(owner.slice.left)
            for node in source.of(ast.ListComp):
                loop = node.generators[0]
                is_table = isinstance(node.elt, ast.Subscript) and dotted(node.elt.value) == name
                if source.scope(node) is scope and is_table and ast.unparse(loop.iter) == keys:
                    yield source.pattern("own target", node, ast.unparse(owner.value))


def _assigned_to(source: Source, call: ast.Call) -> str:
    for node in source.above(call):
        if isinstance(node, ast.Assign):
            return dotted(node.targets[0])
    return ""


def _lookups(source: Source, scope: ast.AST, name: str) -> Iterator[ast.expr]:
    """Yield what the mean is indexed with, directly or as a name that is made of the sums."""
    names = {name} - {""}
    for _ in range(2):
        for other, value, _ in source.assigned(scope):
            made_of = {
                each.id
                for each in ast.walk(value)
                if isinstance(each, ast.Name) and not isinstance(source.parent(each), ast.Subscript)
            }
            if made_of & names and any(isinstance(each, ast.Div) for each in ast.walk(value)):
                names.add(other)
    for node in source.of(ast.Subscript):
        if source.scope(node) is not scope or not isinstance(node.ctx, ast.Load):
            continue
        inside = {each.id for each in ast.walk(node.value) if isinstance(each, ast.Name)}
        if inside & names and isinstance(node.slice, ast.Name | ast.Subscript | ast.Attribute):
            yield node.slice


def _subtracts(node: ast.AST, target: ast.expr) -> bool:
    """Whether the own target, or one of the count, is taken away: `(total[k] - y) / (n - 1)`."""
    text = ast.unparse(target)
    for each in ast.walk(node):
        if isinstance(each, ast.BinOp) and isinstance(each.op, ast.Sub):
            right = ast.unparse(each.right)
            is_table = any(isinstance(part, ast.Subscript) for part in ast.walk(each.left))
            if right.startswith(text) or text.startswith(right) or (right == "1" and is_table):
                return True
    return False


def _by_calls(
    source: Source, scope: Function, keys: ast.expr, target: ast.expr, queries: list[ast.expr]
) -> Iterator[_Table]:
    """Yield the tables of a helper as its calls make them: `rates(city, y, city)`."""
    names = parameters_of(scope)
    places = [
        names.index(each.id) if isinstance(each, ast.Name) and each.id in names else -1
        for each in (keys, target)
    ]
    if min(places) < 0:
        return
    for call in source.of(ast.Call):
        if called(call) != scope.name or source.scope(call) is scope:
            continue
        given: dict[str, ast.expr] = dict(zip(names, call.args, strict=False))
        given |= {each.arg: each.value for each in call.keywords if each.arg}
        by, of = given.get(names[places[0]]), given.get(names[places[1]])
        if by is None or of is None:
            continue
        asked = [
            given[each.id] for each in queries if isinstance(each, ast.Name) and each.id in given
        ]
        above = source.parent(call)
        if isinstance(above, ast.Subscript) and above.value is call:
            asked.append(above.slice)
        statement = statement_around(source, call)
        if not _subtracts(statement, of):
            yield from (_Table(statement, by, of, each) for each in asked)


def _is_within(source: Source, scope: ast.AST, query: ast.expr, keys: ast.expr) -> bool:
    """Whether the rows of a lookup are among the rows that the table is made of."""
    if ast.unparse(query) == ast.unparse(keys):
        return True
    if not isinstance(keys, ast.Subscript) or (
        strings_of(keys.slice) and not _is_all(source, scope, keys)
    ):
        return False
    if _is_all(source, scope, keys) and ast.unparse(query) == ast.unparse(keys.value):
        return True
    if not isinstance(query, ast.Subscript):
        return False
    if ast.unparse(query.value) != ast.unparse(keys.value):
        return False
    rows = _part_of(source, scope, query.slice)
    return rows is not None and ast.unparse(rows) == ast.unparse(keys.slice)


def _is_all(source: Source, scope: ast.AST, keys: ast.Subscript) -> bool:
    """Whether a mask chooses every row: `known = np.ones(len(y), dtype=bool)`."""
    mask = resolved(source, scope, keys.slice)
    is_mask = any("bool" in ast.unparse(each) for each in getattr(mask, "keywords", ()))
    whole = called(mask) in ("ones", "ones_like") and is_mask
    return whole or ast.unparse(mask) in (":", "slice(None)")


def _part_of(source: Source, scope: ast.AST, rows: ast.expr) -> ast.expr | None:
    """Return what an index is a part of: `tr` of `tr[b]`, or of `hold = tr[fold == f]`."""
    if isinstance(rows, ast.Name):
        values = [value for name, value, _ in source.assigned(scope) if name == rows.id]
        rows = values[0] if len(values) == 1 else rows
    return rows.value if isinstance(rows, ast.Subscript) else None


@reads
def grouped_target(source: Source) -> Iterator[Pattern]:
    """`df["m"] = df.groupby("city")["target"].transform("mean")`, or `df["city"].map(means)`."""
    for node in source.of(ast.Assign):
        target = node.targets[0]
        if not isinstance(target, ast.Subscript) or not isinstance(node.value, ast.Call):
            continue
        column, frame = strings_of(target.slice), ast.unparse(target.value)
        if not column or is_target(source, target.slice) or _OWN.search(ast.unparse(node.value)):
            continue
        call: ast.Call | None = node.value
        while call is not None and called(call) in ("fillna", "astype", "to_numpy", "round"):
            inner = call.func.value if isinstance(call.func, ast.Attribute) else None
            call = inner if isinstance(inner, ast.Call) else None
        if call is None:
            continue
        found = _grouping(source, source.scope(node), call)
        if found is None:
            continue
        frames, values = found
        if (
            (frame in frames or _is_turn(source, node, frame, frames))
            and values
            and any(is_target(source, each) for each in values)
            and not _is_later_corrected(source, next(iter(column)))
        ):
            yield source.pattern("own target", node, next(iter(column)))


def _is_turn(source: Source, node: ast.Assign, frame: str, frames: set[str]) -> bool:
    """Whether a frame is each of those that the means are of in turn, held-out ones included."""
    return any(
        isinstance(loop, ast.For)
        and dotted(loop.target) == frame
        and isinstance(loop.iter, ast.Tuple | ast.List)
        and any(dotted(each) in frames and is_held_out(dotted(each)) for each in loop.iter.elts)
        for loop in source.above(node)
    )


def _grouping(
    source: Source, scope: ast.AST, call: ast.Call
) -> tuple[set[str], list[ast.expr]] | None:
    """Return the frames that means are taken over, and the values that they are of."""
    if called(call) == "transform" and call.args:
        if getattr(call.args[0], "value", "") not in _MEANS:
            return None
        return _of_groups(source, scope, call.func)
    if called(call) == "map" and call.args:
        means = resolved(source, scope, call.args[0])
        if isinstance(means, ast.Call) and called(means) == "to_dict":
            means = getattr(means.func, "value", means)
        if called(means) in _MEANS and isinstance(means, ast.Call):
            return _of_groups(source, scope, means.func)
    return None


def _of_groups(
    source: Source, scope: ast.AST, func: ast.expr
) -> tuple[set[str], list[ast.expr]] | None:
    """Read `frame.groupby(k)[t]` or `frame[t].groupby(frame[k])` before a mean."""
    inner = func.value if isinstance(func, ast.Attribute) else None
    values: list[ast.expr] = []
    if isinstance(inner, ast.Subscript):
        values, inner = [inner.slice], inner.value
    if called(inner or func) != "groupby" or not isinstance(inner, ast.Call):
        return None
    owner = resolved(source, scope, getattr(inner.func, "value", inner))
    if not values:
        values = [owner]
    names = {each.id for each in ast.walk(owner) if isinstance(each, ast.Name)}
    for name in tuple(names):
        whole = resolved(source, scope, ast.Name(name, ast.Load()))
        if called(whole) == "concat":
            names |= {each.id for each in ast.walk(whole) if isinstance(each, ast.Name)}
    return names, values


def _is_later_corrected(source: Source, column: str) -> bool:
    """Whether the column is no feature: it is taken away from the target, or only printed."""
    for other in source.of(ast.BinOp):
        if isinstance(other.op, ast.Sub) and column in {
            each.value for each in ast.walk(other.right) if isinstance(each, ast.Constant)
        }:
            return True
    return False


@reads
def counted_first(source: Source) -> Iterator[Pattern]:
    """A loop that adds `total[r["user"]] += r["stars"]`, and a second one that reads the means."""
    for loop in source.of(ast.For):
        if not isinstance(loop.target, ast.Name):
            continue
        sums = [
            each
            for each in loop.body
            if isinstance(each, ast.AugAssign)
            and isinstance(each.op, ast.Add)
            and isinstance(each.target, ast.Subscript)
            and _is_of_row(each.value, loop.target.id)
            and is_target(source, each.value)
        ]
        block = _body(source, loop)
        later = (
            [
                each
                for each in block[block.index(loop) + 1 :]
                if isinstance(each, ast.For)
                and ast.unparse(each.iter) == ast.unparse(loop.iter)
                and isinstance(each.target, ast.Name)
            ]
            if loop in block
            else []
        )
        for counted in sums:
            assert isinstance(counted.target, ast.Subscript)
            table = ast.unparse(counted.target.value)
            for other in later:
                assert isinstance(other.target, ast.Name)
                yield from _read(source, other, table, counted)


def _body(source: Source, node: ast.stmt) -> list[ast.stmt]:
    above = source.parent(node)
    return list(getattr(above, "body", []))


def _is_of_row(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Subscript | ast.Attribute) and dotted(node.value) == name


def _read(source: Source, loop: ast.For, table: str, counted: ast.AugAssign) -> Iterator[Pattern]:
    """Yield the statement of a loop that makes a feature of the means of a table."""
    if _subtracts(loop, counted.value):
        return
    for node in source.walk(loop):
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Subscript):
            continue
        divided = [
            each
            for each in ast.walk(node.value)
            if isinstance(each, ast.BinOp) and isinstance(each.op, ast.Div)
        ]
        reads = any(
            isinstance(part, ast.Subscript) and ast.unparse(part.value) == table
            for each in divided
            for part in ast.walk(each.left)
        )
        is_of_row = ast.unparse(node.targets[0].value) == dotted(loop.target)
        if reads and is_of_row and strings_of(node.targets[0].slice):
            yield source.pattern("own target", node, ast.unparse(counted.value))
