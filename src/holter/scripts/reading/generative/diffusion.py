"""Diffusion: how much of the data and of the noise is mixed, and steps back from noise to data."""

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from holter.scripts.reading.source.expressions import made_once, number, tensor_of
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Function, Pattern, Source, called, dotted

_VIEWS = {
    *("view", "reshape", "unsqueeze", "squeeze", "to", "float", "gather", "index_select", "expand"),
    *("flatten", "cuda", "clone", "detach", "view_as", "expand_as"),
}
_GATHERED = re.compile(r"extract|gather|expand|broadcast|at_step|pick", re.I)
_NOISE = re.compile(r"noise|(^|_)eps(ilon)?(_|$)|randn", re.I)
_BETA = re.compile(r"beta", re.I)
_DEEPEST = 12
_SIDES = 2


class Amount(NamedTuple):
    """What a coefficient is made of: `(1 - alpha_bars[t]).sqrt()`."""

    key: str
    is_root: bool = False
    is_rest: bool = False  # 1 without it
    is_product: bool = False  # a cumulated one
    is_step: bool = False  # made of the betas of single steps


def _amount(source: Source, node: ast.expr) -> Amount | None:
    """Return what a coefficient is made of, behind names, tables and views; None if unclear."""
    found, seen = Amount(""), set()
    for _ in range(_DEEPEST):
        inner = _rooted(node)
        if inner is not None:
            if found.is_root:
                return None
            found = found._replace(is_root=True)
        elif isinstance(node, ast.Name | ast.Attribute):
            name = dotted(node).rpartition(".")[2]
            found = found._replace(is_step=found.is_step or bool(_BETA.search(name)))
            inner = None if name in seen else _definition(source, node)
            seen.add(name)
        elif isinstance(node, ast.Subscript):
            inner = node.value
        elif isinstance(node, ast.Call):
            found = found._replace(is_product=found.is_product or called(node) == "cumprod")
            if called(node) in _VIEWS and isinstance(node.func, ast.Attribute):
                inner = node.func.value
            elif _GATHERED.search(called(node)) and node.args:
                inner = node.args[0]
        elif _is_rest(source, node):
            assert isinstance(node, ast.BinOp)
            found, inner = found._replace(is_rest=not found.is_rest), node.right
        if inner is None:
            return found._replace(key=ast.unparse(node))
        node = inner
    return None


def _is_rest(source: Source, node: ast.expr) -> bool:
    """Whether an expression is 1 without something."""
    is_difference = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub)
    return is_difference and number(source, node.left) == 1  # type: ignore[attr-defined]


def _rooted(node: ast.expr) -> ast.expr | None:
    """Return what a square root is taken of, or None."""
    if isinstance(node, ast.Call) and called(node) == "sqrt":
        return tensor_of(node)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        return node.left if ast.unparse(node.right) in ("0.5", "1 / 2") else None
    return None


def _definition(source: Source, node: ast.Name | ast.Attribute) -> ast.expr | None:
    """Return the one expression that a name, or an attribute of the file, is made by."""
    if isinstance(node, ast.Name):
        return made_once(source, source.scope(node), node.id)
    values = [*source.named(node.attr), *_buffers(source, node.attr)]
    values = [each for each in values if dotted(each).rpartition(".")[2] != node.attr] + [
        each for each in values if isinstance(each, ast.Name) and each.id == node.attr
    ]
    return values[0] if len({ast.unparse(each) for each in values}) == 1 else _local(values)


def _local(values: list[ast.expr]) -> ast.expr | None:
    """Return the value of which `self.betas = betas` is only another name."""
    real = [each for each in values if not isinstance(each, ast.Name)]
    return real[0] if len(real) == 1 else None


def _buffers(source: Source, name: str) -> Iterator[ast.expr]:
    for call in source.of(ast.Call):
        if called(call) == "register_buffer" and len(call.args) >= _SIDES:
            is_named = getattr(call.args[0], "value", "") == name
            yield from call.args[1:2] if is_named else ()


def _mixtures(source: Source) -> Iterator[tuple[ast.BinOp, Amount, Amount]]:
    """Yield sums of data and noise, with their coefficients, also as `(x - b * eps) / a`."""
    for node in source.of(ast.BinOp):
        if isinstance(node.op, ast.Add | ast.Sub):
            sides = [_weighed(source, each) for each in (node.left, node.right)]
            if len([each for each in sides if each]) == _SIDES:
                one, other = sides
                assert one is not None and other is not None
                yield node, one, other
        elif isinstance(node.op, ast.Div) and isinstance(node.left, ast.BinOp):
            side = _weighed(source, node.left.right)
            by = _amount(source, node.right)
            if isinstance(node.left.op, ast.Sub) and side and by:
                yield node, by, side


def _weighed(source: Source, node: ast.expr) -> Amount | None:
    """Return the coefficient of `a * x`, if one of both factors is one."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
        return None
    found = [_amount(source, each) for each in (node.left, node.right)]
    known = [each for each in found if each and (each.is_root or each.is_rest or each.is_product)]
    return known[0] if len(known) == 1 else None


@reads
def missing_root(source: Source) -> Iterator[Pattern]:
    """`a.sqrt() * x + (1 - a) * noise`: variances add up, so both shares are roots."""
    for node, one, other in _mixtures(source):
        if one.key != other.key or one.is_rest == other.is_rest:
            continue
        is_diffusion = one.is_product or _NOISE.search(ast.unparse(node))
        is_both = one.is_product and not one.is_root and not other.is_root
        if (one.is_root != other.is_root and is_diffusion) or is_both:
            yield source.pattern("missing root", node, one.key)


@reads
def single_step(source: Source) -> Iterator[Pattern]:
    """`alphas[t].sqrt() * x0 + (1 - alphas[t]).sqrt() * noise`: the noise of one step only."""
    if not any(called(call) == "cumprod" for call in source.of(ast.Call)):
        return
    for node, one, other in _mixtures(source):
        is_step = one.is_step and not one.is_product
        in_loop = any(isinstance(each, ast.For | ast.While) for each in source.above(node))
        if (one.key == other.key and one.is_rest != other.is_rest and is_step and not in_loop
                and isinstance(node.op, ast.Add) and one.is_root and other.is_root
                and _NOISE.search(ast.unparse(node))):  # fmt: skip
            yield source.pattern("single step", node, "alpha")
    for node in source.of(ast.BinOp):
        if not isinstance(node.op, ast.Div):
            continue
        over, by = _beta(source, node.left), _amount(source, node.right)
        if over is None or by is None or not by.is_root:
            continue
        if over.key == by.key and over.is_rest == by.is_rest and not by.is_product:
            yield source.pattern("single step", node, "alpha")


def _beta(source: Source, node: ast.expr) -> Amount | None:
    """Return the noise of one step, also as a factor: `betas[i] * eps`."""
    is_product = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)
    for each in (node.left, node.right) if is_product else (node,):  # type: ignore[attr-defined]
        found = _amount(source, each)
        if found and found.is_step and not found.is_product and not found.is_root:
            return found
    return None


@reads
def product_in_step(source: Source) -> Iterator[Pattern]:
    """`(x - beta / (1 - bar).sqrt() * eps) / bar.sqrt()`: one step divides by its own alpha."""
    for node in source.of(ast.BinOp):
        mean, by = node.left, node.right
        if isinstance(node.op, ast.Mult):
            for one, other in ((node.left, node.right), (node.right, node.left)):
                if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Div) and (
                    number(source, one.left) == 1):  # fmt: skip
                    mean, by = other, one.right
        elif not isinstance(node.op, ast.Div):
            continue
        root = _amount(source, by)
        if root is None or not (root.is_root and root.is_product) or root.is_rest:
            continue
        if (
            isinstance(mean, ast.BinOp)
            and isinstance(mean.op, ast.Sub)
            and any(_is_step_share(source, each) for each in source.walk(mean.right))
        ):
            yield source.pattern("product in step", node, ast.unparse(by))


def _is_step_share(source: Source, node: ast.AST) -> bool:
    """Whether an expression is `betas[i] / (1 - alpha_bars[i]).sqrt()`."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Div):
        return False
    over, by = _beta(source, node.left), _amount(source, node.right)
    if over is None or by is None:
        return False
    return by.is_product and by.is_root and by.is_rest


@reads
def ascending_steps(source: Source) -> Iterator[Pattern]:
    """`for t in range(T): x = step(x, net(x, t))` from noise: the last step comes first."""
    if not any(called(call) == "cumprod" for call in source.of(ast.Call)):
        return
    for loop in source.of(ast.For):
        given = loop.iter
        if called(given) in ("tqdm", "trange") and isinstance(given, ast.Call) and given.args:
            given = given.args[0] if called(given) == "tqdm" else given
        is_range = called(given) in ("range", "trange") and isinstance(given, ast.Call)
        if not is_range or not isinstance(loop.target, ast.Name) or len(given.args) > _SIDES:  # type: ignore[attr-defined]
            continue
        scope, index = source.scope(loop), loop.target.id
        if not _is_sampled(source, scope, loop) or _is_stored(loop, index):
            continue
        tables = [node for node in source.walk(loop) if isinstance(node, ast.Subscript)
                  and dotted(node.slice) == index]  # fmt: skip
        amounts = [_amount(source, node) for node in tables]
        if any(each is not None and (each.is_product or each.is_step) for each in amounts):
            yield source.pattern("ascending steps", loop, ast.unparse(loop.iter))


def _is_stored(loop: ast.For, name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
               for part in loop.body for node in ast.walk(part))  # fmt: skip


def _is_sampled(source: Source, scope: ast.AST, loop: ast.For) -> bool:
    """Whether a loop turns noise into samples: `x` is drawn before it, and replaced in it."""
    drawn = {name for name, value, statement in source.assigned(scope)
             if called(value) in ("randn", "randn_like")
             and statement.lineno < loop.lineno}  # fmt: skip
    changed = {name for name, value, statement in source.assigned(scope)
               if loop in source.above(statement) and name in {
                   dotted(node) for node in source.walk(value)}}  # fmt: skip
    derived = {name for name, _, statement in source.assigned(scope)
               if loop in source.above(statement)}  # fmt: skip
    is_model = any(isinstance(node, ast.Call) and drawn & {dotted(each) for each in node.args}
                   for node in source.walk(loop))  # fmt: skip
    return bool(drawn & (changed | derived)) and is_model and isinstance(scope, Function)
