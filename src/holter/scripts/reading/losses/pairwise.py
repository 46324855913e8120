"""Losses that compare positives with negatives the wrong way."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.expressions import number, summands, tensor_of
from holter.scripts.reading.source.objective import Term, objectives
from holter.scripts.reading.source.origins import Frame, origins, returned
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Pattern, Source, called, dotted

_POSITIVE = re.compile(r"(^|_)(pos|positives?)(_|$|\d)|^pos_?|_ap$", re.I)
_NEGATIVE = re.compile(r"(^|_)(neg|negatives?)(_|$|\d)|^neg_?|_an$", re.I)
_DISTANCE = re.compile(
    r"cdist|pairwise_distance|PairwiseDistance|\.norm\(|\bdist|sqrt\(|distance|(^|_)d2?(_|$)", re.I
)
_SCORE = re.compile(
    r"cosine|cos_sim|\bscore|logit|@|matmul|bmm|einsum|(?<!\*)\* [\w.]+(\(.*\))?\)\.sum\("
)
_SOFT = {"softplus": 1, "relu": 1, "logsigmoid": -1}
_MARGIN = re.compile(r"margin|^m$", re.I)
_WRONG = {"score": 1, "distance": -1}
_DEEPEST = 3
_NEGATIVE_DRAWS = re.compile(r"(^|_)(neg|negs|negatives?|sampled|corrupt\w*)(_|$|\d)", re.I)
_DISTANCES = re.compile(r"dist|cdist|norm\(|energy|margin", re.I)


@reads
def reversed_pairs(source: Source) -> Iterator[Pattern]:
    """`-logsigmoid(negative - positive)` of scores: negatives are ranked above positives."""
    for terms in objectives(source):
        rising: dict[str, Term] = {}
        for term in terms:
            node = term.node
            if not isinstance(node, ast.Call) or not term.sign:
                continue
            direction = _SOFT.get(called(node), 0)
            inner = tensor_of(node)
            if called(node) in ("clamp", "clamp_min", "clip") and _is_hinge(node):
                direction = 1
            if inner is None or direction != term.sign:
                continue
            wanted = _ordered(source, inner, term.frame)
            # A loss has to fall with scores of positives, and to rise with their distances.
            if wanted is not None and wanted[1] * direction == _WRONG[wanted[0]]:
                yield source.pattern("reversed pair", node, wanted[0])
            side = _one_side(source, inner, term.frame) if called(node) != "clamp" else ""
            if side:
                rising[side if direction > 0 else _other(side)] = term
        if {"+pos", "-neg"} <= rising.keys():
            yield source.pattern("reversed pair", rising["+pos"].node, "score")


def _is_hinge(call: ast.Call) -> bool:
    """Whether a clamp has the lower bound 0 alone."""
    if called(call) == "clamp_min":
        return bool(call.args) and ast.unparse(call.args[-1]) in ("0", "0.0")
    bounds = {each.arg: ast.unparse(each.value) for each in call.keywords}
    return bounds in ({"min": "0"}, {"min": "0.0"})


def _ordered(source: Source, node: ast.expr, frame: Frame) -> tuple[str, int] | None:
    """Return whether a difference is of scores or distances, and the sign of the positives."""
    if isinstance(node, ast.Name):
        values = list(origins(source, node, frame))
        if len(values) != 1:
            return None
        node, frame = values[0][0], values[0][1]
    signs: dict[str, tuple[int, ast.expr]] = {}
    for sign, part in summands(node):
        label = label_of(part)
        if label in signs:
            return None
        if label:
            signs[label] = sign, part
        elif number(source, part) is None and not _MARGIN.search(dotted(part).rpartition(".")[2]):
            return None
    if set(signs) != {"pos", "neg"} or signs["pos"][0] == signs["neg"][0]:
        return None
    kinds = {_kind(source, part, frame) for _, part in signs.values()}
    if len(kinds) != 1 or "" in kinds:
        return None
    return kinds.pop(), signs["pos"][0]


def label_of(node: ast.expr) -> str:
    """Return whether a name speaks of positives or of negatives."""
    while isinstance(node, ast.Subscript) or (
        isinstance(node, ast.Call) and called(node) in ("unsqueeze", "squeeze", "view", "expand")
    ):
        node = node.value if isinstance(node, ast.Subscript) else tensor_of(node) or ast.Name("")
    name = dotted(node).rpartition(".")[2]
    is_positive, is_negative = bool(_POSITIVE.search(name)), bool(_NEGATIVE.search(name))
    if is_positive == is_negative:
        return ""
    return "pos" if is_positive else "neg"


def _one_side(source: Source, node: ast.expr, frame: Frame) -> str:
    """Return "+pos" for a score of positives, "-neg" for the negated one of negatives."""
    (sign, part), *others = summands(node)
    label = label_of(part)
    if others or not label or _kind(source, part, frame) != "score":
        return ""
    return ("+" if sign > 0 else "-") + label


def _other(side: str) -> str:
    """Return what `-logsigmoid(x)` says as `softplus(-x)`."""
    return ("-" if side[0] == "+" else "+") + side[1:]


def _kind(source: Source, node: ast.expr, frame: Frame) -> str:
    """Return "score" or "distance" if the source says so, in names or in operations."""
    texts = [_text(source, node, frame, 0)]
    is_distance = any(_DISTANCE.search(text) for text in texts)
    is_score = any(_SCORE.search(text) for text in texts)
    if is_distance == is_score:
        return ""
    return "distance" if is_distance else "score"


def _text(source: Source, node: ast.expr, frame: Frame, depth: int) -> str:
    """Return what an expression is made of, with the names in it followed."""
    text = ast.unparse(node)
    if depth > _DEEPEST:
        return text
    for part in source.walk(node):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
            for value, where, _ in origins(source, part, frame):
                text += "\n" + _text(source, value, where, depth + 1)
        if isinstance(part, ast.Call):
            entered = returned(source, part, frame)
            if entered is not None:
                text += "\n" + _text(source, entered[0], entered[1], depth + 1)
    return text


@reads
def reversed_hinge(source: Source) -> Iterator[Pattern]:
    """`clamp(margin - distance, max=0)`: pairs beyond the margin are pushed on, others never."""
    for call in source.of(ast.Call):
        if called(call) not in ("clamp", "clamp_max", "clip", "minimum"):
            continue
        inner = tensor_of(call)
        bounds = {each.arg: ast.unparse(each.value) for each in call.keywords}
        is_upper = bounds in ({"max": "0"}, {"max": "0.0"}) or (
            called(call) == "clamp_max" and ast.unparse(call.args[-1]) in ("0", "0.0")
        )
        if not is_upper or not isinstance(inner, ast.BinOp) or not isinstance(inner.op, ast.Sub):
            continue
        margin = dotted(inner.left).rpartition(".")[2]
        if _MARGIN.search(margin) and not _is_negated(source, call):
            yield source.pattern("reversed hinge", call, margin)


def _is_negated(source: Source, call: ast.Call) -> bool:
    """Whether a clamp is subtracted, or turned: `-clamp(margin - d, max=0)`."""
    below: ast.AST = call
    for above in source.above(call):
        if isinstance(above, ast.UnaryOp) and isinstance(above.op, ast.USub):
            return True
        if isinstance(above, ast.BinOp) and isinstance(above.op, ast.Sub) and above.right is below:
            return True
        if isinstance(above, ast.stmt):
            return False
        below = above
    return False


@reads
def reversed_difference(source: Source) -> Iterator[Pattern]:
    """`-logsigmoid(model(u, j) - model(u, i))` where `j` is what the negatives were made of."""
    for terms in objectives(source):
        for term in terms:
            node = term.node
            if not isinstance(node, ast.Call) or called(node) not in ("logsigmoid", "softplus"):
                continue
            inner = tensor_of(node)
            if isinstance(inner, ast.Name):
                found = list(origins(source, inner, term.frame))
                inner = found[0].node if len(found) == 1 else None
            sign = term.sign
            if isinstance(inner, ast.UnaryOp) and isinstance(inner.op, ast.USub):
                continue
            if not isinstance(inner, ast.BinOp) or not isinstance(inner.op, ast.Sub) or not sign:
                continue
            sides = [inner.left, inner.right]
            first, second = (_is_negative(source, each, term.frame) for each in sides)
            if first == second or _DISTANCES.search(source.code(source.scope(node))):
                continue
            if first != (sign > 0):
                yield source.pattern("reversed pair", node, "score")


def _is_negative(source: Source, node: ast.expr, frame: Frame) -> bool:
    """Whether a score is of negatives: `f(u, j)` with `u, i, j = (t(a) for a in (x, y, neg))`."""
    if isinstance(node, ast.Name):
        if _NEGATIVE_DRAWS.search(node.id):
            return True
        found = list(origins(source, node, frame))
        node = found[0].node if len(found) == 1 else node
    if not isinstance(node, ast.Call):
        return False
    return any(_made_of_negatives(source, each) for each in node.args)


def _made_of_negatives(source: Source, node: ast.expr) -> bool:
    names = {dotted(each).rpartition(".")[2] for each in ast.walk(node)} - {""}
    if any(map(_NEGATIVE_DRAWS.search, names)):
        return True
    if not isinstance(node, ast.Name):
        return False
    for bound in source.bindings(source.scope(node), node.id):
        if not isinstance(bound, ast.Assign) or not isinstance(bound.targets[0], ast.Tuple):
            continue
        names_of = [dotted(each) for each in bound.targets[0].elts]
        value = bound.value
        if isinstance(value, ast.GeneratorExp | ast.ListComp):
            value = value.generators[0].iter
        if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(names_of):
            made = value.elts[names_of.index(node.id)]
            return any(_NEGATIVE_DRAWS.search(dotted(each)) for each in ast.walk(made))
    return False
