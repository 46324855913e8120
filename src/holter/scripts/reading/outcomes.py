"""Targets that are missing or in another unit, and terms of a loss without a bound."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source import Pattern, Source, called, dotted
from holter.scripts.reading.values import resolved

_LOG_VARIANCE = re.compile(
    r"^log_?(var|vars|sigma|sigmas|variances?|s|scale|noise)\d*$|^s?log_?vars?_\w+$"
)
_LOSSES = {
    "mse_loss",
    "l1_loss",
    "smooth_l1_loss",
    "huber_loss",
    "MSELoss",
    "L1Loss",
    "HuberLoss",
    "SmoothL1Loss",
    "cross_entropy",
    "binary_cross_entropy_with_logits",
}
_OVERLAP = re.compile(r"dice|iou|jaccard|tversky", re.I)
_SQUASHING = {"sigmoid", "softmax", "Sigmoid", "Softmax", "exp", "log_softmax", "logsigmoid"}
_FROM_LOGITS = {
    "cross_entropy",
    "binary_cross_entropy_with_logits",
    "CrossEntropyLoss",
    "BCEWithLogitsLoss",
    "sigmoid_focal_loss",
}


def gaps_as_targets(source: Source) -> Iterator[Pattern]:
    """`F.mse_loss(pred, torch.nan_to_num(target))`: missing targets are trained to be zero."""
    for call in source.of(ast.Call):
        name = called(call)
        if name not in _LOSSES and not re.search(r"criterion|loss_fn", name):
            continue
        if len(call.args) < 2:
            continue
        is_each = any(
            k.arg == "reduction" and getattr(k.value, "value", "") == "none" for k in call.keywords
        )
        target = resolved(source, source.scope(call), call.args[1])
        masked = re.search(r"mask|known|valid|isnan", ast.unparse(call))
        if called(target) == "nan_to_num" and not is_each and not masked:
            yield source.pattern("gaps as targets", call, ast.unparse(target))


def reversed_regulariser(source: Source) -> Iterator[Pattern]:
    """`exp(-log_var) * mse - 0.5 * log_var`: the loss falls without bound as the weights vanish."""
    nodes: list[ast.Assign | ast.Return] = [*source.of(ast.Assign), *source.of(ast.Return)]
    for node in nodes:
        if node.value is None:
            continue
        signs = list(_signed(node.value, 1))
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


def _signed(node: ast.expr, sign: int) -> Iterator[tuple[int, ast.expr]]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        yield from _signed(node.left, sign)
        yield from _signed(node.right, -sign if isinstance(node.op, ast.Sub) else sign)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield from _signed(node.operand, -sign)
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


def overlap_of_logits(source: Source) -> Iterator[Pattern]:
    """`dice_loss(logits, mask)` that multiplies logits, which cross entropy is given as well."""
    for function in source.of(ast.FunctionDef):
        if not _OVERLAP.search(function.name) or not function.args.args:
            continue
        first = function.args.args[0].arg
        if first == "self" or any(
            called(each) in _SQUASHING or called(each) in ("argmax", "round")
            for each in source.walk(function)
        ):
            continue
        if any(
            isinstance(each, ast.Compare)
            and first in {dotted(part) for part in ast.walk(each.left)}
            for each in source.walk(function)
        ):
            continue
        if not _is_multiplied(source, function, first):
            continue
        for call in source.of(ast.Call):
            if called(call) != function.name or not call.args:
                continue
            given = dotted(call.args[0])
            if given and _goes_to_entropy(source, source.scope(call), given):
                yield source.pattern("overlap of logits", call, given)
                break


def _is_multiplied(source: Source, function: ast.FunctionDef, name: str) -> bool:
    return any(
        isinstance(node.op, ast.Mult) and name in {dotted(node.left), dotted(node.right)}
        for node in source.of(ast.BinOp)
        if source.scope(node) is function
    )


def _goes_to_entropy(source: Source, scope: ast.AST, name: str) -> bool:
    """Whether the same tensor is given to a loss that expects logits."""
    for call in source.of(ast.Call):
        if source.scope(call) is not scope or not call.args or dotted(call.args[0]) != name:
            continue
        if called(call) in _FROM_LOGITS:
            return True
        made = source.named(called(call))
        if made and all(called(each) in _FROM_LOGITS for each in made):
            return True
    return False


def unscaled_predictions(source: Source) -> Iterator[Pattern]:
    """`exp(model(x))` where the targets are `(log(y) - mean) / std`, and nothing undoes it."""
    for scope in source.scopes:
        for name, value, _ in source.assigned(scope):
            scale = _standardised(source, scope, value)
            if not scale or _is_multiplied_by(source, scale):
                continue
            for call in source.of(ast.Call):
                if called(call) in ("exp", "expm1") and call.args:
                    inner = resolved(source, source.scope(call), call.args[0])
                    names = {dotted(each) for each in ast.walk(inner)}
                    made = ast.unparse(inner)
                    if re.match(r"(self\.)?(model|net|mlp)\(", made) and scale not in names:
                        yield source.pattern("unscaled predictions", call, f"{name}, {scale}")
                        return


def _standardised(source: Source, scope: ast.AST, value: ast.expr) -> str:
    """Return the deviation that logarithms are divided by: `(log_y - mean) / std`."""
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Div):
        return ""
    if not isinstance(value.left, ast.BinOp) or not isinstance(value.left.op, ast.Sub):
        return ""
    of, scale = value.left.left, dotted(value.right)
    spread = resolved(source, scope, value.right)
    logs = ast.unparse(resolved(source, scope, of))
    is_log = re.search(r"\blog(1p)?\(", logs)
    return scale if is_log and called(spread) == "std" else ""


def _is_multiplied_by(source: Source, scale: str) -> bool:
    last = scale.rpartition(".")[2]
    return any(
        isinstance(node.op, ast.Mult)
        and last in {dotted(each).rpartition(".")[2] for each in (node.left, node.right)}
        for node in source.of(ast.BinOp)
    ) or "inverse_transform" in source.code(source.tree)
