"""Ratios of counts that are not what their names say, and errors in another unit."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source import Pattern, Source, called, dotted
from holter.scripts.reading.values import number, resolved, tensor_of

_TP = re.compile(r"(^|_)(tps?|true_pos(itives?)?|hits?|inter(section)?)(_|$)", re.I)
_FP = re.compile(r"(^|_)(fps?|false_pos(itives?)?)(_|$)", re.I)
_FN = re.compile(r"(^|_)(fns?|false_neg(atives?)?)(_|$)", re.I)
_UNION = re.compile(r"(^|_)unions?($|_)", re.I)
_IOU = re.compile(r"(^|_)(m?ious?|jaccards?)($|_|\d)", re.I)
_DICE = re.compile(r"(^|_)dices?($|_)", re.I)
_INTERSECTION = re.compile(
    r"(^|_)(inter(s|section|sections|sect)?|overlaps?|tps?|hits?|both)($|_)", re.I
)
_RESIDUAL = re.compile(r"(^|_)(ss_?res(idual)?|rss|sse|ss_?err|residual)(_|$)", re.I)
_WHOLE = re.compile(r"(^|_)(ss_?tot(al)?|tss|sst)(_|$)", re.I)
_ERROR = re.compile(r"(^|_)(rmse|mae|err|error|errors)($|_|\d)", re.I)
_SCALE = re.compile(r"(^|_)(std|sd|sigma|scale|stdev)($|_|\d)", re.I)
_CENTRE = re.compile(r"(^|_)(mean|mu|offset|center|centre|shift)($|_|\d)", re.I)
_CUT = re.compile(r"^(k|K|top_?k|TOP_?K|at_?k|n_?top|cutoff)$")
_REDUCED = {"sum", "mean", "float", "item", "long", "double", "int", "squeeze"}


def of_counts(source: Source) -> Iterator[Pattern]:
    """`precision = tp / (tp + fn)`, `recall = tp / (tp + fp)`, `r2 = 1 - ss_tot / ss_res`."""
    for name, value, statement in _named(source):
        ratio = _ratio(value)
        if ratio is None:
            continue
        words = [dotted(each).rpartition(".")[2] for each in ast.walk(ratio.right)]
        has_fp, has_fn = (any(map(each.search, filter(None, words))) for each in (_FP, _FN))
        is_of_hits = any(_TP.search(dotted(each)) for each in ast.walk(ratio.left) if dotted(each))
        if is_of_hits and re.search(r"(^|_)prec(ision)?s?($|_)", name) and has_fn and not has_fp:
            yield source.pattern("exchanged ratio", statement, "precision, false positives")
        elif is_of_hits and re.search(r"(^|_)rec(all)?s?($|_)", name) and has_fp and not has_fn:
            yield source.pattern("exchanged ratio", statement, "recall, false negatives")
        left = [dotted(each).rpartition(".")[2] for each in ast.walk(ratio.left)]
        if (
            re.search(r"(^|_)r_?2($|_)|r_?squared", name)
            and any(_WHOLE.search(each) for each in left)
            and any(_RESIDUAL.search(each) for each in words)
        ):
            yield source.pattern("exchanged ratio", statement, "R², the total sum of squares")


def _named(source: Source) -> Iterator[tuple[str, ast.expr, ast.stmt]]:
    """Yield values with the name that they are given, or that their function has."""
    for scope in source.scopes:
        for name, value, statement in source.assigned(scope):
            yield name.lower(), value, statement
    for node in source.of(ast.Return):
        name = getattr(source.scope(node), "name", "")
        if node.value is not None and name:
            yield name.lower(), node.value, node


def _ratio(value: ast.expr) -> ast.BinOp | None:
    """Return the division behind `100 * a / b`, `1 - a / b` or `(a / b).mean().item()`."""
    while True:
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            if value.func.attr not in {*_REDUCED, "nanmean"}:
                return None
            value = value.func.value
        elif isinstance(value, ast.Call) and called(value) in ("float", "round") and value.args:
            value = value.args[0]
        elif isinstance(value, ast.BinOp) and isinstance(value.op, ast.Sub):
            if getattr(value.left, "value", None) not in (1, 1.0):
                return None
            value = value.right
        elif isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
            if not isinstance(value.left, ast.Constant):
                return None
            value = value.right
        elif isinstance(value, ast.IfExp):
            value = value.body
        elif isinstance(value, ast.BinOp) and isinstance(value.op, ast.Div):
            return value
        else:
            return None


def of_areas(source: Source) -> Iterator[Pattern]:
    """`union = a.sum() + b.sum()` without the overlap taken off, and Dice without its factor 2."""
    for scope in source.scopes:
        for name, value, statement in source.assigned(scope):
            is_union = _UNION.search(name)
            if is_union and _adds_areas(value) and not _is_reduced_later(source, scope, name):
                yield source.pattern("union with overlap", statement, name)
    for node in source.of(ast.AugAssign):  # `union += (a + b).sum()` over batches
        name = dotted(node.target)
        if not isinstance(node.op, ast.Add) or not _UNION.search(name.rpartition(".")[2]):
            continue
        homes = source.scopes if "." in name else [source.scope(node)]
        is_reduced = any(_is_reduced_later(source, each, name) for each in homes)
        divides = any(
            isinstance(each.op, ast.Div) and dotted(_plain(each.right)) == name
            for each in source.of(ast.BinOp)
        )
        if _adds_areas(node.value) and divides and not is_reduced:
            yield source.pattern("union with overlap", node, name)
    for name, value, statement in _named(source):
        ratio = _ratio(value)
        if ratio is None or not _has_overlap(source, statement, ratio.left):
            continue
        below = resolved(source, source.scope(statement), _plain(ratio.right))
        if not _adds_areas(below):
            continue
        home = source.scope(statement)
        parts = [
            value,
            *(
                resolved(source, home, each)
                for each in ast.walk(ratio.left)
                if isinstance(each, ast.Name)
            ),
        ]
        doubled = any(
            getattr(each, "value", None) in (2, 2.0) for part in parts for each in ast.walk(part)
        )
        if _IOU.search(name) and not doubled and not _UNION.search(dotted(ratio.right)):
            yield source.pattern("union with overlap", statement, name)
        elif _DICE.search(name) and not doubled:
            yield source.pattern("dice without two", statement, name)


def _plain(node: ast.expr) -> ast.expr:
    """Return a denominator without what keeps it from zero: `(u + eps)`, `u.clamp(min=1)`."""
    while True:
        if isinstance(node, ast.Call) and called(node) in ("clamp", "clip", "clamp_min"):
            inner = node.func.value if isinstance(node.func, ast.Attribute) else None
            if inner is None or (not node.args and not node.keywords):
                return node
            node = inner if dotted(inner) not in ("np", "torch") else node.args[0]
        elif isinstance(node, ast.Call) and called(node) in ("max", "maximum") and node.args:
            node = node.args[0]
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and _is_small(node.right):
            node = node.left
        else:
            return node


def _is_small(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) or bool(re.search(r"eps|smooth", dotted(node), re.I))


def _adds_areas(value: ast.expr) -> bool:
    """Whether an expression is the sum of two sums, and nothing is taken off."""
    value = _plain(value)
    if _is_sum_of_two(value):
        return True
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Add):
        return False
    if any(isinstance(each, ast.Sub | ast.BitOr | ast.Mult) for each in ast.walk(value)):
        return False
    sides = [ast.unparse(each) for each in (value.left, value.right)]
    return sides[0] != sides[1] and all(_is_area(each) for each in (value.left, value.right))


def _is_sum_of_two(value: ast.expr) -> bool:
    """Whether an expression is `(a + b).sum()` or `np.sum(a + b)` of two masks."""
    while called(value) in ("item", "float", "int", "long") and isinstance(value, ast.Call):
        if isinstance(value.func, ast.Attribute):
            value = value.func.value
        elif value.args:
            value = value.args[0]
        else:
            return False
    if not isinstance(value, ast.Call) or called(value) != "sum":
        return False
    inner = tensor_of(value)
    if not isinstance(inner, ast.BinOp) or not isinstance(inner.op, ast.Add):
        return False
    sides = (inner.left, inner.right)
    return (
        all(isinstance(each, ast.Name | ast.Attribute | ast.Subscript) for each in sides)
        and ast.unparse(sides[0]) != ast.unparse(sides[1])
        and not _is_small(inner.right)
    )


def _is_area(node: ast.expr) -> bool:
    while isinstance(node, ast.Call) and called(node) in ("float", "double", "item", "long"):
        if not isinstance(node.func, ast.Attribute):
            break
        node = node.func.value
    return called(node) == "sum" or bool(
        re.search(r"(^|_)(area|size|n)(_?\w)?$", dotted(node)) and "area" in dotted(node)
    )


def _is_reduced_later(source: Source, scope: ast.AST, name: str) -> bool:
    """Whether the overlap is taken off where the union is used, or Dice is computed of it."""
    nodes: list[ast.BinOp | ast.AugAssign] = [*source.of(ast.BinOp), *source.of(ast.AugAssign)]
    for node in nodes:
        if source.scope(node) is not scope:
            continue
        if isinstance(node, ast.AugAssign):
            if dotted(node.target) == name and isinstance(node.op, ast.Sub):
                return True
        elif isinstance(node, ast.BinOp):
            names = {dotted(each) for each in ast.walk(node.right)}
            doubles = any(getattr(each, "value", None) in (2, 2.0) for each in ast.walk(node.left))
            if isinstance(node.op, ast.Sub) and dotted(node.left) == name:
                return True
            if isinstance(node.op, ast.Div) and name in names and doubles:
                return True
    return False


def _has_overlap(source: Source, statement: ast.AST, node: ast.expr) -> bool:
    """Whether a numerator is an intersection: by its name, or a sum of a product."""
    names = [dotted(each) for each in ast.walk(node) if dotted(each)]
    if any(_INTERSECTION.search(each.rpartition(".")[2]) for each in names):
        return True
    value = resolved(source, source.scope(statement), node)
    return any(
        called(each) == "sum"
        and any(isinstance(part, ast.Mult | ast.BitAnd) for part in ast.walk(each))
        for each in ast.walk(value)
    )


def shifted_errors(source: Source) -> Iterator[Pattern]:
    """`rmse = (sq / n) ** 0.5 * std + mean`: an error has a scale and no offset."""
    for node in source.of(ast.BinOp):
        if not isinstance(node.op, ast.Add) or not _CENTRE.search(_last(node.right)):
            continue
        scaled = node.left
        if not isinstance(scaled, ast.BinOp) or not isinstance(scaled.op, ast.Mult):
            continue
        sides = (scaled.left, scaled.right)
        is_scaled = [n for n in (0, 1) if _SCALE.search(_last(sides[n]))]
        if is_scaled and _is_error(source, source.scope(node), sides[1 - is_scaled[-1]]):
            yield source.pattern("shifted error", node, _last(node.right))


def _last(node: ast.expr) -> str:
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        node = node.func.value
    while isinstance(node, ast.Subscript):
        node = node.value
    return dotted(node).rpartition(".")[2]


def _is_error(source: Source, scope: ast.AST, node: ast.expr) -> bool:
    """Whether an expression is a mean error: a root of a mean, a mean of absolute differences."""
    if _ERROR.search(_last(node)) and isinstance(node, ast.Name | ast.Attribute):
        return True
    value = resolved(source, scope, node)
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Pow):
        return number(source, value.right) == 0.5
    text = ast.unparse(value)
    if called(value) == "sqrt":
        return bool(re.search(r"mean|mse|/", text))
    return bool(re.search(r"abs\(.*mean\(|mean\(.*abs\(|mse_loss|l1_loss", text))


def order_as_ranks(source: Source) -> Iterator[Pattern]:
    """`ranks = np.argsort(score) + 1` and `ranks[y == 1].sum()`: an order is no rank."""
    for scope in source.scopes:
        for name, value, statement in source.assigned(scope):
            inner = value
            while isinstance(inner, ast.BinOp | ast.Call) and called(inner) != "argsort":
                if isinstance(inner, ast.BinOp) and isinstance(inner.right, ast.Constant):
                    inner = inner.left
                elif isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
                    inner = inner.func.value
                else:
                    break
            if called(inner) != "argsort" or not re.search(r"rank", name, re.I):
                continue
            if ast.unparse(inner).count("argsort") > 1 or _sorts_order(source, scope, inner):
                continue
            if _is_summed_by_mask(source, scope, name):
                yield source.pattern("order as ranks", statement, name)


def _sorts_order(source: Source, scope: ast.AST, inner: ast.expr) -> bool:
    """Whether what is sorted is an order itself, whose order is the ranks."""
    assert isinstance(inner, ast.Call)
    parts = [*inner.args, getattr(inner.func, "value", inner)]
    return any(
        "argsort" in ast.unparse(resolved(source, scope, each))
        for each in parts
        if isinstance(each, ast.Name)
    )


def _is_summed_by_mask(source: Source, scope: ast.AST, name: str) -> bool:
    for node in source.of(ast.Subscript):
        if source.scope(node) is not scope or dotted(node.value) != name:
            continue
        mask = resolved(source, scope, node.slice)
        if (
            isinstance(mask, ast.Call)
            and called(mask) in ("astype", "bool")
            and isinstance(mask.func, ast.Attribute)
        ):
            mask = mask.func.value
        is_mask = isinstance(mask, ast.Compare) or bool(
            re.search(r"(^|_)(pos|positives?|relevant|labels?|mask)$", dotted(node.slice))
        )
        above = source.parent(node)
        if is_mask and isinstance(above, ast.Attribute) and above.attr in ("sum", "mean"):
            return True
        if is_mask and called(above or node) in ("sum", "mean"):
            return True
    return False


def by_cut(source: Source) -> Iterator[Pattern]:
    """`recall = hits / k`: the recall is divided by the number of relevant items."""
    has_cut = re.search(r"topk|top_k|argsort|\[:k|:K\]|@", source.code(source.tree))
    for name, value, statement in _named(source):
        if not re.match(r"(mean_|avg_|total_)?recalls?(_?at_?(k|\d+)|@k|_k|_\d+)?$", name):
            continue
        ratio = _ratio(value)
        if (
            ratio is not None
            and has_cut
            and _CUT.match(dotted(ratio.right).rpartition(".")[2])
            and not re.search(r"min\(|relevant|len\(", ast.unparse(ratio.left))
        ):
            yield source.pattern("recall by cut", statement, ast.unparse(ratio.right))
    for change in source.of(ast.AugAssign):
        if re.match(r"recalls?$", dotted(change.target).rpartition(".")[2]):
            ratio = _ratio(change.value)
            if ratio is not None and _CUT.match(dotted(ratio.right).rpartition(".")[2]):
                yield source.pattern("recall by cut", change, ast.unparse(ratio.right))


def means_by_samples(source: Source) -> Iterator[Pattern]:
    """`recall += hit.float().mean().item()` in a loop over batches, and `recall / n_users`."""
    for loop in source.of(ast.For):
        count = _batched_count(source, loop)
        if not count:
            continue
        for change in source.of(ast.AugAssign):
            if source.parent(change) is not loop or not isinstance(change.op, ast.Add):
                continue
            name, text = dotted(change.target), ast.unparse(change.value)
            if not re.search(r"\.mean\(\)(\.item\(\))?\)?$", text):
                continue
            for ratio in source.of(ast.BinOp):
                if (
                    isinstance(ratio.op, ast.Div)
                    and dotted(ratio.left) == name
                    and ratio.lineno > loop.lineno
                    and source.scope(ratio) is source.scope(loop)
                    and ast.unparse(ratio.right) in count
                ):
                    yield source.pattern("means by samples", change, name)
                    break


def _batched_count(source: Source, loop: ast.For) -> set[str]:
    """Return how the file writes the number of rows that a loop takes in batches."""
    over, scope = loop.iter, source.scope(loop)
    if called(over) == "split" and isinstance(over, ast.Call):
        inner = getattr(over.func, "value", over)
        if called(inner) in ("arange", "randperm") and isinstance(inner, ast.Call) and inner.args:
            text = ast.unparse(inner.args[0])
            return {text, ast.unparse(resolved(source, scope, inner.args[0]))}
    if (
        called(over) == "range"
        and isinstance(over, ast.Call)
        and len(over.args) == 3
        and number(source, over.args[2]) != 1
    ):
        stop = over.args[1]
        return {ast.unparse(stop), ast.unparse(resolved(source, scope, stop))}
    return set()
