"""Gradient penalties that have no gradient, or are norms over other axes than a sample's."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.expressions import argument, resolved, tensor_of, whole
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Function, Pattern, Source, called, dotted

_PENALTY = re.compile(r"penalty|(^|_)gp(_|$)|(^|_)r1(_|$)|lipschitz", re.I)
_DRAWN = {"rand", "random", "uniform", "sample"}
_FLAT = {"view", "reshape", "flatten"}
_BATCHED = re.compile(r"BatchNorm\dd")


def _gradients(source: Source) -> Iterator[tuple[ast.Call, Function, str]]:
    """Yield each `autograd.grad` whose result a function makes a penalty of, and its name."""
    for call in source.of(ast.Call):
        scope = source.scope(call)
        is_grad = dotted(call.func) in ("torch.autograd.grad", "autograd.grad", "grad")
        if not is_grad or not isinstance(scope, Function):
            continue
        assign = next((each for each in source.above(call) if isinstance(each, ast.stmt)), None)
        if not isinstance(assign, ast.Assign):
            continue
        target = assign.targets[0]
        names = [dotted(each) for each in getattr(target, "elts", [target])]
        if (names[0] and len(names) == sum(map(bool, names)) == 1) or _is_first(target):
            yield call, scope, names[0]


def _is_first(target: ast.expr) -> bool:
    """Whether a target is `grad, *_`."""
    elements = getattr(target, "elts", [])
    return len(elements) == 2 and isinstance(elements[1], ast.Starred)


def _penalties(source: Source, scope: Function) -> Iterator[ast.Call]:
    """Yield `(grad.norm(2, dim=1) - 1) ** 2`: the call of the norm."""
    for node in source.walk(scope):
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Sub):
            continue
        if getattr(node.right, "value", None) not in (1, 1.0):
            continue
        norm = resolved(source, scope, node.left)
        if isinstance(norm, ast.Call) and called(norm) in ("norm", "vector_norm"):
            yield norm


@reads
def penalty_without_graph(source: Source) -> Iterator[Pattern]:
    """A gradient penalty whose gradient is a constant: `create_graph` is missing."""
    for call, scope, name in _gradients(source):
        options = {each.arg: each.value for each in call.keywords}
        create = options.get("create_graph")
        if (
            None in options
            or len(call.args) > 4
            or (create is not None and getattr(create, "value", True) is not False)
        ):
            continue
        is_penalty = any(True for _ in _penalties(source, scope))
        body = source.parent(scope)
        name_of = f"{scope.name} {body.name}" if isinstance(body, ast.ClassDef) else scope.name
        is_named = _PENALTY.search(name_of) and any(
            isinstance(node, ast.Return) for node in source.walk(scope)
        )
        is_squared = any(called(node) in ("pow", "square", "norm") for node in source.walk(scope))
        if is_penalty or (is_named and is_squared):
            yield source.pattern("penalty without graph", call, name)


@reads
def penalty_axes(source: Source) -> Iterator[Pattern]:
    """`grad.norm(2, dim=1)` of images that were not flattened: a norm of each pixel."""
    for _, scope, name in _gradients(source):
        for norm in _penalties(source, scope):
            is_linalg = dotted(norm.func).startswith(("torch.linalg.", "linalg."))
            inner = norm.args[0] if is_linalg and norm.args else tensor_of(norm)
            if inner is None or dotted(inner) != name or _is_flattened(source, scope, name):
                continue
            dims = argument(norm, 1 + is_linalg, "dim")
            if dims is None and not any(each.arg == "dim" for each in norm.keywords):
                if not _per_sample(source, scope):
                    yield source.pattern("penalty of batch", norm, name)
            elif whole(dims) == 1 and _are_images(source, scope):
                yield source.pattern("penalty of pixels", norm, name)


def _per_sample(source: Source, scope: Function) -> bool:
    """Whether a function is called for one sample, by vmap or in a loop."""
    return "vmap" in source.code(source.tree) or any(
        isinstance(node, ast.For) for node in source.walk(scope)
    )


def _is_flattened(source: Source, scope: Function, name: str) -> bool:
    return any(
        isinstance(node, ast.Assign)
        and dotted(node.targets[0]) == name
        and any(called(part) in _FLAT for part in source.walk(node.value))
        for node in source.walk(scope)
    )


def _are_images(source: Source, scope: Function) -> bool:
    """Whether the shares of a mixture are drawn for samples of several axes."""
    for node in source.walk(scope):
        if isinstance(node, ast.Call) and called(node) in _DRAWN and node.args:
            first = node.args[0]
            shape = first.elts if isinstance(first, ast.Tuple | ast.List) else node.args
            ones = [getattr(each, "value", None) for each in shape[1:]]
            if len(ones) > 1 and set(ones) == {1}:
                return True
        given = node.args if isinstance(node, ast.Call) else []
        sizes = [getattr(each, "value", None) for each in given[1:]]
        if called(node) in ("view", "reshape") and sizes == [1, 1, 1]:
            return True
    return False


@reads
def batch_statistics(source: Source) -> Iterator[Pattern]:
    """BatchNorm in a critic whose gradient is penalised for each sample."""
    for call, scope, _ in _gradients(source):
        given = [each.value for each in call.keywords if each.arg == "outputs"]
        given += call.args[:1]
        if not given or not any(True for _ in _penalties(source, scope)):
            continue
        scores = resolved(source, scope, given[0])
        critics = {called(each) for each in source.walk(scores)}
        made = {called(part) for home in source.scopes for other, value, _ in source.assigned(home)
                if other in critics for part in source.walk(value)}  # fmt: skip
        made |= {called(part) for critic in critics for value in source.named(critic)
                 for part in source.walk(value)}  # fmt: skip
        for each in sorted(made & source.module_classes.keys()):
            norms = [part for part in source.walk(source.module_classes[each])
                     if _BATCHED.search(called(part))]  # fmt: skip
            if norms:
                yield source.pattern("batch statistics in critic", norms[0], each)
