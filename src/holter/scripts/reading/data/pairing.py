"""Inputs that are put into another order than what belongs to them."""

import ast
import re
from collections.abc import Iterator
from itertools import pairwise

from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Function, Pattern, Source, called, dotted, root_name

PARTS = re.compile(
    r"train|val(?![a-z])|valid|test|dev|pos|neg|positive|negative|normal|anomal|real|fake"
    r"|left|right|source|easy|hard", re.I
)  # fmt: skip
LABEL = re.compile(r"label|target|(^|[_.])(y|ys)($|_|\d)|class", re.I)
_JOINING = {"cat", "concatenate", "concat", "vstack", "hstack", "chain", "stack", "extend", "len"}
_ORDERS = {"randperm", "permutation"}
_TOGETHER = {"TensorDataset", "zip"}


@reads
def unpaired(source: Source) -> Iterator[Pattern]:
    """Tensors of one data set that are not shuffled by the same permutation."""
    for scope in source.scopes:
        assigned = list(source.assigned(scope))
        orders = {name for name, value, _ in assigned if called(value) in _ORDERS}
        if any(sum(other == name for other, *_ in assigned) > 1 for name in orders):
            continue  # drawn again: which one is meant depends on the order of statements
        shuffled: dict[str, tuple[str, ast.stmt]] = {}
        for name, value, statement in assigned:
            order = _order_of(value, orders)
            if order is None or not _is_of(value, name):
                continue
            shuffled[name] = (order, statement)
        if not shuffled:
            continue
        for node in source.walk(scope):
            if not isinstance(node, ast.Call) or called(node) not in _TOGETHER:
                continue
            names = [root_name(argument) for argument in node.args]
            used = [name for name in names if name in shuffled]
            if not used or any(not name for name in names):
                continue
            if min(shuffled[name][1].lineno for name in used) > node.lineno:
                continue
            orders_used = {shuffled[name][0] for name in used}
            if len(orders_used) > 1 or len(used) < len(names):
                last = max((shuffled[name][1] for name in used), key=lambda each: each.lineno)
                yield source.pattern("unpaired shuffle", last, ", ".join(names))


def _order_of(value: ast.expr, orders: set[str]) -> str | None:
    """Return which permutation an expression indexes by, or None."""
    if not isinstance(value, ast.Subscript):
        return None
    if isinstance(value.slice, ast.Name) and value.slice.id in orders:
        return value.slice.id
    if called(value.slice) in _ORDERS:
        return f"line {value.lineno} column {value.col_offset}"
    return None


def _is_of(value: ast.expr, name: str) -> bool:
    assert isinstance(value, ast.Subscript)
    return isinstance(value.value, ast.Name) and value.value.id == name


@reads
def apart(source: Source) -> Iterator[Pattern]:
    """`rng.shuffle(x)` and `rng.shuffle(y)`, or two permutations in one tuple."""
    for scope in source.scopes:
        shuffles = [
            node
            for node in source.walk(scope)
            if isinstance(node, ast.Expr)
            and called(node.value) == "shuffle"
            and source.scope(node) is scope
        ]
        for first, second in pairwise(shuffles):
            if source.parent(first) is source.parent(second) and _follow(source, first, second):
                yield source.pattern("unpaired shuffle", second, "shuffle")
    for node in source.of(ast.Tuple):
        drawn = [part for part in node.elts if isinstance(part, ast.Subscript)
                 and called(part.slice) in _ORDERS]  # fmt: skip
        if len(drawn) > 1:
            yield source.pattern("unpaired shuffle", node, ast.unparse(drawn[0].value))
    yield from _two_orders(source)


def _two_orders(source: Source) -> Iterator[Pattern]:
    """Yield `users, items = users[perm], items[torch.randperm(n)]`, also in two statements."""
    for scope in source.scopes:
        assigned = source.assigned(scope)
        orders = {name for name, value, _ in assigned if called(value) in _ORDERS
                  and source.stores(scope, name) == 1}  # fmt: skip
        found = [
            (name, value, order, statement)
            for name, value, statement in assigned
            if isinstance(value, ast.Subscript) and (order := _order_of(value, orders))
            and _is_of(value, name)
        ]  # fmt: skip
        for (a, one, first, before), (b, other, second, after) in pairwise(found):
            if first == second or a == b or source.parent(before) is not source.parent(after):
                continue
            if called(one.slice) in _ORDERS and called(other.slice) in _ORDERS and before is after:
                continue  # read as a tuple
            if _are_members(source, scope, a, b):
                yield source.pattern("unpaired shuffle", after, b)


def _are_members(source: Source, scope: ast.AST, a: str, b: str) -> bool:
    """Whether two tensors hold the members of pairs: a label, or columns of one table."""
    if {each.lower() for each in PARTS.findall(a)} != {each.lower() for each in PARTS.findall(b)}:
        return False
    columns = [
        {ast.unparse(value.value) for name, value, _ in source.assigned(scope)
         if name == each and isinstance(value, ast.Subscript) and not _is_of(value, each)
         and isinstance(value.slice, ast.Tuple | ast.Constant)}
        for each in (a, b)
    ]  # fmt: skip
    if columns[0] & columns[1]:
        return True
    return bool(LABEL.search(a)) != bool(LABEL.search(b)) or bool(
        re.search(r"user|query|question|image|img", a)
        and re.search(r"item|answer|capt|text|doc", b)
    )


def _follow(source: Source, first: ast.stmt, second: ast.stmt) -> bool:
    """Whether two shuffles of arrays follow each other directly, without a seed between them."""
    parent = source.parent(first)
    body = next(
        (block for block in (getattr(parent, "body", []), getattr(parent, "orelse", []))
         if first in block), [])  # fmt: skip
    if second not in body:
        return False
    between = body[body.index(first) + 1 : body.index(second)]
    a, b = (_shuffled(each) for each in (first, second))
    if between or a == b or not a or not b:
        return False
    if {each.lower() for each in PARTS.findall(a)} != {each.lower() for each in PARTS.findall(b)}:
        return False  # two splits, or samples of two kinds
    return any(LABEL.search(each) for each in (a, b)) or _are_together(source, second, a, b)


def _are_together(source: Source, after: ast.stmt, a: str, b: str) -> bool:
    """Whether two arrays are given to one call, or are parts of one tuple, after a statement."""
    for node in source.walk(source.scope(after)):
        if getattr(node, "lineno", 0) <= after.lineno:
            continue
        parts: list[ast.expr] = []
        if isinstance(node, ast.Tuple) and called(source.parent(node) or node) not in _JOINING:
            parts = node.elts
        elif isinstance(node, ast.Call) and called(node) not in _JOINING:
            parts = [*node.args, *(each.value for each in node.keywords)]
        held = [{ast.unparse(each) for each in source.walk(part)
                 if isinstance(each, ast.Name | ast.Attribute)} for part in parts]  # fmt: skip
        if any(a in one and b not in one for one in held) and any(
            b in one and a not in one for one in held
        ):
            return True
    return False


def _shuffled(statement: ast.stmt) -> str:
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or len(call.args) != 1:
        return ""
    return ast.unparse(call.args[0])


@reads
def sorted_alone(source: Source) -> Iterator[Pattern]:
    """A collate function that sorts one part of the batch by length, and not the other."""
    for function in source.of(*Function.__args__):
        given = {argument.arg for argument in function.args.args} - {"self"}
        parts = [
            (name, value, statement)
            for name, value, statement in source.assigned(function)
            if _part_of(value, given)
        ]
        by_length = [each for each in parts if _is_sorted(each[1])]
        others = [each for each in parts if not _is_sorted(each[1])]
        sources = {_part_of(value, given) for _, value, _ in by_length}
        again = {_part_of(value, given) for _, value, _ in others}
        returned = [node.value for node in source.walk(function)
                    if isinstance(node, ast.Return) and node.value]  # fmt: skip
        again |= {_batch_of(each, given) for value in returned for each in ast.walk(value)
                  if isinstance(each, ast.expr)} - {""}  # fmt: skip
        if len(by_length) == 1 and sources & again:
            yield source.pattern("sorted alone", by_length[0][2], by_length[0][0])
        elif not by_length:
            yield from _sorted_in_place(source, function, given)


def _sorted_in_place(source: Source, function: Function, given: set[str]) -> Iterator[Pattern]:
    """Yield `seqs.sort(key=len)` of one part of a batch whose other parts keep their order."""
    every = list(source.assigned(function))
    whole_batch = {_batch_of(value, given) for _, value, _ in every} - {""}
    for statement in source.walk(function):
        call = statement.value if isinstance(statement, ast.Expr) else None
        if called(call or function) != "sort" or not isinstance(call, ast.Call):
            continue
        name = dotted(call.func).rpartition(".")[0]
        if not _sorts_by_length(call) or not name or name in given:
            continue
        parts = [(other, _batch_of(value, given)) for other, value, _ in every]
        own = {batch for other, batch in parts if other == name and batch}
        returned = [node.value for node in source.walk(function)
                    if isinstance(node, ast.Return | ast.Yield) and node.value]  # fmt: skip
        beside = {_batch_of(each, given) for value in returned for each in ast.walk(value)
                  if isinstance(each, ast.expr)} - {""}  # fmt: skip
        beside |= {_batch_of(each, given) for other, value, _ in every if other != name
                   for each in ast.walk(value) if isinstance(each, ast.expr)} - {""}  # fmt: skip
        if own and own & beside and own <= whole_batch:
            yield source.pattern("sorted alone", call, name)


def _batch_of(value: ast.expr, given: set[str]) -> str:
    """Return the argument of whose elements a list takes one part: `[f(x) for x, _ in batch]`."""
    if not isinstance(value, ast.ListComp | ast.GeneratorExp) or len(value.generators) != 1:
        return ""
    over, target = value.generators[0].iter, value.generators[0].target
    is_part = isinstance(target, ast.Tuple) or isinstance(value.elt, ast.Subscript)
    return over.id if isinstance(over, ast.Name) and over.id in given and is_part else ""


def _sorts_by_length(call: ast.Call) -> bool:
    return any(each.arg == "key" and re.search(r"\blen\b", ast.unparse(each.value))
               for each in call.keywords)  # fmt: skip


def _is_sorted(value: ast.expr) -> bool:
    return (
        called(value) == "sorted"
        and isinstance(value, ast.Call)
        and any(
            keyword.arg == "key" and ast.unparse(keyword.value) == "len"
            for keyword in value.keywords
        )
    )


def _part_of(value: ast.expr, given: set[str]) -> str:
    """Return the argument of which an expression takes one part of each element, or ""."""
    if isinstance(value, ast.Call) and value.args:
        return _part_of(value.args[0], given)
    if isinstance(value, ast.ListComp | ast.GeneratorExp) and len(value.generators) == 1:
        over = value.generators[0].iter
        if isinstance(over, ast.Name) and over.id in given and not isinstance(value.elt, ast.Name):
            return over.id
        target = value.generators[0].target
        if isinstance(over, ast.Name) and over.id in given and isinstance(target, ast.Tuple):
            return over.id
    return ""
