"""Learned weights of losses: log-variances without a penalty or of the wrong sign."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.expressions import number, resolved, summands, tensor_of
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Pattern, Source, called, dotted

_LOSS = re.compile(
    r"loss|(^|_)(l|mse|nll|ce|bce|parts?|terms?|tasks?|errors?|losses)(_|$|\d)", re.I
)
_LOG_VARIANCE = re.compile(
    r"^log_?(var|vars|sigma|sigmas|variances?|s|scale|noise)\d*$|^s?log_?vars?_\w+$"
)


@reads
def unpenalised(source: Source) -> Iterator[Pattern]:
    """`(torch.exp(-s) * losses).sum()` without `+ s`: the log-variances grow without a bound."""
    learned = _learned(source)
    for call in source.of(ast.Call):
        if called(call) != "exp" or not learned:
            continue
        inner = tensor_of(call)
        sign, name = _signed(source, inner) if inner is not None else (0, "")
        if not sign or name.split("[")[0].rpartition(".")[2] not in learned:
            continue
        product = source.parent(call)
        while isinstance(product, ast.BinOp) and isinstance(product.op, ast.Mult) and isinstance(
            above := source.parent(product), ast.BinOp
        ) and isinstance(above.op, ast.Mult):  # fmt: skip
            product = above
        if not isinstance(product, ast.BinOp) or not isinstance(product.op, ast.Mult):
            continue
        if not _weighs_loss(source, product, call):
            continue
        total = source.parent(product)
        added = _added(source, call, name)
        if added == 0 and sign < 0 and not isinstance(total, ast.Return):
            yield source.pattern("weights without penalty", product, name)
        elif added > 0 and sign > 0:
            yield source.pattern("sign of weights", call, name)


def _learned(source: Source) -> set[str]:
    """Return the names of parameters of which a file makes weights of losses."""
    return {
        dotted(each).rpartition(".")[2]
        for assign in source.of(ast.Assign)
        for each in assign.targets
        if any(called(part) in ("Parameter", "ParameterList", "ParameterDict")
               for part in source.walk(assign.value))
        or re.search(r"requires_grad=True", ast.unparse(assign.value))
    } - {""}  # fmt: skip


def _signed(source: Source, node: ast.expr) -> tuple[int, str]:
    """Return the sign and the name of `-s`, `-2 * s` or `-log_vars[k]`, through one name."""
    sign = 1
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        sign, node = -1, node.operand
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        for factor, other in ((node.left, node.right), (node.right, node.left)):
            value = number(source, factor)
            if value:
                sign, node = (sign if value > 0 else -sign), other
                break
    held = node.value if isinstance(node, ast.Subscript) else node
    if isinstance(held, ast.Name):
        scope = source.scope(held)
        values = [value for each, value, _ in source.assigned(scope) if each == held.id]
        if len(values) == 1 and (dotted(values[0]) or isinstance(values[0], ast.Subscript)):
            held = values[0]
    bare = held.value if isinstance(held, ast.Subscript) else held
    name = ast.unparse(held) if dotted(bare) else ""
    return sign, name


def _weighs_loss(source: Source, product: ast.BinOp, call: ast.Call) -> bool:
    """Whether the other factor is a loss, by its name or by what is called."""
    for part in source.walk(product):
        if part is call or call in set(source.above(part)):
            continue
        name = called(part) or dotted(part).rpartition(".")[2]
        if name and _LOSS.search(name):
            return True
    return False


def _added(source: Source, call: ast.Call, name: str) -> int:
    """Return the sign with which a log-variance is added in the same function, 0 if it is not."""
    scope = source.scope(call)
    last = name.split("[", maxsplit=1)[0].rpartition(".")[2]
    names = {last}
    for each, value, _ in source.assigned(scope):
        parts = source.walk(value)
        is_of = last in {dotted(part).rpartition(".")[2] for part in parts}
        if is_of and not any(called(part) == "exp" for part in parts):
            names.add(each)
    for node in source.walk(scope):
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add | ast.Sub):
            terms = list(summands(node.value, 1 if isinstance(node.op, ast.Add) else -1))
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
            terms = list(summands(node))
        elif called(node) in ("sum", "mean", "append", "stack") and isinstance(node, ast.Call):
            terms = [(1, each) for each in (tensor_of(node), *node.args) if each is not None]
        else:
            continue
        for sign, term in terms:
            bare = {dotted(part).rpartition(".")[2] for part in source.walk(term)}
            in_exponent = any(called(part) == "exp" for part in source.walk(term))
            if bare & names and not in_exponent:
                return sign
    return 0


@reads
def reversed_regulariser(source: Source) -> Iterator[Pattern]:
    """`exp(-log_var) * mse - 0.5 * log_var`: the loss falls without bound as the weights vanish."""
    nodes: list[ast.Assign | ast.Return] = [*source.of(ast.Assign), *source.of(ast.Return)]
    for node in nodes:
        if node.value is None:
            continue
        signs = list(_signed_variances(node.value, 1))
        scope = source.scope(node)
        weighted = {sign for sign, term in signs if _is_weighted(source, scope, term)}
        plain = {
            sign
            for sign, term in signs
            if _names_variance(term)
            and not _is_weighted(source, scope, term)
            and "exp(" not in ast.unparse(term)
        }
        if weighted == {1} and plain == {-1}:
            yield source.pattern("reversed regulariser", node, "log_var")


def _signed_variances(node: ast.expr, sign: int) -> Iterator[tuple[int, ast.expr]]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        yield from _signed_variances(node.left, sign)
        yield from _signed_variances(node.right, -sign if isinstance(node.op, ast.Sub) else sign)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield from _signed_variances(node.operand, -sign)
    else:
        factor = node
        while isinstance(factor, ast.BinOp) and isinstance(factor.op, ast.Mult | ast.Div):
            factor = factor.left
        is_negative = isinstance(factor, ast.UnaryOp) and isinstance(factor.op, ast.USub)
        yield -sign if is_negative else sign, node


def _names_variance(node: ast.expr) -> bool:
    return any(
        _LOG_VARIANCE.match(dotted(each).rpartition(".")[2])
        for each in ast.walk(node)
        if dotted(each)
    )


def _is_weighted(source: Source, scope: ast.AST, term: ast.expr) -> bool:
    """Whether a term is multiplied by `exp(-log_var)`."""
    if not isinstance(term, ast.BinOp) or not isinstance(term.op, ast.Mult):
        return False
    for part in ast.walk(term):
        value = resolved(source, scope, part) if isinstance(part, ast.Name) else part
        if called(value) == "exp" and isinstance(value, ast.Call):
            inner = value.args[0] if value.args else getattr(value.func, "value", value)
            if _names_variance(inner) and any(
                isinstance(each, ast.USub) for each in ast.walk(inner)
            ):
                return True
    return False
