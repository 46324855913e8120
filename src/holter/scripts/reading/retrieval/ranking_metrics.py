"""Ranks, discounts and ideal orders of ranking metrics."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.expressions import argument, number, resolved, tensor_of
from holter.scripts.reading.source.origins import Frame, origins
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import (
    Function,
    Pattern,
    Source,
    called,
    dotted,
    parameters_of,
)

_LOGS = {"log2", "log", "log1p"}
_METRIC = re.compile(
    r"ndcg|dcg|recall|precision|hit|(^|_)hr(_|$)|mrr|(^|_)map(_|$)|average_precision|rank", re.I
)
_SCORES = re.compile(
    r"(^|_)(scores?|sims?|similarit\w*|logits?|preds?|probs?|relevance)(_|$)", re.I
)
_DISTANCE = re.compile(r"cdist|distance|\bdists?\b|\.norm\(|energy")
_IDEAL = re.compile(r"ideal|idcg|best_dcg|max_dcg", re.I)
_SAME = {"float", "double", "to", "long", "astype", "cpu", "numpy", "item", "int", "half"}
_OWN = {"gather", "take_along_dim", "take_along_axis", "diag", "diagonal"}


@reads
def undivided_top(source: Source) -> Iterator[Pattern]:
    """`1 / torch.log2(torch.arange(k) + 1)`: the first place divides by log2(1), which is 0."""
    for call in source.of(ast.Call):
        if called(call) not in _LOGS or not call.args or not _is_divisor(source, call):
            continue
        given = resolved(source, source.scope(call), call.args[0])
        base, offset = given, 1.0 if called(call) == "log1p" else 0.0
        while isinstance(base, ast.BinOp) and isinstance(base.op, ast.Add):
            sides = ((base.left, base.right), (base.right, base.left))
            for one, other in sides:
                value = number(source, other) if isinstance(other, ast.Constant) else None
                if value is not None:
                    base, offset = resolved(source, source.scope(call), one), offset + value
                    break
            else:
                break
        if offset == 1 and _from_zero(source, base):
            yield source.pattern("discount from one", call, ast.unparse(call)[:60])


def _is_divisor(source: Source, call: ast.Call) -> bool:
    """Whether a logarithm is divided by, itself or by its name."""
    node: ast.AST = call
    for above in source.above(call):
        if isinstance(above, ast.BinOp) and isinstance(above.op, ast.Div):
            return above.right is node
        if isinstance(above, ast.BinOp) or (
            isinstance(above, ast.Call) and called(above) in ("maximum", "clamp", "where", "max")
        ):
            return False
        if isinstance(above, ast.Call) and called(above) == "reciprocal":
            return True
        if isinstance(above, ast.Assign):
            name = dotted(above.targets[0])
            scope = source.scope(call)
            return any(
                isinstance(each.op, ast.Div) and dotted(each.right) == name
                for each in source.of(ast.BinOp)
                if name and source.scope(each) is scope
            )
        if isinstance(above, ast.stmt):
            return False
        node = above
    return False


def _from_zero(source: Source, node: ast.expr) -> bool:
    """Whether places are counted from 0: `arange(k)`, `enumerate(x)`, or a count of better ones."""
    while isinstance(node, ast.Call) and called(node) in _SAME and isinstance(
        node.func, ast.Attribute
    ) and dotted(node.func.value) not in ("np", "torch"):  # fmt: skip
        node = resolved(source, source.scope(node), node.func.value)
    if isinstance(node, ast.Call) and called(node) == "arange":
        starts = [each for each in node.keywords if each.arg == "start"]
        if starts:
            return False
        return len(node.args) == 1 or number(source, node.args[0]) == 0
    if isinstance(node, ast.Call) and called(node) in ("sum", "count_nonzero"):
        counted = tensor_of(node)
        while isinstance(counted, ast.Call) and called(counted) in _SAME:
            counted = tensor_of(counted)
        return (
            isinstance(counted, ast.Compare)
            and isinstance(counted.ops[0], ast.Gt | ast.Lt)
            and not any(isinstance(each, ast.Constant) for each in counted.comparators)
        )
    if isinstance(node, ast.Call) and called(node) == "index" and len(node.args) == 1:
        return isinstance(node.func, ast.Attribute)
    if not isinstance(node, ast.Name):
        return False
    loops: list[ast.For | ast.comprehension] = [*source.of(ast.For), *source.of(ast.comprehension)]
    for loop in loops:
        over, target = loop.iter, loop.target
        at = source.parent(loop) if isinstance(loop, ast.comprehension) else loop
        if at is None or at not in source.above(node):
            continue
        if isinstance(target, ast.Tuple) and dotted(target.elts[0]) == node.id:
            starts_at_zero = isinstance(over, ast.Call) and (
                len(over.args) == 1 and not over.keywords
            )
            return called(over) == "enumerate" and starts_at_zero
        if dotted(target) == node.id and isinstance(over, ast.Call):
            return called(over) == "range" and (
                len(over.args) == 1 or number(source, over.args[0]) == 0
            )
    return False


@reads
def counted_worse(source: Source) -> Iterator[Pattern]:
    """`rank = (scores < own).sum(1)`: the items that are worse than the target."""
    if _DISTANCE.search(source.code(source.tree)):
        return
    for compare in source.of(ast.Compare):
        if not isinstance(compare.ops[0], ast.Lt | ast.Gt | ast.LtE | ast.GtE):
            continue
        name = _rank_name(source, compare)
        if not name or len(compare.ops) > 1:
            continue
        less = isinstance(compare.ops[0], ast.Lt | ast.LtE)
        smaller, larger = compare.left, compare.comparators[0]
        if not less:
            smaller, larger = larger, smaller
        own = resolved(source, source.scope(compare), larger)
        while isinstance(own, ast.Subscript) and "None" in ast.unparse(own.slice):
            own = resolved(source, source.scope(compare), own.value)
        scores = dotted(smaller)
        if not scores or not _SCORES.search(scores):
            continue
        is_own = (called(own) in _OWN and dotted(tensor_of(own) or own) == scores  # type: ignore[arg-type]
                  ) or (isinstance(own, ast.Subscript) and dotted(own.value) == scores
                        and _is_picked(own))  # fmt: skip
        if is_own and _is_from_top(source, source.scope(compare), name):
            yield source.pattern("rank of the worse", compare, name)


def _is_picked(own: ast.Subscript) -> bool:
    """Whether one score is taken by an item: `scores[rows, target]`, `scores[target]`."""
    parts = own.slice.elts if isinstance(own.slice, ast.Tuple) else [own.slice]
    return not isinstance(parts[-1], ast.Slice | ast.Compare)


def _rank_name(source: Source, compare: ast.Compare) -> str:
    """Return the name that the sum of a comparison is given."""
    is_summed = False
    for above in source.above(compare):
        is_summed = is_summed or called(above) in ("sum", "count_nonzero")
        if isinstance(above, ast.Assign):
            return dotted(above.targets[0]) if is_summed else ""
        if isinstance(above, ast.stmt):
            return ""
    return ""


def _is_from_top(source: Source, scope: ast.AST, name: str) -> bool:
    """Whether a small number is a good rank: `rank < k`, `1 / rank`, `log2(rank + 2)`."""
    for each in source.walk(scope):
        if isinstance(each, ast.Compare) and dotted(each.left) == name:
            is_found = isinstance(each.ops[0], ast.Lt | ast.LtE)
        elif isinstance(each, ast.BinOp) and isinstance(each.op, ast.Div):
            is_found = name in {dotted(part) for part in ast.walk(each.right)}
        else:
            continue
        if is_found:
            return True
    return False


@reads
def ascending_top(source: Source) -> Iterator[Pattern]:
    """`scores.topk(k, largest=False)` or `np.argsort(scores)[:k]` in a metric of the best k."""
    for function in source.of(*Function.__args__):
        if not _METRIC.search(function.name) or _DISTANCE.search(source.code(function)):
            continue
        for call in source.walk(function):
            if not isinstance(call, ast.Call):
                continue
            given = tensor_of(call)
            name = dotted(given) if given is not None else ""
            if not name or not _SCORES.search(name) or _is_negated(source, function, name):
                continue
            if _is_ascending_topk(call) or _is_ascending_sort(source, call):
                yield source.pattern("ranked ascending", call, name)


def _is_ascending_topk(call: ast.Call) -> bool:
    return called(call) == "topk" and any(
        each.arg == "largest" and getattr(each.value, "value", None) is False
        for each in call.keywords
    )


def _is_ascending_sort(source: Source, call: ast.Call) -> bool:
    """Whether the first places of an ascending order are taken: `argsort(s)[:k]`, `[:, :k]`."""
    if called(call) != "argsort" or any(
        each.arg in ("descending", "kind") and getattr(each.value, "value", "") is True
        for each in call.keywords
    ):
        return False
    part = source.parent(call)
    if not isinstance(part, ast.Subscript) or part.value is not call:
        return False
    cut = part.slice.elts[-1] if isinstance(part.slice, ast.Tuple) else part.slice
    return (
        isinstance(cut, ast.Slice)
        and cut.lower is None
        and cut.step is None
        and cut.upper is not None
        and not isinstance(cut.upper, ast.UnaryOp)
    )


def _is_negated(source: Source, function: Function, name: str) -> bool:
    """Whether a name of a function is a negated score, or what calls give it is one."""
    if any(
        isinstance(node, ast.UnaryOp)
        and isinstance(node.op, ast.USub)
        and not isinstance(node.operand, ast.Constant)
        for node in source.walk(function)
    ):
        return True
    if name not in parameters_of(function):
        return False
    place = parameters_of(function).index(name)
    return any(
        isinstance(each, ast.UnaryOp) or "-" in ast.unparse(each)
        for call in source.of(ast.Call)
        if called(call) == function.name
        for each in call.args[place : place + 1]
    )


@reads
def ideal_of_retrieved(source: Source) -> Iterator[Pattern]:
    """`ideal = gain.gather(1, top).sort(descending=True)`: the best order of what was found."""
    for scope in source.scopes:
        for name, value, node in source.assigned(scope):
            if not _IDEAL.search(name):
                continue
            for call in ast.walk(value):
                ordered = _ordered(call)
                if ordered is None:
                    continue
                gathered = _gathered(source, scope, ordered)
                if gathered is not None and _is_cut(source, scope, gathered):
                    yield source.pattern("ideal of the retrieved", node, name)
                    break


def _ordered(node: ast.AST) -> ast.expr | None:
    if isinstance(node, ast.Call) and called(node) in ("sort", "sorted"):
        if called(node) == "sort":
            return tensor_of(node)
        return node.args[0] if node.args else None
    return None


def _gathered(source: Source, scope: ast.AST, node: ast.expr) -> ast.expr | None:
    """Return the places that relevances are taken at: `top` of `gain.gather(1, top)`."""
    node = resolved(source, scope, node)
    if isinstance(node, ast.Call) and called(node) in ("gather", "take_along_dim"):
        return argument(node, 1, "index", "indices")
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Name):
        return node.slice
    if not isinstance(node, ast.ListComp) or not isinstance(node.elt, ast.Subscript):
        return None
    loop = node.generators[0]
    return loop.iter if dotted(node.elt.slice) == dotted(loop.target) else None


def _is_cut(source: Source, scope: ast.AST, node: ast.expr) -> bool:
    """Whether an order of scores is cut to its best k places."""
    node = resolved(source, scope, node)
    text = ast.unparse(node)
    if re.search(r"\.topk\(|torch\.topk\(", text):
        return True
    return isinstance(node, ast.Subscript) and ":" in ast.unparse(node.slice) and bool(
        re.search(r"argsort|\.sort\(|sorted\(", text)
    )  # fmt: skip


@reads
def padded_ranks(source: Source) -> Iterator[Pattern]:
    """`top = scores.topk(k)` of padded lists, in a function that masks the gains alone."""
    for function in source.of(*Function.__args__):
        names = parameters_of(function)
        masks = [each for each in names if re.search(r"mask|valid", each)]
        if not masks or not _METRIC.search(function.name):
            continue
        for call in source.walk(function):
            if not isinstance(call, ast.Call) or called(call) not in ("topk", "argsort", "sort"):
                continue
            given = tensor_of(call)
            if not isinstance(given, ast.Name) or given.id not in names:
                continue
            if not _SCORES.search(given.id) or source.stores(function, given.id) > 1:
                continue
            found = list(origins(source, given, Frame(function)))
            masked = [each for each in source.walk(function) if isinstance(each, ast.Call)
                      and called(each) in ("masked_fill", "where")]  # fmt: skip
            if not found and masked and not _is_given_masked(source, function, given.id):
                yield source.pattern("padding in ranks", call, given.id)
                break


def _is_given_masked(source: Source, function: Function, name: str) -> bool:
    place = parameters_of(function).index(name)
    return any(
        re.search("mask|inf|where", ast.unparse(resolved(source, source.scope(call), each)))
        for call in source.of(ast.Call)
        if called(call) == function.name
        for each in call.args[place : place + 1]
    )
