"""Temperatures that soften one of two distributions that are compared."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source import Function, Pattern, Source, called, dotted

_TEMPERATURE = re.compile(r"(^|_)(temp|temperature|tau|t)(_|$)|^temp", re.I)
_CERTAIN = re.compile(r"^(temp|temperature|kd_temp(erature)?|kd_t|distill_temp|T)$")
_SOFTMAX = {"softmax", "log_softmax"}
_COMPARED = 2


def one_sided(source: Source) -> Iterator[Pattern]:
    """`kl_div(log_softmax(student), softmax(teacher / 4))`: one of both is softened."""
    for call in source.of(ast.Call):
        if called(call) not in ("kl_div", "KLDivLoss", "kl"):
            continue
        given = [*call.args, *(each.value for each in call.keywords if each.arg == "target")]
        if len(given) < _COMPARED:
            continue
        scope = source.scope(call)
        first, second = (_scores(source, scope, each) for each in given[:_COMPARED])
        if first is None or second is None:
            continue
        for plain, other in ((first, second), (second, first)):
            soft = _temperature(source, other)
            if soft and not _may_be_divided(source, scope, plain):
                yield source.pattern("one-sided temperature", plain, soft)


def _scores(source: Source, scope: ast.AST, value: ast.expr) -> ast.expr | None:
    """Return what a distribution is the softmax of, if that is plain to see."""
    if isinstance(value, ast.Name):
        made = [each for name, each, _ in source.assigned(scope) if name == value.id]
        if len(made) != 1 or source.stores(scope, value.id) != 1:
            return None
        value = made[0]
    while isinstance(value, ast.Call) and called(value) in ("detach", "log", "clamp", "exp"):
        if not isinstance(value.func, ast.Attribute) or dotted(value.func.value) == "torch":
            return None
        value = value.func.value
    if not isinstance(value, ast.Call) or called(value) not in _SOFTMAX:
        return None
    if isinstance(value.func, ast.Attribute) and dotted(value.func.value) not in (
        *("F", "torch", "functional", "nn.functional", "torch.nn.functional"),
    ):
        return value.func.value  # `(logits / 4).softmax(-1)`
    return value.args[0] if value.args else None


def _temperature(source: Source, scores: ast.expr) -> str:
    """Return the number above 1 by which scores are divided, as it is written, or ""."""
    if not isinstance(scores, ast.BinOp) or not isinstance(scores.op, ast.Div):
        return ""
    by = scores.right
    number = _number(source, by)
    if number is None and _CERTAIN.match(_name(by)):
        return ast.unparse(by)  # no number that the file says, but a name that tells
    is_named = isinstance(by, ast.Constant) or bool(_TEMPERATURE.search(_name(by)))
    return ast.unparse(by) if is_named and number is not None and number > 1 else ""


def _name(node: ast.expr) -> str:
    """Return the last part of a name, or the key of `cfg["temperature"]`."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return str(node.slice.value)
    return dotted(node).rpartition(".")[2]


def _number(source: Source, node: ast.expr) -> float | None:
    """Return the one number that a name has in a file: a constant, or a default."""
    if isinstance(node, ast.Constant):
        return float(node.value) if isinstance(node.value, int | float) else None
    name = _name(node)
    found: list[ast.expr] = []
    for assign in source.of(ast.Assign):
        for target in assign.targets:
            parts = [(target, assign.value)]
            if isinstance(target, ast.Tuple) and isinstance(assign.value, ast.Tuple):
                parts = list(zip(target.elts, assign.value.elts, strict=False))
            found += [value for each, value in parts if dotted(each).rpartition(".")[2] == name
                      and not (isinstance(value, ast.Name) and value.id == name)]  # fmt: skip
    for function in source.of(*Function.__args__):
        arguments = function.args.args
        defaults = function.args.defaults
        pairs = zip(arguments[len(arguments) - len(defaults) :], defaults, strict=True)
        found += [value for each, value in pairs if each.arg == name]
    for table in source.of(ast.Dict):
        pairs_of = zip(table.keys, table.values, strict=True)
        found += [value for key, value in pairs_of if getattr(key, "value", None) == name]
    numbers = {each.value for each in found if isinstance(each, ast.Constant)
               and isinstance(each.value, int | float)}  # fmt: skip
    return float(numbers.pop()) if len(numbers) == 1 and len(found) >= 1 else None


def _may_be_divided(source: Source, scope: ast.AST, scores: ast.expr) -> bool:
    """Whether scores may have been divided before: in this function, or in a larger expression."""
    if not isinstance(scores, ast.Name | ast.Attribute | ast.Call):
        return True
    if any(isinstance(each, ast.BinOp) for each in source.walk(scores)):
        return True
    name = dotted(scores)
    return any(
        isinstance(each, ast.BinOp | ast.AugAssign)
        for other, value, _ in source.assigned(scope)
        if other == name
        for each in source.walk(value)
    ) or any(
        isinstance(node, ast.AugAssign) and dotted(node.target) == name
        for node in source.walk(scope)
    )


def tempered_labels(source: Source) -> Iterator[Pattern]:
    """`cross_entropy(student / T, labels)` beside a softened divergence from a teacher."""
    for scope in source.scopes:
        calls = [each for each in source.walk(scope) if isinstance(each, ast.Call)
                 and source.scope(each) is scope]  # fmt: skip
        soft = [each for each in calls if called(each) in ("kl_div", "KLDivLoss", "kl")]
        if not soft or not re.search(r"teach|(^|\W|_)t_?(logits|out)", source.code(scope), re.I):
            continue
        for call in calls:
            if called(call) not in ("cross_entropy", "nll_loss") or len(call.args) < _COMPARED:
                continue
            scores, labels = call.args[:_COMPARED]
            scores = _scores(source, scope, scores) or _value(source, scope, scores)
            by = scores.right if isinstance(scores, ast.BinOp) else None
            is_softened = isinstance(scores, ast.BinOp) and isinstance(scores.op, ast.Div)
            name = by is not None and _name(by)
            if is_softened and name and _TEMPERATURE.search(name) and _is_hard(source, labels):
                yield source.pattern("softened labels", call, ast.unparse(scores.right))  # type: ignore[attr-defined]


def _value(source: Source, scope: ast.AST, node: ast.expr) -> ast.expr:
    """Return what a name is assigned, if that is once in its scope."""
    if isinstance(node, ast.Name) and source.stores(scope, node.id) == 1:
        made = [each for name, each, _ in source.assigned(scope) if name == node.id]
        return made[0] if made else node
    return node


def _is_hard(source: Source, labels: ast.expr) -> bool:
    """Whether targets are labels as they come: a parameter or a loop variable of such a name."""
    scope = source.scope(labels)
    is_made = any(name == dotted(labels) for name, _, _ in source.assigned(scope))
    return (
        isinstance(labels, ast.Name)
        and not is_made
        and bool(re.match(r"(y|yb|ys|labels?|targets?|target_ids|classes|gold|truth)$", labels.id))
    )
