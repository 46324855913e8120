"""Likelihoods and divergences that enter a loss with the opposite sign, or on another scale."""

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from holter.scripts.reading.source.expressions import resolved, tensor_of, unsigned
from holter.scripts.reading.source.objective import Term, objectives
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Function, Pattern, Source, called, dotted

_LOG = re.compile(r"log_?(var|sigma|std|scale)|lv$", re.I)
_LOG_DET = re.compile(r"log_?_?(abs)?_?det|(^|_)s?ldj?(_|$)|jacob", re.I)
_ELEMENTWISE = {
    *("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"),
    *("binary_cross_entropy", "binary_cross_entropy_with_logits"),
}
_ELEMENTWISE_CLASSES = {"MSELoss", "L1Loss", "SmoothL1Loss", "BCELoss", "BCEWithLogitsLoss"}
_REDUCTIONS = {"reduction", "size_average", "reduce"}
_NEARLY_FULL = 0.25  # weight of a divergence that is taken as that of a bound, which is 0.5


@reads
def reversed_divergence(source: Source) -> Iterator[Pattern]:
    """`0.5 * (1 + logvar - mu ** 2 - exp(logvar)).sum()` is minimised: its sign is missing."""
    for terms in objectives(source):
        for variance in _divergences(terms):
            if variance.sign < 0:
                yield source.pattern("reversed divergence", variance.node, "KL")


def _divergences(terms: list[Term]) -> Iterator[Term]:
    """Yield the variance of each divergence from a standard normal distribution."""
    for one in terms:
        if not one.sign or not isinstance(one.node, ast.Constant) or one.node.value != 1:
            continue
        beside = [term for term in terms if term.reductions == one.reductions]
        positive = [term for term in beside if term.sign == -one.sign
                    and term.frame == one.frame and term.weight == one.weight
                    and _is_positive(term.node)]  # fmt: skip
        has_log = any(term.sign == one.sign and _is_log(term) for term in beside)
        if len(positive) == 2 and has_log:
            yield positive[0]


def _is_log(term: Term) -> bool:
    names = [dotted(term.node), *(name for name, _ in term.names)]
    return called(term.node) == "log" or any(map(_LOG.search, names))


def _is_positive(node: ast.expr) -> bool:
    return called(node) == "exp" or squared(node) is not None


def squared(node: ast.expr) -> ast.expr | None:
    """Return `x` of `x ** 2`, `x.pow(2)` or `x.square()`, or None."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        return node.left if ast.unparse(node.right) in ("2", "2.0") else None
    if isinstance(node, ast.Call) and called(node) in ("pow", "square"):
        is_two = called(node) == "square" or ast.unparse(node.args[-1]) in ("2", "2.0")
        return tensor_of(node) if is_two else None
    return None


@reads
def unequal_reductions(source: Source) -> Iterator[Pattern]:
    """`F.mse_loss(x_hat, x) + kl.sum(1).mean()`: a mean of all elements beside a sum."""
    for terms in objectives(source):
        divergences = list(_divergences(terms))
        if len(divergences) != 1 or divergences[0].sign < 0 or divergences[0].is_divided:
            continue
        divergence = divergences[0]
        if (divergence.weight or 0) < _NEARLY_FULL:
            continue
        names = [called(call) for call in divergence.reductions]
        is_whole = names == ["sum"] and not _axes(divergence.reductions[0])
        losses = [term for term in terms if term.sign > 0 and term.weight == 1
                  and _options(source, term.node) is not None
                  and not _is_scaled(source, term)]  # fmt: skip
        if len(losses) != 1:
            continue
        loss = losses[0]
        of_loss = [called(call) for call in loss.reductions]
        if (is_whole or names == ["mean", "sum"]) and _is_averaged(source, loss):
            yield source.pattern("averaged reconstruction", loss.node, called(loss.node))
        elif is_whole and of_loss == ["mean", "sum"]:
            yield source.pattern("summed divergence", divergence.reductions[0], "KL")


def _axes(call: ast.Call) -> list[ast.expr]:
    """Return what a reduction is given besides the tensor."""
    given = [keyword.value for keyword in call.keywords]
    return [*given, *(each for each in call.args if each is not tensor_of(call))]


def _options(source: Source, node: ast.expr) -> list[ast.keyword] | None:
    """Return the keywords of an elementwise loss, or None if a node is none."""
    if called(node) in _ELEMENTWISE and isinstance(node, ast.Call):
        return node.keywords
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return None
    made = resolved(source, source.scope(node), node.func)
    is_loss = isinstance(made, ast.Call) and called(made) in _ELEMENTWISE_CLASSES
    return made.keywords if is_loss else None  # type: ignore[attr-defined]


def _is_averaged(source: Source, loss: Term) -> bool:
    """Whether a loss is the mean over all elements, of a sample or of the batch."""
    options = _options(source, loss.node) or []
    if any(option.arg in _REDUCTIONS or option.arg is None for option in options):
        means = [called(call) for call in loss.reductions]
        asked = [ast.unparse(option.value) for option in options if option.arg in _REDUCTIONS]
        return bool(means) and set(means) == {"mean"} and asked == ["'none'"]
    return not loss.reductions


def _is_scaled(source: Source, term: Term) -> bool:
    """Whether a term is multiplied by anything on its way."""
    for above in source.above(term.node):
        if isinstance(above, ast.stmt):
            return False
        if isinstance(above, ast.BinOp) and isinstance(above.op, ast.Mult | ast.Div):
            return True
    return False


@reads
def reversed_determinant(source: Source) -> Iterator[Pattern]:
    """`z = x * exp(s) + t` whose log-determinant enters the likelihood as `-s.sum()`."""
    layers = [layer for body in source.module_classes.values()
              if (layer := _scaling(source, body)) is not None]  # fmt: skip
    if not layers or len({layer.agrees for layer in layers}) > 1 or _turns(source):
        return
    for terms in objectives(source):
        has_latent = any(
            (term.sign > 0 and squared(term.node) is not None)
            or (term.sign < 0 and called(term.node) == "log_prob")
            for term in terms
        )
        signs = {sign for term in terms
                 for name, sign in (*term.names, (dotted(term.node), term.sign))
                 if sign and _LOG_DET.search(name)}  # fmt: skip
        if has_latent and len(signs) == 1 and signs.pop() == layers[0].agrees:
            yield source.pattern("reversed determinant", layers[0].log_scale, "log-determinant")


class _Scaling(NamedTuple):
    agrees: int  # 1 if the log-determinant is that of the scaling, -1 if that of its inverse
    log_scale: ast.expr


def _scaling(source: Source, body: ast.ClassDef) -> _Scaling | None:
    """Return how `forward` scales its input, and which log-determinant it returns."""
    methods = {each.name: each for each in body.body if isinstance(each, Function)}
    forward = methods.get("forward")
    pairs = {source.scope(node): node.value for node in source.of(ast.Return)
             if isinstance(node.value, ast.Tuple) and len(node.value.elts) == 2}  # fmt: skip
    # A density may be that of an inverse, which has a log-determinant of its own.
    if forward is None or [each for each in methods.values() if each in pairs
                           and not _is_helper(source, each, forward)] != [forward]:  # fmt: skip
        return None
    values = pairs[forward]
    sign, total = unsigned(resolved(source, forward, values.elts[1]))
    if not isinstance(total, ast.Call) or called(total) != "sum":
        return None
    inner, summed = unsigned(tensor_of(total))
    scales = {_exponent(source, call) for call in source.of(ast.Call)
              if called(call) == "exp" and source.scope(call) is forward}  # fmt: skip
    if len(scales) != 1 or summed is None or not dotted(summed):
        return None
    scale, name = scales.pop()
    return _Scaling(sign * inner * scale, values) if scale and name == dotted(summed) else None


def _is_helper(source: Source, method: Function, forward: Function) -> bool:
    """Whether a method returns scale and shift to `forward`, and transforms nothing itself."""
    calls = source.walk(forward)
    return (
        method is not forward
        and not any(called(node) in ("exp", "log") for node in source.walk(method))
        and any(called(node) == method.name for node in calls)
    )


def _exponent(source: Source, call: ast.Call) -> tuple[int, str]:
    """Return the sign and the name of `s` where something is scaled by `exp(s)`."""
    sign, inner = unsigned(tensor_of(call))
    above = source.parent(call)
    if not isinstance(above, ast.BinOp) or not isinstance(above.op, ast.Mult | ast.Div):
        return 0, ""
    if isinstance(above.op, ast.Div):
        sign = -sign if above.right is call else 0
    return sign, dotted(inner) if inner is not None else ""


def _turns(source: Source) -> bool:
    """Whether a script subtracts one log-determinant from another, or negates one."""
    differences: list[ast.AugAssign | ast.BinOp]
    differences = [*source.of(ast.AugAssign), *source.of(ast.BinOp)]
    for node in differences:
        first = node.target if isinstance(node, ast.AugAssign) else node.left
        if isinstance(node.op, ast.Sub) and _LOG_DET.search(dotted(first)):
            return True
    return any(isinstance(node.op, ast.USub) and _LOG_DET.search(dotted(node.operand))
               for node in source.of(ast.UnaryOp)
               if isinstance(source.parent(node), ast.Assign | ast.Return | ast.Tuple))  # fmt: skip


@reads
def last_determinant(source: Source) -> Iterator[Pattern]:
    """`for layer in layers: z, log_det = layer(z)`: that of the last layer alone is left."""
    for node in source.of(ast.Assign):
        target, value = node.targets[0], node.value
        loop = next((each for each in source.above(node) if isinstance(each, ast.For)), None)
        if loop is None or not isinstance(target, ast.Tuple) or not isinstance(value, ast.Call):
            continue
        names = [dotted(each) for each in target.elts]
        if len(names) != 2 or not _LOG_DET.search(names[1]):
            continue
        reads = [each for each in source.of(ast.Name) if each.id == names[1]
                 and isinstance(each.ctx, ast.Load)
                 and source.scope(each) is source.scope(node)]  # fmt: skip
        is_read = any(loop in source.above(each) for each in reads)
        is_used = any(each.lineno > (loop.end_lineno or 0) for each in reads)
        if names[0] in map(dotted, value.args) and is_used and not is_read:
            yield source.pattern("last determinant", node, names[1])
