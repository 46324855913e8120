"""Scores of tagged sequences: spans, their counts, and positions that are padding."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.metrics.ratios import of_counts
from holter.scripts.reading.source.expressions import axis_of, made_once, resolved, tensor_of
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Function, Pattern, Source, called, dotted

_BEGIN = re.compile(r"['\"]B['\"]|['\"]B-|['\"]I-|['\"]I['\"]|BIO")
_ADDING = {"append", "add"}
_PRECISION = re.compile(r"^(p|prec|precisions?|pre)(_\w+)?$|precision", re.I)
_RECALL = re.compile(r"^(r|rec|recalls?)(_\w+)?$|recall", re.I)
_TRUE = re.compile(r"^(t|y|yt|true|truth|target|label|gold|y_true|gt|lab|yi|tt|ti)(_\w+)?$", re.I)
_GUESS = re.compile(r"^(p|yp|pred|preds|prediction|guess|y_pred|y_hat|hat|pi|pp)(_\w+)?$", re.I)
_LOSSES = {"cross_entropy", "nll_loss", "CrossEntropyLoss", "NLLLoss"}


@reads
def lost_at_end(source: Source) -> Iterator[Pattern]:
    """Spans that are stored when they end, in a loop without the end of the sentence."""
    for function in source.of(*Function.__args__):
        if not _BEGIN.search(source.code(function)):
            continue
        for loop in source.walk(function):
            if not isinstance(loop, ast.For) or source.scope(loop) is not function:
                continue
            if any(isinstance(each, ast.For) for each in source.above(loop)
                   if source.scope(each) is function):  # fmt: skip
                continue
            over = loop.iter
            if called(over) == "enumerate" and isinstance(over, ast.Call) and over.args:
                over = over.args[0]
            if not _is_without_end(source, function, over):
                continue
            found = _stored(source, function, loop)
            if found:
                yield source.pattern("lost at end", loop, found)


def _is_without_end(source: Source, function: ast.AST, over: ast.expr) -> bool:
    """Whether a loop goes over tags as they are: not over `tags + ["O"]`."""
    over = resolved(source, function, over)
    while called(over) in ("list", "tuple") and isinstance(over, ast.Call) and over.args:
        over = over.args[0]
    if isinstance(over, ast.ListComp):
        return isinstance(over.generators[0].iter, ast.Name)
    name = dotted(over)
    is_longer = re.search(rf"\b{name}\.(append|extend|insert)\(", source.code(function))
    bound = sum(other == name for other, *_ in source.assigned(function))
    return bool(name) and not is_longer and not bound


def _stored(source: Source, function: ast.AST, loop: ast.For) -> str:
    """Return the list of spans whose last one is never stored, or ""."""
    begins = {
        dotted(target) if not isinstance(target, ast.Tuple) else dotted(target.elts[0])
        for node in source.walk(loop)
        if isinstance(node, ast.Assign) and not isinstance(node.value, ast.Constant)
        for target in node.targets
    }
    turns = {each.id for each in ast.walk(loop.target) if isinstance(each, ast.Name)}
    begins = {name for name in begins if name and name not in turns and any(
        other == name and at.lineno < loop.lineno
        for other, _, at in source.assigned(function))}  # fmt: skip
    after = [node for part in getattr(function, "body", ()) if part.lineno > (loop.end_lineno or 0)
             for node in source.walk(part)]  # fmt: skip
    for call in source.walk(loop):
        if called(call) not in _ADDING or not isinstance(call, ast.Call) or len(call.args) != 1:
            continue
        held = {each.id for each in ast.walk(call.args[0]) if isinstance(each, ast.Name)}
        name = dotted(call.func).rpartition(".")[0]
        kept = held & begins
        if not isinstance(call.args[0], ast.Tuple) or not kept or not held & turns:
            continue
        is_handled = any(isinstance(node, ast.Name) and node.id in kept for node in after) or any(
            called(node) in _ADDING for node in after
        )
        is_last = re.search(r"len\(|\+ 1\]|\[i \+ 1|nxt|next", ast.unparse(loop.body[0])) or any(
            isinstance(node, ast.Subscript) and isinstance(node.slice, ast.BinOp)
            for node in source.walk(loop)
        )
        if name and not is_handled and not is_last:
            return name
    return ""


@reads
def union_as_gold(source: Source) -> Iterator[Pattern]:
    """`n_gold += len(pred | gold)` beside `tp += len(pred & gold)` and `n_pred += len(pred)`."""
    for scope in source.scopes:
        sums: dict[str, tuple[str, set[str], ast.AST]] = {}
        for node in source.walk(scope):
            if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
                kind, names = _counted(node.value)
                if kind:
                    sums[dotted(node.target)] = (kind, names, node)
        shared = [names for kind, names, _ in sums.values() if kind == "&"]
        alone = [names for kind, names, _ in sums.values() if kind == "1"]
        for name, (kind, names, node) in sums.items():
            if kind == "|" and names in shared and any(each < names for each in alone):
                yield source.pattern("union as count", node, name)


def _counted(value: ast.expr) -> tuple[str, set[str]]:
    """Return what `len(a & b)` counts: "&", "|" or "1", and the names of the sets."""
    if called(value) != "len" or not isinstance(value, ast.Call) or len(value.args) != 1:
        return "", set()
    given = value.args[0]
    if isinstance(given, ast.Name):
        return "1", {given.id}
    if isinstance(given, ast.BinOp) and isinstance(given.op, ast.BitAnd | ast.BitOr):
        kind = "&" if isinstance(given.op, ast.BitAnd) else "|"
        return kind, {dotted(given.left), dotted(given.right)} - {""}
    if called(given) in ("union", "intersection") and isinstance(given, ast.Call) and given.args:
        assert isinstance(given.func, ast.Attribute)
        kind = "&" if called(given) == "intersection" else "|"
        return kind, {dotted(given.func.value), dotted(given.args[0])} - {""}
    return "", set()


@reads
def same_denominator(source: Source) -> Iterator[Pattern]:
    """`precision = tp / m.sum(0)` and `recall = tp / m.sum(0)`: both are the same number."""
    exchanged = {pattern.line for pattern in of_counts(source)}  # `recall = tp / (tp + fp)`
    for scope in source.scopes:
        ratios = [
            (name, value, at)
            for name, value, at in source.assigned(scope)
            if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Div)
        ]
        for name, value, _ in ratios:
            for other, again, statement in ratios:
                if not (_PRECISION.search(name) and _RECALL.search(other)):
                    continue
                is_read = statement.lineno in exchanged
                if ast.unparse(value) == ast.unparse(again) and not is_read:
                    yield source.pattern("same denominator", statement, other)


@reads
def exchanged_margins(source: Source) -> Iterator[Pattern]:
    """`m[true, pred] += 1` and `precision = tp / m.sum(1)`: that is the recall."""
    rows: dict[str, bool] = {}
    for node in source.of(ast.AugAssign):
        target = node.target
        if isinstance(target, ast.Subscript) and dotted(target.value):
            rows[dotted(target.value)] = _is_true_first(target)
    for scope in source.scopes:
        for name, value, statement in source.assigned(scope):
            is_precision, is_recall = bool(_PRECISION.search(name)), bool(_RECALL.search(name))
            if is_precision == is_recall or not isinstance(value, ast.BinOp):
                continue
            if not isinstance(value.op, ast.Div):
                continue
            for call in ast.walk(value.right):
                if called(call) != "sum" or not isinstance(call, ast.Call):
                    continue
                matrix = tensor_of(call)
                axis = axis_of(call)
                if matrix is None or rows.get(dotted(matrix)) is None or axis not in (0, 1, -1):
                    continue
                if not rows[dotted(matrix)]:
                    continue
                if (axis == 0) != is_precision and not _are_the_same(source, scope):
                    yield source.pattern("exchanged margins", statement, name)


def _is_true_first(target: ast.Subscript) -> bool:
    """Whether an index has the true class before the predicted one."""
    index = target.slice
    if not isinstance(index, ast.Tuple) or len(index.elts) != 2:
        return False
    first, second = (dotted(each).rpartition(".")[2] for each in index.elts)
    return bool(_TRUE.match(first) and _GUESS.match(second)) and first != second


def _are_the_same(source: Source, scope: ast.AST) -> bool:
    """Whether both ratios have the same axis, which another pattern reports."""
    found = set()
    for name, value, _ in source.assigned(scope):
        if _PRECISION.search(name) or _RECALL.search(name):
            found.add(ast.unparse(value))
    return len(found) == 1


@reads
def padded_accuracy(source: Source) -> Iterator[Pattern]:
    """`(pred == y).float().mean()` of labels whose padding the loss ignores."""
    ignored = _ignored_targets(source)
    if not ignored:
        return
    for compare in source.of(ast.Compare):
        if len(compare.ops) != 1 or not isinstance(compare.ops[0], ast.Eq):
            continue
        sides = (compare.left, compare.comparators[0])
        for guess, truth in (sides, sides[::-1]):
            name = _plain(truth)
            if not name or not _is_prediction(source, compare, guess):
                continue
            scope = source.scope(compare)
            if (name, scope) not in ignored or not _is_mean_of_all(source, compare, name):
                continue
            yield source.pattern("padding in accuracy", compare, name)


def _ignored_targets(source: Source) -> set[tuple[str, ast.AST]]:
    """Return the targets of losses that are told to ignore the padding of sequences."""
    found = set()
    with_padding = {
        dotted(target).rpartition(".")[2]
        for assign in source.of(ast.Assign)
        if called(assign.value) in _LOSSES and _ignores(assign.value)
        for target in assign.targets
    } - {""}
    for call in source.of(ast.Call):
        is_own = called(call) in _LOSSES and _ignores(call)
        is_named = dotted(call.func).rpartition(".")[2] in with_padding
        if (is_own or is_named) and len(call.args) > 1:
            name = _plain(call.args[1])
            if name:
                found.add((name, source.scope(call)))
    return found


def _ignores(call: ast.AST) -> bool:
    return isinstance(call, ast.Call) and any(
        each.arg == "ignore_index" and re.search(r"pad|^-100$", ast.unparse(each.value), re.I)
        for each in call.keywords
    )


def _plain(value: ast.expr) -> str:
    """Return the name of `y`, `y.view(-1)` or `y[:, 1:].reshape(-1)`, none of `y[mask]`."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        if called(value) not in ("view", "reshape", "flatten", "to", "long", "contiguous"):
            return ""
        value = value.func.value
    if isinstance(value, ast.Subscript):
        is_cut = isinstance(value.slice, ast.Tuple | ast.Slice) and any(
            isinstance(each, ast.Slice) for each in ast.walk(value.slice)
        )
        value = value.value if is_cut else value
    return value.id if isinstance(value, ast.Name) else ""


def _is_prediction(source: Source, at: ast.AST, value: ast.expr) -> bool:
    text = ast.unparse(value)
    if isinstance(value, ast.Name):
        made = made_once(source, source.scope(at), value.id)
        if made is None:
            return False
        text = ast.unparse(made)
    return "argmax(" in text and "[" not in re.sub(r"\[:, :-1\]|\[:, 1:\]|\[0\]", "", text)


def _is_mean_of_all(source: Source, compare: ast.Compare, name: str) -> bool:
    """Whether hits are averaged over all positions: `.mean()`, or `.sum()` over `numel()`."""
    node: ast.AST = compare
    for above in source.above(compare):
        if isinstance(above, ast.BinOp | ast.Subscript | ast.stmt):
            break
        node = above
    text = ast.unparse(node)
    if re.search(r"\.all\(", text):
        return False
    parent = source.parent(node)
    if isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Mult | ast.BitAnd):
        return False
    if re.search(r"\.mean\(\)", text):
        return True
    if ".sum()" not in text:
        return False
    scope = source.code(source.scope(compare))
    return bool(re.search(rf"\b{name}\.numel\(\)", scope)) and not re.search(r"mask|keep", scope)
