"""Normalizing flows: layers that are not inverted, masks that stay, and densities' constants."""

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from holter.scripts.reading.generative.likelihoods import squared
from holter.scripts.reading.source.expressions import resolved, summands, tensor_of
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import (
    Function,
    Pattern,
    Source,
    called,
    dotted,
    names_in,
    parameters_of,
)

_INVERSE = {"inverse", "inv", "inverse_transform", "invert", "backward", "reverse"}
_TURNED = {"reverse", "inverse", "rev", "invert"}
_LOG_DET = re.compile(r"log_?_?(abs)?_?det|(^|[^a-z])s?ldj?([^a-z]|$)|jacob|\bs\w*\.sum\(", re.I)
_AUTOREGRESSIVE = re.compile(r"made|autoreg|masked_?linear|causal|tril|triu|iaf|maf|rnn|lstm", re.I)
_MASK = re.compile(r"mask|parity|flip|swap|even|odd|reverse|order|orientation", re.I)
_MIXING = re.compile(
    r"[Pp]erm|[Ss]huffle|[Ff]lip\(|Revers|reverse\(|roll\(|Invertible|1x1|, ::-1\]|[Rr]otat|\bLU"
)
_COUPLING = re.compile(r"coupl|nvp|affine|glow|nice", re.I)
_SPLITS = {"chunk", "split", "tensor_split"}
_LOG_2PI = re.compile(r"log\(2(\.0)? \* (math|np|numpy|torch)\.pi\)|log_?2_?pi|log_?two_?pi", re.I)
_HALF = re.compile(r"^(0\.5|1 / 2) \* |/ 2(\.0)?$|^-0\.5 \* ")


class _Pass(NamedTuple):
    loop: ast.For
    layers: str
    is_inverse: bool
    is_reversed: bool


@reads
def inverse_in_order(source: Source) -> Iterator[Pattern]:
    """`for layer in layers: z = layer.inverse(z)`: the last layer has to be inverted first."""
    passes = [found for loop in source.of(ast.For) if (found := _pass(source, loop)) is not None]
    for one in passes:
        if not one.is_inverse:
            continue
        home = _home(source, one.loop)
        others = [each for each in passes if not each.is_inverse and each.layers == one.layers
                  and _home(source, each.loop) is home]  # fmt: skip
        if others and all(each.is_reversed == one.is_reversed for each in others):
            yield source.pattern("inverse in order", one.loop, one.layers)


def _home(source: Source, node: ast.AST) -> ast.AST:
    classes = (each for each in source.above(node) if isinstance(each, ast.ClassDef))
    return next(classes, source.tree)


def _pass(source: Source, loop: ast.For) -> _Pass | None:
    """Return how a loop passes one value through layers, or None."""
    if not isinstance(loop.target, ast.Name):
        return None
    layers, is_reversed = loop.iter, False
    if isinstance(layers, ast.Call) and called(layers) == "reversed" and layers.args:
        layers, is_reversed = layers.args[0], True
    if isinstance(layers, ast.Call) and called(layers) == "list" and layers.args:
        layers = layers.args[0]
    if isinstance(layers, ast.Subscript) and ast.unparse(layers.slice) == "::-1":
        layers, is_reversed = layers.value, not is_reversed
    name = dotted(layers)
    ways = set()
    for node in (each for part in loop.body for each in source.walk(part)):
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
            continue
        call, layer = node.value, loop.target.id
        targets = {dotted(each) for target in node.targets for each in ast.walk(target)}
        if not call.args or dotted(call.args[0]) not in targets - {""}:
            continue
        turned = [each for each in call.keywords if each.arg in _TURNED]
        if dotted(call.func) in (layer, f"{layer}.forward"):
            values = {getattr(each.value, "value", None) for each in turned}
            ways.add(bool(values & {True}) if values <= {True, False} else None)
        elif dotted(call.func).removeprefix(f"{layer}.") in _INVERSE:
            ways.add(True)
    is_inverse = ways.pop() if len(ways) == 1 else None
    return None if is_inverse is None or not name else _Pass(loop, name, is_inverse, is_reversed)


@reads
def sees_itself(source: Source) -> Iterator[Pattern]:
    """`s, t = self.net(x)` and `x * exp(s) + t`: the Jacobian is not triangular."""
    for body in source.module_classes.values():
        text = source.code(body)
        if not _LOG_DET.search(text) or _AUTOREGRESSIVE.search(text):
            continue
        for function in body.body:
            if isinstance(function, Function):
                yield from _seen(source, body, function)


def _seen(source: Source, body: ast.ClassDef, function: Function) -> Iterator[Pattern]:
    for node in source.walk(function):
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult | ast.Div):
            continue
        scale = _log_scale(source, node.right)
        moved = names_in(node.left)
        if not scale:
            continue
        for assign in source.walk(function):
            if not isinstance(assign, ast.Assign) or not scale & _stored(assign):
                continue
            for call in source.walk(assign.value):
                if not isinstance(call, ast.Call) or not call.args:
                    continue
                given = dotted(call.args[0])
                whole = {given} | _split_from(source, function, given)
                if (dotted(call.func).startswith("self.") and given and whole & moved
                        and not _is_rebound(source, function, given)
                        and not _masks(source, body, call)):  # fmt: skip
                    yield source.pattern("sees itself", call, given)
                    return


def _stored(assign: ast.Assign) -> set[str]:
    return {name for target in assign.targets for name in names_in(target)}


def _log_scale(source: Source, node: ast.expr) -> set[str]:
    """Return the names in `s` of `torch.exp(s)`, also behind a name."""
    exponential = resolved(source, source.scope(node), node)
    inner = tensor_of(exponential) if isinstance(exponential, ast.Call) else None
    return names_in(inner) if inner is not None and called(exponential) == "exp" else set()


def _split_from(source: Source, function: Function, name: str) -> set[str]:
    """Return the names of the parts that a tensor of a name is split into."""
    return {part for node in source.walk(function)
            if isinstance(node, ast.Assign) and called(node.value) in _SPLITS
            and isinstance(node.value, ast.Call)
            and dotted(tensor_of(node.value) or node) == name
            for part in _stored(node)}  # fmt: skip


def _is_rebound(source: Source, function: Function, name: str) -> bool:
    return source.stores(function, name) > 1


def _masks(source: Source, body: ast.ClassDef, call: ast.Call) -> bool:
    """Whether what is called hides a part of its argument itself."""
    name = called(call)
    for method in body.body:
        if isinstance(method, Function) and method.name == name:
            given = parameters_of(method)[1:2]
            return any(_hides(node, name) for name in given for node in source.walk(method))
    made = {called(value) for value in source.named(name)} & source.module_classes.keys()
    return any("mask" in source.code(source.module_classes[each]).lower() for each in made)


def _hides(node: ast.AST, name: str) -> bool:
    """Whether a part of a tensor is taken, or multiplied by something."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return name in (dotted(node.left), dotted(node.right))
    if isinstance(node, ast.Subscript):
        return dotted(node.value) == name
    is_part = isinstance(node, ast.Call) and called(node) in {*_SPLITS, "where", "mul"}
    return is_part and name in _direct(node)


def _direct(call: ast.AST) -> set[str]:
    given = [*call.args, tensor_of(call)] if isinstance(call, ast.Call) else []
    return {dotted(each) for each in given if each is not None}


@reads
def same_mask(source: Source) -> Iterator[Pattern]:
    """`[Coupling(dim, mask) for _ in range(8)]`: the same half is never transformed."""
    for call in source.of(ast.Call):
        body = source.module_classes.get(called(call))
        if body is None or not (_COUPLING.search(body.name) or _LOG_DET.search(source.code(body))):
            continue
        loop = next((each for each in source.above(call) if isinstance(
            each, ast.For | ast.ListComp | ast.GeneratorExp)), None)  # fmt: skip
        if loop is None or source.scope(loop) is not source.scope(call):
            continue
        others = [each for each in source.walk(loop) if called(each) == body.name]
        mask = _mask_of(body, call)
        if mask is None or len(others) != 1 or _MIXING.search(_around(source, loop, body)):
            continue
        changed = {each.id for each in source.walk(loop)
                   if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}  # fmt: skip
        is_chosen = any(isinstance(each, ast.If) for each in source.walk(loop))
        if not names_in(mask) & changed and "exp" in source.code(body) and not is_chosen:
            yield source.pattern("same mask", call, ast.unparse(mask))


def _around(source: Source, loop: ast.AST, body: ast.ClassDef) -> str:
    """Return the text in which a permutation may stand: loop, layer, and the flow's own class."""
    return source.code(loop) + source.code(body) + source.code(_home(source, loop))


def _mask_of(body: ast.ClassDef, call: ast.Call) -> ast.expr | None:
    """Return what a layer is given as its mask."""
    start = next((each for each in body.body if isinstance(each, Function)
                  and each.name == "__init__"), None)  # fmt: skip
    names = parameters_of(start)[1:] if start is not None else []
    masks = [name for name in names if _MASK.search(name)]
    if len(masks) != 1:
        return None
    given = [each.value for each in call.keywords if each.arg == masks[0]]
    place = names.index(masks[0])
    given += call.args[place : place + 1]
    return given[0] if given else None


@reads
def single_constant(source: Source) -> Iterator[Pattern]:
    """`-0.5 * z.pow(2).sum(1) - 0.5 * log(2 * pi)`: the constant belongs to each dimension."""
    for node in source.of(ast.BinOp):
        above = source.parent(node)
        if not isinstance(node.op, ast.Add | ast.Sub) or (
            isinstance(above, ast.BinOp) and isinstance(above.op, ast.Add | ast.Sub)
        ):
            continue
        parts = [part for _, part in summands(node)]
        constants = [part for part in parts if _is_constant(part)]
        sums = [part for part in parts if _is_sum_of_squares(part)]
        is_scaled = any(isinstance(each, ast.BinOp) and isinstance(each.op, ast.Mult)
                        for each in source.above(node))  # fmt: skip
        if len(constants) == 1 and sums and not is_scaled:
            yield source.pattern("single constant", node, ast.unparse(constants[0]))


def _is_constant(node: ast.expr) -> bool:
    """Whether an expression is `0.5 * log(2 * pi)`, with no number of dimensions in it."""
    text = ast.unparse(node)
    names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    named = {each for each in names if _LOG_2PI.search(each)}
    return bool(_LOG_2PI.search(text) and _HALF.search(text)) and names - named <= {
        "math",
        "np",
        "numpy",
        "torch",
    }


def _is_sum_of_squares(node: ast.expr) -> bool:
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        node = node.right if isinstance(node.left, ast.Constant | ast.UnaryOp) else node.left
    if not isinstance(node, ast.Call) or called(node) != "sum":
        return False
    inner = tensor_of(node)
    return inner is not None and (
        squared(inner) is not None
        or (isinstance(inner, ast.BinOp) and squared(inner.left) is not None)
    )
