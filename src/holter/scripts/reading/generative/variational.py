"""Variational autoencoders: the deviation, the divergence and the pixels."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.generative.likelihoods import squared
from holter.scripts.reading.source.expressions import (
    argument,
    made_once,
    number,
    resolved,
    summands,
    tensor_of,
)
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Pattern, Source, called, dotted

_LOG_VARIANCE = re.compile(r"(^|_)(log_?var(iance)?s?|lv|log_?sigma_?(2|sq|squared))(_|\d|$)", re.I)
_LOG = re.compile(r"log_?(var|sigma|std|scale)|(^|_)lv$", re.I)
_SPREAD = re.compile(r"(^|_)(std|sigma|stddev|sd|var|variance)(_|\d|$)", re.I)
_MEAN = re.compile(r"(^|_)(mu|mean|m)(_|\d|$)", re.I)
_NOISE = re.compile(r"^(eps|epsilon|noise|xi)$", re.I)
_DRAWN = {"randn_like", "randn", "normal_", "standard_normal"}
_DECODER = re.compile(r"dec|gen|model|vae|net", re.I)
_LOGIT_LOSSES = {"binary_cross_entropy_with_logits", "BCEWithLogitsLoss"}
_PIXELS = {"clamp", "clip", "clamp_"}
_DEVIATION = re.compile(r"std|sigma|(^|_)sd$|stddev|logvar|log_var", re.I)
_CENTRE = re.compile(r"(^|_)(mu|mus|mean|means|loc)(_|$|\d)", re.I)


@reads
def variance_as_deviation(source: Source) -> Iterator[Pattern]:
    """`mu + logvar.exp() * torch.randn_like(mu)`: noise is scaled by the variance."""
    for call in source.of(ast.Call):
        if called(call) not in ("exp", "sqrt") or not _is_log_variance(source, tensor_of(call)):
            continue
        if any(_scales_noise(source, use) for use in _uses(source, call)):
            yield source.pattern("variance as deviation", call, ast.unparse(call))


def _is_log_variance(source: Source, node: ast.expr | None) -> bool:
    """Whether a name, or what is called, is that of a log-variance, and nothing halves it."""
    if node is None:
        return False
    name = dotted(node.func if isinstance(node, ast.Call) else node).rpartition(".")[2]
    value = resolved(source, source.scope(node), node)
    is_changed = any(isinstance(each, ast.BinOp) for each in source.walk(value))
    return bool(_LOG_VARIANCE.search(name)) and not is_changed


def _uses(source: Source, node: ast.expr) -> Iterator[ast.expr]:
    """Yield an expression, and what reads the one name that it is assigned to."""
    yield node
    above = source.parent(node)
    scope = source.scope(node)
    if isinstance(above, ast.Assign) and len(above.targets) == 1:
        name = dotted(above.targets[0])
        if name and made_once(source, scope, name) is node:
            yield from (each for each in source.of(ast.Name) if each.id == name
                        and isinstance(each.ctx, ast.Load)
                        and source.scope(each) is scope)  # fmt: skip


def _scales_noise(source: Source, use: ast.expr) -> bool:
    above = source.parent(use)
    if isinstance(above, ast.keyword):
        call = source.parent(above)
        return isinstance(call, ast.Call) and called(call) == "Normal" and above.arg == "scale"
    if isinstance(above, ast.BinOp) and isinstance(above.op, ast.Mult):
        return _is_noise(source, above.right if above.left is use else above.left)
    if not isinstance(above, ast.Call):
        return False
    if called(above) in ("Normal", "normal"):
        return len(above.args) > 1 and above.args[1] is use
    return called(above) == "mul" and any(
        _is_noise(source, each) for each in (*above.args, tensor_of(above)) if each is not None
    )


def _is_noise(source: Source, node: ast.expr) -> bool:
    if isinstance(node, ast.Name) and _NOISE.match(node.id):
        return True
    value = resolved(source, source.scope(node), node)
    while isinstance(value, ast.Call) and called(value) == "to":
        value = tensor_of(value) or value.func
    return called(value) in _DRAWN


@reads
def divergence_signs(source: Source) -> Iterator[Pattern]:
    """`1 + logvar - mu ** 2 + logvar.exp()`: a term of the divergence with another sign."""
    for node in source.of(ast.BinOp):
        above = source.parent(node)
        if not isinstance(node.op, ast.Add | ast.Sub) or (
            isinstance(above, ast.BinOp) and isinstance(above.op, ast.Add | ast.Sub)
        ):
            continue
        parts: dict[str, list[tuple[int, ast.expr]]] = {}
        for sign, part in summands(node):
            parts.setdefault(_role(source, part), []).append((sign, part))
        counts = {role: len(found) for role, found in parts.items()}
        plain = {"one": 1, "log": 1, "spread": 1}
        if counts == {**plain, "square": 1}:
            (one, _), (log, log_of) = parts["one"][0], parts["log"][0]
            (square, _), (spread, spread_of) = parts["square"][0], parts["spread"][0]
            wrong = _wrong(one, log, square, spread)
            if wrong or _is_halved(log_of, spread_of):
                about = parts[wrong or "spread"][0][1]
                yield source.pattern("wrong divergence", node, ast.unparse(about))
        elif counts == {**plain, "mean": 1}:
            about = parts["mean"][0][1]
            yield source.pattern("wrong divergence", node, ast.unparse(about))


def _role(source: Source, node: ast.expr) -> str:
    """Return what part of `1 + logvar - mu ** 2 - exp(logvar)` an expression may be."""
    if isinstance(node, ast.Constant):
        return "one" if node.value == 1 else "other"
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        sides = (node.left, node.right)
        if any(number(source, each) == 2 for each in sides):
            return "log" if "log" in (_role(source, each) for each in sides) else "other"
        return "other"
    name = dotted(node).rpartition(".")[2]
    if _LOG.search(name) or called(node) == "log":
        return "log"
    if called(node) == "exp" and isinstance(node, ast.Call):
        inner = ast.unparse(tensor_of(node) or node)
        return "spread" if _LOG.search(inner) else "other"
    base = squared(node)
    if base is not None:
        is_spread = _SPREAD.search(dotted(base).rpartition(".")[2]) or called(base) == "exp"
        return "spread" if is_spread else "square"
    if _SPREAD.search(name):
        return "spread"
    return "mean" if _MEAN.search(name) else "other"


def _wrong(one: int, log: int, square: int, spread: int) -> str:
    """Return the one role whose sign does not fit those of the three others, or ""."""
    found = {"one": -one, "log": -log, "square": square, "spread": spread}
    for role, sign in found.items():
        others = {other for name, other in found.items() if name != role}
        if others == {-sign}:
            return role
    return ""


def _is_halved(log: ast.expr, spread: ast.expr) -> bool:
    """Whether the spread is `exp(0.5 * x)` beside the log-variance `x` itself."""
    inner = tensor_of(spread) if isinstance(spread, ast.Call) and called(spread) == "exp" else None
    if not isinstance(inner, ast.BinOp) or not _LOG_VARIANCE.search(dotted(log)):
        return False
    if isinstance(inner.op, ast.Div):
        return ast.unparse(inner) == f"{ast.unparse(log)} / 2"
    is_half = isinstance(inner.op, ast.Mult) and "0.5" in map(
        ast.unparse, (inner.left, inner.right)
    )
    return is_half and ast.unparse(log) in map(ast.unparse, (inner.left, inner.right))


@reads
def logits_as_pixels(source: Source) -> Iterator[Pattern]:
    """`decoder(z).clamp(0, 1)` of a decoder that is trained by a loss of logits."""
    if not any(called(call) in _LOGIT_LOSSES for call in source.of(ast.Call)):
        return
    for call in source.of(ast.Call):
        shown: ast.expr | None = None
        if called(call) in _PIXELS and _bounds(call) == (0, 1):
            shown = tensor_of(call)
        elif called(call) == "save_image" and call.args:
            shown = call.args[0]
        shown = shown if shown is None else resolved(source, source.scope(call), shown)
        if isinstance(shown, ast.Call) and _is_decoded(source, shown):
            yield source.pattern("logits as pixels", call, ast.unparse(shown))


def _bounds(call: ast.Call) -> tuple[object, object]:
    values = argument(call, 0, "min"), argument(call, 1, "max")
    low, high = (getattr(each, "value", None) for each in values)
    return low, high


def _is_decoded(source: Source, call: ast.Call) -> bool:
    """Whether a call is that of a decoder whose logits the script passes to sigmoid elsewhere."""
    name = dotted(call.func)
    if not _DECODER.search(name.rpartition(".")[2]) or called(call) in source.defined - {"decode"}:
        return False
    classes = {called(value) for value in source.named(name.rpartition(".")[2])}
    bodies = [body for each, body in source.module_classes.items()
              if each in classes or called(call) in {
                  getattr(part, "name", "") for part in body.body}]  # fmt: skip
    if not bodies or any("igmoid" in source.code(body) and body.name in classes
                         for body in bodies):  # fmt: skip
        return False
    squashed = [tensor_of(each) for each in source.of(ast.Call) if called(each) == "sigmoid"]
    return bool(squashed) and all(
        ast.dump(each) != ast.dump(call) for each in squashed if each is not None
    )


@reads
def uniform(source: Source) -> Iterator[Pattern]:
    """`mu + torch.rand_like(std) * std`: a sample of a normal distribution needs `randn_like`."""
    for scope in source.scopes:
        assigned = [(name, called(value)) for name, value, _ in source.assigned(scope)]
        names = [name for name, _ in assigned]
        # At the outermost level, `rand` makes data as often as it samples a distribution.
        functions = ("rand_like",) if scope is source.tree else ("rand_like", "rand")
        drawn = {name for name, by in assigned if by in functions and names.count(name) == 1}
        for node in source.walk(scope):
            if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add):
                continue
            if source.scope(node) is not scope:
                continue
            sides = (node.left, node.right)
            for centre, product in (sides, sides[::-1]):
                if not isinstance(product, ast.BinOp) or not isinstance(product.op, ast.Mult):
                    continue
                if not isinstance(centre, ast.Name) or not _CENTRE.search(centre.id):
                    continue
                factors = (product.left, product.right)
                spread = any(_DEVIATION.search(ast.unparse(each)) for each in factors)
                is_uniform = any(
                    called(each) in functions or (isinstance(each, ast.Name) and each.id in drawn)
                    for each in factors
                )
                if spread and is_uniform:
                    yield source.pattern("uniform noise", node, ast.unparse(product))
