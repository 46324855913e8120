"""Losses that are cut from the graph or overwritten before `backward`."""

import ast
import re
from collections.abc import Iterator, Sequence

from holter.scripts.reading.source.expressions import tensor_of
from holter.scripts.reading.source.loops import is_without_graph
from holter.scripts.reading.source.objective import objectives
from holter.scripts.reading.source.origins import Frame, origins
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Pattern, Source, called, dotted

_LOSS = re.compile(
    r"cross_entropy|(^|_)(mse|l1|nll|bce|huber|kl_div|smooth_l1|hinge)(_loss)?(_|$)|loss|criterion"
    r"|^(ce|crit)(_|$)", re.I
)  # fmt: skip
_TENSORS = {"tensor", "as_tensor", "FloatTensor", "Tensor"}
_OPTIMIZER = re.compile(r"^(Adam\w*|SGD|RMSprop|Adagrad|RAdam|NAdam|LBFGS|Lion|AdamW)$")


@reads
def made_anew(source: Source) -> Iterator[Pattern]:
    """`torch.tensor([mse(a, b), ce(c, d)]).sum().backward()`: the new tensor has no graph."""
    seen: set[ast.AST] = set()
    for terms in objectives(source):
        for term in terms:
            parts = [(term.node, term.frame)]
            for _ in range(6):
                parts = [step for node, frame in parts for step in _opened(source, node, frame)]
            for node, _ in parts:
                is_new = isinstance(node, ast.Call) and called(node) in _TENSORS and node.args
                if is_new and node not in seen and _holds_losses(source, node.args[0]):  # type: ignore[attr-defined]
                    seen.add(node)
                    yield source.pattern("loss without graph", node, called(node))


def _opened(source: Source, node: ast.expr, frame: Frame) -> list[tuple[ast.expr, Frame]]:
    """Return the factors of a product, or what a name or a call stands for."""
    if isinstance(node, ast.BinOp):
        return [(node.left, frame), (node.right, frame)]
    if isinstance(node, ast.Name):
        return [(each.node, each.frame) for each in origins(source, node, frame)]
    if isinstance(node, ast.Subscript):
        return [(node.value, frame)]
    if isinstance(node, ast.Call) and called(node) in (
        "sum",
        "mean",
        "dot",
        "to",
        "requires_grad_",
    ):
        inner = tensor_of(node)
        return [(inner, frame)] if inner is not None else []
    if isinstance(node, ast.Call) and called(node) not in _TENSORS:
        bodies = [each for each in source.of(ast.FunctionDef) if each.name == called(node)]
        returns = [each.value for each in source.of(ast.Return)
                   if bodies and source.scope(each) is bodies[0] and each.value]  # fmt: skip
        if len(bodies) == len(returns) == 1 and called(node) != "forward":
            return [(returns[0], Frame(bodies[0], node, frame))]
    return [(node, frame)]


def _holds_losses(source: Source, node: ast.expr) -> bool:
    """Whether a list is of losses: calls of losses, or names that are assigned one."""
    parts = node.elts if isinstance(node, ast.List | ast.Tuple) else [node]
    if isinstance(node, ast.ListComp | ast.GeneratorExp):
        parts = [node.elt, *(each.iter for each in node.generators)]
    return bool(parts) and any(_is_loss(source, each) for each in parts)


def _is_loss(source: Source, node: ast.expr) -> bool:
    if isinstance(node, ast.Call) and called(node) in ("item", "detach", "mean", "sum", "float"):
        inner = tensor_of(node)
        return inner is not None and _is_loss(source, inner)
    if isinstance(node, ast.Call):
        return bool(_LOSS.search(called(node)))
    if isinstance(node, ast.Name):
        values = [value for name, value, _ in source.assigned(source.scope(node))
                  if name == node.id]  # fmt: skip
        return bool(values) and all(
            isinstance(each, ast.Call) and _is_loss(source, each) for each in values
        )
    return False


@reads
def marked_again(source: Source) -> Iterator[Pattern]:
    """`with no_grad(): z = model(x)` and then `z.requires_grad_()`: the model gets no gradient."""
    for node in source.of(ast.Call, ast.Assign):
        assert isinstance(node, ast.Call | ast.Assign)
        name = ""
        if isinstance(node, ast.Call) and called(node) == "requires_grad_" and not node.args:
            name = dotted(node.func).rpartition(".")[0]
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
            is_on = getattr(node.value, "value", None) is True
            if node.targets[0].attr == "requires_grad" and is_on:
                name = dotted(node.targets[0].value)
        if not name or "." in name:
            continue
        scope = source.scope(node)
        made = [(value, statement) for each, value, statement in source.assigned(scope)
                if each == name and statement.lineno < node.lineno]  # fmt: skip
        if not made or not is_without_graph(source, made[-1][1]):
            continue
        value = made[-1][0]
        models = {dotted(call.func) for call in source.walk(value) if isinstance(call, ast.Call)}
        trained = [model for model in models if model and _is_trained(source, model)]
        loops = [each for each in source.above(node) if isinstance(each, ast.For | ast.While)]
        if len(trained) != 1 or not loops:
            continue
        calls = [each for each in source.walk(loops[0]) if isinstance(each, ast.Call)]
        learns = any(called(each) == "backward" for each in calls) and any(
            called(each) == "step" for each in calls
        )
        again = [each for each in calls if dotted(each.func) == trained[0]
                 and not is_without_graph(source, each)]  # fmt: skip
        is_used = any(isinstance(each, ast.Attribute) and each.attr == "grad"
                      for each in source.walk(loops[0]))  # fmt: skip
        if learns and not again and not is_used and not _is_learned(source, name):
            yield source.pattern("marked again", node, trained[0])


def _is_trained(source: Source, model: str) -> bool:
    """Whether the file reads the parameters of a model in training, and puts it in that mode."""
    text = source.code(source.tree)
    return re.search(rf"\b{re.escape(model)}\.(named_)?parameters\(", text) is not None and (
        re.search(rf"\b{re.escape(model)}\.(requires_grad_\(False|eval\(\)$)", text) is None
    )


def _is_learned(source: Source, name: str) -> bool:
    """Whether an optimizer is given the tensor itself."""
    return any(
        _OPTIMIZER.match(called(call)) and any(
            isinstance(each, ast.Name) and each.id == name for each in source.walk(call)
        )
        for call in source.of(ast.Call)
    )  # fmt: skip


@reads
def overwritten_loss(source: Source) -> Iterator[Pattern]:
    """`for k in tasks: loss = w[k] * losses[k]` and then `loss.backward()`: the last one alone."""
    for call in source.of(ast.Call):
        if called(call) != "backward" or not isinstance(call.func, ast.Attribute):
            continue
        name = call.func.value
        if not isinstance(name, ast.Name):
            continue
        scope = source.scope(call)
        bound = source.bindings(scope, name.id)
        around = set(source.above(call))
        before = [each for each in bound if each.lineno < call.lineno]
        if not before or not isinstance(before[-1], ast.Assign):
            continue
        last = before[-1]
        loop = next((each for each in source.above(last) if isinstance(each, ast.For | ast.While)),
                    None)  # fmt: skip
        if isinstance(loop, ast.For) and loop not in around:
            yield from _last_of_loop(source, loop, last, name.id)
        yield from _second_of_two(source, before, name.id)


def _last_of_loop(source: Source, loop: ast.For, last: ast.Assign, name: str) -> Iterator[Pattern]:
    """Yield a loop whose every turn gives the loss another value, all but the last of them lost."""
    turning = {each.id for each in ast.walk(loop.target) if isinstance(each, ast.Name)}
    given = {each.id for each in source.walk(loop) if isinstance(each, ast.Name)
             and isinstance(each.ctx, ast.Store)} - {name}  # fmt: skip
    reads = [each for each in source.walk(loop) if isinstance(each, ast.Name) and each.id == name
             and isinstance(each.ctx, ast.Load)]  # fmt: skip
    value = {each.id for each in source.walk(last.value) if isinstance(each, ast.Name)}
    leaves = any(isinstance(each, ast.Break) for each in source.walk(loop))
    is_plain = source.parent(last) is loop and len(last.targets) == 1
    is_carried = _is_carried(source, loop, given, value)
    is_lost = turning & value and not reads and not leaves and is_plain and not is_carried
    if is_lost and (_LOSS.search(name) or name in ("total", "objective", "cost")):
        yield source.pattern("overwritten loss", last, name)


def _is_carried(source: Source, loop: ast.For, given: set[str], value: set[str]) -> bool:
    """Whether the last value depends on earlier turns: a state that each turn reads and changes."""
    for each in given & value:
        statements = [node for node in source.walk(loop) if isinstance(node, ast.Assign)
                      and any(isinstance(part, ast.Name) and part.id == each
                              for target in node.targets for part in ast.walk(target))]  # fmt: skip
        if any(isinstance(node, ast.AugAssign) and dotted(node.target) == each
               for node in source.walk(loop)):  # fmt: skip
            return True
        for node in statements:
            if any(
                isinstance(part, ast.Name) and part.id in given for part in ast.walk(node.value)
            ):
                return True
    return False


def _second_of_two(source: Source, before: Sequence[ast.stmt], name: str) -> Iterator[Pattern]:
    """Yield the second of `loss = mse(a, b)` and `loss = ce(c, d)` in one block before backward."""
    if len(before) < 2:
        return
    first, second = before[-2:]
    block = source.parent(first)
    if block is not source.parent(second) or not isinstance(first, ast.Assign):
        return
    if not isinstance(second, ast.Assign) or any(
        not isinstance(each.targets[0], ast.Name) for each in (first, second)
    ):
        return
    body = [part for field in ("body", "orelse") for part in [getattr(block, field, [])]
            if first in part and second in part]  # fmt: skip
    read = [each for each in source.of(ast.Name) if each.id == name
            and isinstance(each.ctx, ast.Load) and first.lineno <= each.lineno
            and each.lineno <= (second.end_lineno or second.lineno)]  # fmt: skip
    if body and not read and all(_is_of_loss(each.value) for each in (first, second)):
        yield source.pattern("overwritten loss", second, name)


def _is_of_loss(value: ast.expr) -> bool:
    return any(
        isinstance(each, ast.Call) and _LOSS.search(called(each)) for each in ast.walk(value)
    )
