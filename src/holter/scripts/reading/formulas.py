"""Known formulas with one operation that is another than theirs."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.origins import passed
from holter.scripts.reading.source import Pattern, Source, called, dotted, parameters_of
from holter.scripts.reading.values import made_once, number, resolved, tensor_of

_TEMPERATURE = re.compile(r"^(temp|temperature|tau|t)$|_(temp|temperature|tau)$|^(temp|tau)_", re.I)
_SCALE = re.compile(r"^(log|logit)_?scale$", re.I)
_PRODUCTS = {"matmul", "mm", "bmm", "cosine_similarity", "einsum", "cdist"}
_SOFT = re.compile(r"cross_entropy|softmax|logsumexp|criterion|loss_fn|nll_loss", re.I)
_EVENT = re.compile(r"(^|_)(event|events|died|dead|death|observed|failed|delta)(_|$)", re.I)
_CENSOR = re.compile(r"(^|_)(censor\w*|cens)(_|$)|censor", re.I)
_OVERLAP = re.compile(r"dice|iou|jaccard|tversky|ssim", re.I)
_LOSSES = re.compile(r"cross_entropy|bce|nll|mse|loss|focal|ce$", re.I)


def multiplied(source: Source) -> Iterator[Pattern]:
    """`cross_entropy(a @ b.t() * 0.1, y)`: similarities are divided by a temperature."""
    for node in source.of(ast.BinOp):
        if isinstance(node.op, ast.Mult):
            for scores, by in ((node.left, node.right), (node.right, node.left)):
                name = dotted(by).rpartition(".")[2]
                value = number(source, by) if _TEMPERATURE.search(name) else None
                if value is not None and 0 < value < 1 and _are_logits(source, node, scores):
                    yield source.pattern("multiplied temperature", node, name)
        elif isinstance(node.op, ast.Div) and _are_logits(source, node, node.left):
            name = _inverse(source, node.right)
            if name:
                yield source.pattern("divided scale", node, name)


def _inverse(source: Source, by: ast.expr) -> str:
    """Return the name of `log_scale` if an expression is its exponential, or always given that."""
    scope = source.scope(by)
    if isinstance(by, ast.Name) and by.id in parameters_of(scope):
        given = [each for each in passed(source, scope, by.id) if not isinstance(each, ast.Name)]
        names = {_inverse(source, each) for each in given}
        return names.pop() if len(names) == 1 else ""
    for node in source.walk(resolved(source, scope, by)):
        if called(node) == "exp" and isinstance(node, ast.Call):
            inner = node.func.value if isinstance(node.func, ast.Attribute) else node
            inner = node.args[0] if node.args else inner
            name = dotted(inner).rpartition(".")[2]
            if _SCALE.match(name):
                return name
    return ""


def _are_logits(source: Source, node: ast.BinOp, scores: ast.expr) -> bool:
    """Whether scores are products of vectors, and what is made of them goes to a softmax."""
    scope = source.scope(node)
    if not _is_product(source, scope, scores):
        return False
    for above in source.above(node):
        if isinstance(above, ast.Call) and _SOFT.search(called(above)):
            return True
        if isinstance(above, ast.Return):
            return _is_loss_input(source, scope)
        if isinstance(above, ast.Assign):
            names = {dotted(target) for target in above.targets}
            is_returned = any(names & _names(each) for each in source.walk(scope)
                              if isinstance(each, ast.Return))  # fmt: skip
            if is_returned and _is_loss_input(source, scope):
                return True
            return any(
                _SOFT.search(called(call))
                and any(dotted(each) in names for part in call.args for each in source.walk(part))
                for call in source.walk(scope)
                if isinstance(call, ast.Call)
            )
    return False


def _names(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _is_loss_input(source: Source, scope: ast.AST) -> bool:
    """Whether what a function of the file returns goes to a softmax: by a name, or at once."""
    name = getattr(scope, "name", "")
    if not name or name == "forward":
        return bool(name) and any(_SOFT.search(called(call)) for call in source.of(ast.Call))
    return any(
        called(each) == name
        for call in source.of(ast.Call)
        if _SOFT.search(called(call))
        for part in call.args
        for each in source.walk(part)
    )


def _is_product(source: Source, scope: ast.AST, scores: ast.expr) -> bool:
    """Whether an expression holds a matrix product, by up to two names."""
    seen: set[str] = set()
    parts: list[ast.AST] = [scores]
    for _ in range(3):
        nodes = [node for part in parts for node in source.walk(part)]
        if any(called(node) in _PRODUCTS or (isinstance(node, ast.BinOp) and isinstance(
                node.op, ast.MatMult)) for node in nodes):  # fmt: skip
            return True
        names = {node.id for node in nodes if isinstance(node, ast.Name)} - seen
        seen |= names
        parts = [value for name in names if (value := made_once(source, scope, name)) is not None]
    return False


def censored_events(source: Source) -> Iterator[Pattern]:
    """`event = death > censoring`: an event is observed if it comes before the censoring."""
    for scope in source.scopes:
        for name, value, statement in source.assigned(scope):
            compare = value
            while isinstance(compare, ast.Call):
                inner = tensor_of(compare)
                if inner is None or (called(compare) == "where" and not _is_indicator(compare)):
                    break
                compare = inner
            if not isinstance(compare, ast.Compare) or len(compare.ops) != 1:
                continue
            if not _EVENT.search(name) or _CENSOR.search(name):
                continue
            left, right = dotted(compare.left), dotted(compare.comparators[0])
            is_left, is_right = bool(_CENSOR.search(left)), bool(_CENSOR.search(right))
            if not left or not right or is_left == is_right:
                continue
            is_more = isinstance(compare.ops[0], ast.Gt | ast.GtE)
            is_less = isinstance(compare.ops[0], ast.Lt | ast.LtE)
            if (is_right and is_more) or (is_left and is_less):
                yield source.pattern("censored events", statement, name)


def _is_indicator(call: ast.Call) -> bool:
    """Whether a call is such as `where(condition, 1, 0)`."""
    return [getattr(each, "value", None) for each in call.args[1:]] == [1, 0]


def minimised_overlap(source: Source) -> Iterator[Pattern]:
    """`cross_entropy(x, y) + dice(x, y)` of a function that returns a score, not `1 - score`."""
    scores = {function.name for function in source.of(ast.FunctionDef)
              if _OVERLAP.search(function.name) and _returns_score(function)}  # fmt: skip
    sums: list[ast.BinOp | ast.AugAssign] = [*source.of(ast.BinOp), *source.of(ast.AugAssign)]
    for node in sums:
        if not isinstance(node.op, ast.Add):
            continue
        sides = (
            (node.left, node.right) if isinstance(node, ast.BinOp) else (node.target, node.value)
        )
        for side, other in (sides, sides[::-1]):
            factors = [side]
            if isinstance(side, ast.BinOp) and isinstance(side.op, ast.Mult):
                factors = [side.left, side.right]
            if any(isinstance(each, ast.UnaryOp) for each in factors):
                continue
            name = next((called(each) for each in factors if called(each) in scores), "")
            if name and _LOSSES.search(_head(source, other)):
                yield source.pattern("minimised overlap", node, name)


def _head(source: Source, node: ast.expr) -> str:
    """Return what an expression calls, or the name that it is."""
    while isinstance(node, ast.BinOp):
        node = node.left if not isinstance(node.left, ast.Constant) else node.right
    value = resolved(source, source.scope(node), node)
    return f"{dotted(node)} {called(value)}"


def _returns_score(function: ast.FunctionDef) -> bool:
    """Whether a function divides an overlap by a size, and nowhere subtracts from 1 or negates."""
    divides = False
    for node in ast.walk(function):
        if isinstance(node, ast.BinOp):
            divides = divides or isinstance(node.op, ast.Div)
            if isinstance(node.op, ast.Sub) and isinstance(node.left, ast.Constant):
                return False
        is_minus = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
        if is_minus and not isinstance(getattr(node, "operand", None), ast.Constant):
            return False
        if called(node) in ("log", "neg", "sub", "rsub"):
            return False
    return divides
