"""Random draws that belong together, and are made again or used for one part only."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.slices import only_value
from holter.scripts.reading.source.tree import (
    Function,
    Pattern,
    Source,
    called,
    dotted,
    parameters_of,
)

_NOISE = {"randn_like", "randn"}
# Losses of two tensors, element by element.
_COMPARING = re.compile(r"^(mse|l1|smooth_l1|huber)(_loss)?$|^crit(erion)?$|^loss_f(n|unc)$", re.I)
_ORDERS = {"randperm", "permutation", "argsort", "shuffle"}


@reads
def fresh_noise(source: Source) -> Iterator[Pattern]:
    """`xt = mix(x, torch.randn_like(x), t)` and a loss against another noise."""
    for scope, name in _noises(source):
        uses = [node for node in source.of(ast.Name) if node.id == name
                and isinstance(node.ctx, ast.Load) and scope in source.above(node)]  # fmt: skip
        if len(uses) != 1 or source.stores(scope, name) != 1:
            continue
        predicted = _compared_with(source, uses[0])
        if predicted is None or source.scope(uses[0]) is not scope:
            continue
        mixed = [call for value in _origins(source, scope, predicted)
                 for call in source.walk(value) if called(call) == "randn_like"]  # fmt: skip
        if mixed:
            yield source.pattern("fresh noise", mixed[0], name)


def _noises(source: Source) -> Iterator[tuple[ast.AST, str]]:
    """Yield names of noise and their scopes; also what a function of the file returns as noise."""
    functions = {each.name: each for each in source.of(*Function.__args__)}
    for node in source.of(ast.Assign):
        target, function = node.targets[0], functions.get(called(node.value))
        if called(node.value) in _NOISE and isinstance(target, ast.Name):
            yield source.scope(node), target.id
        elif isinstance(target, ast.Tuple) and function is not None:
            drawn = {name for name, value, _ in source.assigned(function)
                     if called(value) in _NOISE}  # fmt: skip
            returned = [each.value for each in source.walk(function)
                        if isinstance(each, ast.Return)]  # fmt: skip
            if len(returned) == 1 and isinstance(returned[0], ast.Tuple):
                for one, other in zip(target.elts, returned[0].elts, strict=False):
                    if isinstance(one, ast.Name) and dotted(other) in drawn:
                        yield source.scope(node), one.id


def _compared_with(source: Source, use: ast.Name) -> ast.expr | None:
    """Return what noise is subtracted from, or what a loss compares it with."""
    above = source.parent(use)
    if isinstance(above, ast.BinOp) and isinstance(above.op, ast.Sub):
        return above.left if above.right is use else above.right
    is_compared = isinstance(above, ast.Call) and len(above.args) == 2 and use in above.args
    if is_compared and isinstance(above, ast.Call) and _COMPARING.match(called(above)):
        return above.args[1 - above.args.index(use)]
    return None


def _origins(source: Source, scope: ast.AST, value: ast.expr) -> Iterator[ast.expr]:
    """Yield an expression and those that the names in it stand for, two levels deep."""
    values = [value]
    for _ in range(3):
        yield from values
        names = {node.id for each in values for node in source.walk(each)
                 if isinstance(node, ast.Name)}  # fmt: skip
        made = [only_value(source, scope, name) for name in sorted(names)]
        values = [each for each, home in made if each is not None and home is scope]


@reads
def weighed_otherwise(source: Source) -> Iterator[Pattern]:
    """`lam * x + (1 - lam) * x[p]` and `(1 - lam) * f(o, y) + lam * f(o, y[p])`."""
    for scope in source.scopes:
        known: dict[str, dict[bool, dict[str, ast.BinOp]]] = {}
        for node in _sums(source, scope):
            weights = _weights(node)
            if weights is None:
                continue
            *parts, weight = weights
            one, other = (_last_argument(source, scope, part) for part in parts)
            for is_second, whole, permuted in ((True, one, other), (False, other, one)):
                if _is_permuted(permuted, whole):
                    bases = known.setdefault(weight, {True: {}, False: {}})
                    bases[is_second].setdefault(ast.unparse(whole), node)
        for weight, bases in known.items():
            # What is mixed in both ways makes two views.
            only = [{base: node for base, node in bases[way].items() if base not in bases[not way]}
                    for way in (True, False)]  # fmt: skip
            if all(only):
                last = max((n for each in only for n in each.values()), key=lambda n: n.lineno)
                yield source.pattern("weighed otherwise", last, weight)


def _sums(source: Source, scope: ast.AST) -> list[ast.BinOp]:
    return [node for node in source.of(ast.BinOp)
            if isinstance(node.op, ast.Add) and source.scope(node) is scope]  # fmt: skip


def _weights(node: ast.BinOp) -> tuple[ast.expr, ast.expr, str] | None:
    """Return what is weighed by L and by 1 - L, and L; in this order."""
    direct: dict[str, ast.expr] = {}
    rest: dict[str, ast.expr] = {}
    for part in (node.left, node.right):
        if not isinstance(part, ast.BinOp) or not isinstance(part.op, ast.Mult):
            return None
        for factor, weighed in ((part.left, part.right), (part.right, part.left)):
            if isinstance(factor, ast.BinOp) and isinstance(factor.op, ast.Sub):
                if isinstance(factor.left, ast.Constant) and factor.left.value == 1:
                    rest[ast.unparse(factor.right)] = weighed
            elif dotted(factor):
                direct[dotted(factor)] = weighed
    shared = [name for name in direct if name in rest]
    return (direct[shared[0]], rest[shared[0]], shared[0]) if len(shared) == 1 else None


def _last_argument(source: Source, scope: ast.AST, value: ast.expr) -> ast.expr:
    """Return the target that a loss is given, or else what is weighed; behind its name."""
    if isinstance(value, ast.Call) and len(value.args) == 2:
        value = value.args[1]
    if isinstance(value, ast.Name):
        made, home = only_value(source, scope, value.id)
        is_part = isinstance(made, ast.Subscript | ast.Name) and home is scope
        return made if is_part and made is not None else value
    return value


def _is_permuted(one: ast.expr, other: ast.expr) -> bool:
    """Whether an expression is another one, indexed: `x[perm]` of `x`."""
    return (
        isinstance(one, ast.Subscript)
        and isinstance(one.slice, ast.Name)
        and ast.unparse(one.value) == ast.unparse(other)
    )


@reads
def apart(source: Source) -> Iterator[Pattern]:
    """`return self.x[self.order[i]], self.y[i]` of arrays that came in together."""
    for body in source.of(ast.ClassDef):
        methods = {each.name: each for each in body.body if isinstance(each, Function)}
        item, start = methods.get("__getitem__"), methods.get("__init__")
        if item is None or start is None:
            continue
        attributes = {
            target.attr: node.value
            for node in source.walk(start)
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Attribute)
        }
        given = {
            name for name, value in attributes.items() if dotted(value) in parameters_of(start)
        }
        orders = {name for name, value in attributes.items()
                  if any(called(node) in _ORDERS for node in source.walk(value))}  # fmt: skip
        index = [*parameters_of(item), "", ""][1]
        for node in source.walk(item):
            if not isinstance(node, ast.Return) or not isinstance(node.value, ast.Tuple):
                continue
            places = [_place(source, item, part, given) for part in node.value.elts]
            are_mapped = [
                isinstance(place, ast.Subscript)
                and dotted(place.value).removeprefix("self.") in orders
                and dotted(place.slice) == index
                for place in places
            ]
            if any(are_mapped) and any(dotted(place) == index for place in places if place):
                yield source.pattern("apart in item", node, index)


def _place(source: Source, scope: ast.AST, value: ast.expr, given: set[str]) -> ast.expr | None:
    """Return the index at which a part of a sample is read from an array of the data set."""
    for node in source.walk(value):
        if isinstance(node, ast.Subscript) and dotted(node.value).removeprefix("self.") in given:
            place: ast.expr = node.slice
            if isinstance(place, ast.Name):
                made, home = only_value(source, scope, place.id)
                place = made if made is not None and home is scope else place
            return place
    return None
