"""Objective: what `backward` is called on, as a sum of terms with signs."""

import ast
import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from holter.scripts.reading.source.expressions import number, tensor_of
from holter.scripts.reading.source.origins import Frame, collected, origins, returned
from holter.scripts.reading.source.tree import Source, called, dotted

_DEEPEST = 40  # names and operations between `backward` and a term
_MOST = 200  # terms of an expression
_WEIGHT = re.compile(
    r"(^|_)(alpha|beta|lam|lambda|lambd|gamma|kappa|mu|w|wt|weight|coef|coeff|scale|c|factor)"
    r"(_|$|\d)",
    re.I,
)
_OPTIONS = re.compile(r"^(self|args|cfg|config|conf|opt|opts|hp|hparams|hps|params)\.", re.I)
_SAME = {"float", "to", "squeeze", "double", "view", "reshape", "contiguous", "flatten", "cuda"}
_REDUCED = {"mean", "sum", "nanmean"}
BACKWARD = ("backward", "manual_backward")
_WRAPPERS = ("accelerator", "fabric", "self")


class Term(NamedTuple):
    """A summand of what is minimised."""

    sign: int
    node: ast.expr
    frame: Frame
    weight: float | None = 1.0  # the constant in front, None if it is unknown
    reductions: tuple[ast.Call, ...] = ()  # calls of `sum` and `mean` around it, outermost first
    is_divided: bool = False  # by what is no constant
    names: tuple[tuple[str, int], ...] = ()  # names that stand for it, and their signs


def objectives(source: Source) -> Iterator[list[Term]]:
    """Yield the terms of each expression that a script minimises."""
    if any(keyword.arg == "maximize" for call in source.of(ast.Call) for keyword in call.keywords):
        return
    for root in _minimised(source):
        start = Term(1, root, Frame(source.scope(root)))
        yield list(islice(_terms(source, start, 0), _MOST))


def _minimised(source: Source) -> Iterator[ast.expr]:
    for call in source.of(ast.Call):
        if not isinstance(call.func, ast.Attribute):
            continue
        value = call.func.value
        if called(call) == "backward" and not call.args:
            if isinstance(value, ast.Call) and called(value) == "scale" and value.args:
                value = value.args[0]
            yield value
        elif called(call) in BACKWARD and dotted(value).rpartition(".")[2] in _WRAPPERS:
            yield from call.args[:1]
    for node in source.of(ast.Return):
        if node.value is not None and getattr(source.scope(node), "name", "") == "training_step":
            yield node.value


def _terms(source: Source, term: Term, depth: int) -> Iterator[Term]:
    """Yield the parts of a sum, or the term itself."""
    parts = list(_parts(source, term)) if depth < _DEEPEST else []
    if not parts:
        yield term
    for part in parts:
        yield from _terms(source, part, depth + 1)


def _parts(source: Source, term: Term) -> Iterator[Term]:
    """Yield what a term is the sum of, by one operation or name; nothing if it is no sum."""
    node = term.node
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        sign = -term.sign if isinstance(node.op, ast.USub) else term.sign
        yield term._replace(node=node.operand, sign=sign)
    elif isinstance(node, ast.BinOp):
        yield from _of_operation(source, term, node)
    elif isinstance(node, ast.Call):
        yield from _of_call(source, term, node)
    elif isinstance(node, ast.Name):
        for origin in origins(source, node, term.frame):
            sign = term.sign * origin.sign
            names = (*term.names, (node.id, sign))
            yield term._replace(node=origin.node, frame=origin.frame, sign=sign, names=names)


def _of_operation(source: Source, term: Term, node: ast.BinOp) -> Iterator[Term]:
    if isinstance(node.op, ast.Add | ast.Sub):
        sign = -term.sign if isinstance(node.op, ast.Sub) else term.sign
        yield term._replace(node=node.left)
        yield term._replace(node=node.right, sign=sign)
    elif isinstance(node.op, ast.Div):
        is_scalar = number(source, node.right) is not None
        yield term._replace(node=node.left, is_divided=term.is_divided or not is_scalar)
    elif isinstance(node.op, ast.Mult):
        for factor, other in ((node.left, node.right), (node.right, node.left)):
            known = _weight(source, factor, term.frame)
            if known is not None:
                sign, size = known
                weight = None if size is None or term.weight is None else term.weight * size
                yield term._replace(node=other, sign=term.sign * sign, weight=weight)
                return


def _of_call(source: Source, term: Term, node: ast.Call) -> Iterator[Term]:
    reductions = (*term.reductions, node) if called(node) in _REDUCED else term.reductions
    held = collected(source, node, term.frame)
    if held:
        yield from (term._replace(node=each, reductions=reductions) for each in held)
    elif called(node) in _REDUCED | _SAME:
        inner = tensor_of(node)
        if inner is not None and not isinstance(inner, ast.List | ast.Tuple | ast.GeneratorExp):
            yield term._replace(node=inner, reductions=reductions)
    else:
        origin = returned(source, node, term.frame)
        if origin is not None and not isinstance(origin.node, ast.Tuple):
            yield term._replace(node=origin.node, frame=origin.frame)


def _weight(source: Source, node: ast.expr, frame: Frame) -> tuple[int, float | None] | None:
    """Return the sign and the size of a factor that is a number and no tensor, or None."""
    known = number(source, node)
    if known is not None:
        return (known > 0) - (known < 0), abs(known)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _weight(source, node.operand, frame)
        return None if inner is None else (-inner[0], inner[1])
    if isinstance(node, ast.Call) and dotted(node.func) in ("min", "max"):
        bounds = [value for each in node.args if (value := number(source, each)) is not None]
        return (1, bounds[0]) if bounds else None  # a ramp that ends at its bound
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div | ast.Pow):
        left, right = (_weight(source, side, frame) for side in (node.left, node.right))
        return None if left is None or right is None else (left[0] * right[0], None)
    if isinstance(node, ast.Name):
        values = list(origins(source, node, frame))
        if len(values) == 1 and not isinstance(values[0].node, ast.Name):
            inner = _weight(source, values[0].node, values[0].frame)
            if inner is not None:
                return inner
    name = dotted(node)
    is_constant = name.isupper() and len(name) > 1  # not a return `R` or an input `X`
    is_option = _OPTIONS.match(name) or is_constant or _WEIGHT.search(name)
    return (1, None) if is_option else None
