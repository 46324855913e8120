"""Weights of classes that make frequent classes count more, not less."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.expressions import number, resolved, tensor_of
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Pattern, Source, called, dotted

_LOSSES = {"CrossEntropyLoss", "NLLLoss", "cross_entropy", "nll_loss", "MultiMarginLoss"}
_COUNTS = re.compile(
    r"(^|_)(counts?|freqs?|frequency|frequencies|hist|histogram|support|occurrences|priors?)(_|$)",
    re.I,
)
_SAME = {
    *("tensor", "as_tensor", "from_numpy", "float", "double", "to", "astype", "array", "asarray"),
    *("FloatTensor", "cuda", "clamp", "clip", "clamp_min", "clip_min", "cpu", "numpy", "copy"),
    *("to_numpy", "sort_index", "tolist", "list", "sqrt", "log1p", "log", "clone", "Tensor"),
}
_REVERSED = {"reciprocal", "rsqrt"}
_POSITIVE = re.compile(
    r"(^|_)(pos|positives?|n1|ones|minority|churned|fraud|events?)(_|$|\d)", re.I
)
_NEGATIVE = re.compile(r"(^|_)(neg|negatives?|n0|zeros|majority)(_|$|\d)", re.I)


@reads
def proportional(source: Source) -> Iterator[Pattern]:
    """`CrossEntropyLoss(weight=counts / counts.sum())`, or a sampler that is given it."""
    for call in source.of(ast.Call):
        name = called(call)
        given = [each.value for each in call.keywords if each.arg == "weight"]
        if name in ("CrossEntropyLoss", "NLLLoss"):
            given += call.args[:1]
        if name in _LOSSES and given and _power(source, source.scope(call), given[0], 0) == 1:
            yield source.pattern("proportional weights", _origin(source, call, given[0]), name)
        elif name == "WeightedRandomSampler" and (call.args or call.keywords):
            weights = [*call.args[:1], *(k.value for k in call.keywords if k.arg == "weights")]
            if weights and _power(source, source.scope(call), weights[0], 0) == 1:
                yield source.pattern("proportional weights", call, name)


def _origin(source: Source, call: ast.Call, given: ast.expr) -> ast.AST:
    """Return the statement that makes weights, or the call that is given them."""
    for name, _, statement in source.assigned(source.scope(call)):
        if isinstance(given, ast.Name) and name == given.id:
            return statement
    return call


def _power(source: Source, scope: ast.AST, node: ast.expr, depth: int) -> int | None:
    """Return with what power an expression has counts of classes in it; None if not known."""
    if depth > 8:
        return None
    if number(source, node) is not None:
        return 0
    if isinstance(node, ast.Name):
        value = resolved(source, scope, node)
        if value is not node:
            known = _power(source, scope, value, depth + 1)
            if known is not None:
                return known
        return 1 if _is_counted(source, node, value) else None
    if isinstance(node, ast.BinOp):
        return _of_operation(source, scope, node, depth)
    if isinstance(node, ast.Call):
        return _of_call(source, scope, node, depth)
    if isinstance(node, ast.Subscript):
        inner = _power(source, scope, node.value, depth + 1)
        return inner if inner else None  # one weight for each sample: `w[labels]`
    if isinstance(node, ast.ListComp) and len(node.generators) == 1:
        return _of_list(source, scope, node, depth)
    return 1 if dotted(node) and _COUNTS.search(dotted(node).rpartition(".")[2]) else None


def _is_counted(source: Source, node: ast.Name, value: ast.expr) -> bool:
    """Whether a name is of counts, and nothing says that it was turned into weights."""
    if isinstance(value, ast.Name):
        bound = source.stores(source.scope(node), node.id)
        return bool(_COUNTS.search(node.id)) and bound <= 1
    return _counts(value)


def _counts(value: ast.AST) -> bool:
    """Whether an expression counts the samples of each class."""
    if called(value) in ("bincount", "value_counts"):
        return True
    return isinstance(value, ast.ListComp) and called(value.elt) in (
        "sum",
        "count",
        "count_nonzero",
    )


def _of_operation(source: Source, scope: ast.AST, node: ast.BinOp, depth: int) -> int | None:
    left, right = (_power(source, scope, side, depth + 1) for side in (node.left, node.right))
    if isinstance(node.op, ast.Pow):
        size = number(source, node.right)
        return None if left is None or not size else (left if size > 0 else -left)
    if left is None or right is None:
        return None
    if isinstance(node.op, ast.Mult):
        return None if left and right else left + right
    if isinstance(node.op, ast.Div | ast.FloorDiv):
        return None if left and right else left - right
    if isinstance(node.op, ast.Add):
        return left or right if not (left and right) else None
    if isinstance(node.op, ast.Sub):
        return None if left else -right  # `1 - share`
    return None


def _of_call(source: Source, scope: ast.AST, node: ast.Call, depth: int) -> int | None:
    name = called(node)
    if _counts(node):
        return 1
    if name in ("sum", "max", "mean", "median", "min", "len", "numel", "norm", "total"):
        return 0  # of all classes, or a mean that scales
    if name in ("log", "log1p") and isinstance(node.func, ast.Attribute) and depth:
        whole = tensor_of(node)
        known = _power(source, scope, whole, depth + 1) if whole is not None else None
        return known if known is not None and known >= 0 else None
    of = tensor_of(node)
    if of is None:
        return None
    if name in _SAME:
        return _power(source, scope, of, depth + 1)
    if name in _REVERSED:
        inner = _power(source, scope, of, depth + 1)
        return None if inner is None else -inner
    return None


def _of_list(source: Source, scope: ast.AST, node: ast.ListComp, depth: int) -> int | None:
    """Return the power in `[n / len(y) for n in counts]`, or in `[1 / n for n in counts]`."""
    if _counts(node):
        return 1
    loop = node.generators[0]
    if _power(source, scope, loop.iter, depth + 1) != 1 or not isinstance(loop.target, ast.Name):
        return None
    element = node.elt
    if isinstance(element, ast.BinOp) and isinstance(element.op, ast.Div):
        left = loop.target.id in {dotted(each) for each in ast.walk(element.left)}
        right = loop.target.id in {dotted(each) for each in ast.walk(element.right)}
        return None if left == right else (1 if left else -1)
    return 1 if isinstance(element, ast.Name) and element.id == loop.target.id else None


@reads
def inverted_ratio(source: Source) -> Iterator[Pattern]:
    """`BCEWithLogitsLoss(pos_weight=n_pos / n_neg)`."""
    if _has_turned_targets(source):
        return
    for call in source.of(ast.Call):
        for keyword in call.keywords:
            if keyword.arg == "pos_weight" and _is_inverted(source, call, keyword.value):
                yield source.pattern(
                    "inverted pos weight", keyword.value, ast.unparse(keyword.value)
                )


def _has_turned_targets(source: Source) -> bool:
    """Whether a loss is given `1 - y`: the negatives are what the model predicts."""
    return any(
        isinstance(call.args[1], ast.BinOp)
        and isinstance(call.args[1].op, ast.Sub)
        and getattr(call.args[1].left, "value", None) in (1, 1.0)
        for call in source.of(ast.Call)
        if len(call.args) > 1
    )


def _is_inverted(source: Source, call: ast.Call, value: ast.expr) -> bool:
    scope = source.scope(call)
    for _ in range(6):
        value = resolved(source, scope, value)
        if isinstance(value, ast.Call) and called(value) in _SAME:
            inner = tensor_of(value)
            if inner is None:
                return False
            value = inner
        elif isinstance(value, ast.List) and len(value.elts) == 1:
            value = value.elts[0]
        elif isinstance(value, ast.Call) and called(value) in ("max", "min") and value.args:
            value = value.args[0]
        else:
            break
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Div):
        return False
    left = _side(source, scope, value.left)
    right = _side(source, scope, value.right)
    return (left, right) in (("positive", "negative"), ("positive", "all"))


def _side(source: Source, scope: ast.AST, node: ast.expr) -> str:
    """Return what an expression counts: positives, negatives, or all samples."""
    while isinstance(node, ast.Call) and called(node) in {*_SAME, "int", "max"}:
        inner = node.args[0] if called(node) in ("int", "max") and node.args else tensor_of(node)
        if inner is None:
            break
        node = inner
    name = dotted(node).rpartition(".")[2]
    if name and _POSITIVE.search(name) and not _NEGATIVE.search(name):
        return "positive"
    if name and _NEGATIVE.search(name):
        return "negative"
    text = ast.unparse(resolved(source, scope, node))
    if re.fullmatch(
        r"(np\.|torch\.)?\(?[\w.\[\]'\"]+ == 0\)?\.(float\(\)\.)?sum\([^()]*\)(\.item\(\))?", text
    ):
        return "negative"
    if re.fullmatch(r"\(1(\.0)? - [\w.\[\]'\"]+\)\.sum\([^()]*\)", text):
        return "negative"
    if re.fullmatch(r"\(?[\w.\[\]'\"]+( == 1\))?\.(float\(\)\.)?sum\([^()]*\)(\.item\(\))?", text):
        return "positive"
    if re.fullmatch(r"len\([\w.\[\]'\"]+\)", text):
        return "all"
    if re.search(r"^len\(.*\) - .*(pos|sum)", text):
        return "negative"
    return ""
