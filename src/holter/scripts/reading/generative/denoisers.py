"""What a denoiser is trained to predict, what its output is taken for, and a time not read."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.expressions import argument, resolved
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import (
    Function,
    Pattern,
    Source,
    called,
    dotted,
    parameters_of,
)

_COMPARING = re.compile(
    r"^(mse|l1|smooth_l1|huber)(_loss)?$|^(crit(erion)?|loss_f(n|unc))$|^(MSE|L1|SmoothL1)Loss$"
)
_MODEL = re.compile(r"net|model|denois|unet|^eps_theta$|score|predict", re.I)
_DRAWN = {"randn_like", "randn"}
_NOISE = re.compile(r"^(pred(icted)?_?)?(eps|epsilon|noise)(_?(pred|hat|theta|t))?$", re.I)
_DATA = re.compile(r"^(pred(icted)?_?)?(x_?0|x_?start|x0)(_?(pred|hat|t))?$", re.I)
_TIME = re.compile(r"^(t|ts|t_?emb\w*|time\w*|temb|sigmas?|noise_level)$")


@reads
def other_target(source: Source) -> Iterator[Pattern]:
    """`x0 = net(x, t)` while sampling with a model that is trained to predict the noise."""
    targets = set(_targets(source))
    if len(targets) != 1:
        return
    target = targets.pop()
    for node in source.of(ast.Assign):
        name, scope = dotted(node.targets[0]).rpartition(".")[2], source.scope(node)
        if not isinstance(node.value, ast.Call) or not _is_model(node.value):
            continue
        is_other = (_DATA if target == "noise" else _NOISE).match(name)
        in_loop = any(isinstance(each, ast.For | ast.While) for each in source.above(node))
        uses_name = source.stores(scope, name) == 1
        trains = any(called(each) == "backward" for each in source.walk(scope))
        if is_other and in_loop and uses_name and not trains and isinstance(scope, Function):
            yield source.pattern("other target", node, "the noise" if target == "noise" else "data")


def _targets(source: Source) -> Iterator[str]:
    """Yield "noise", "data" or "" for each comparison of a model's output."""
    for call in source.of(ast.Call):
        if not _COMPARING.match(called(call)) or len(call.args) < 2:
            continue
        scope = source.scope(call)
        for one, other in (call.args[:2], call.args[1::-1]):
            made = resolved(source, scope, one)
            if not isinstance(made, ast.Call) or not _is_model(made) or not made.args:
                continue
            if called(resolved(source, scope, other)) in _DRAWN:
                yield "noise"
            elif isinstance(other, ast.Name) and _is_mixed(source, scope, made, other.id):
                yield "data"
            else:
                yield ""


def _is_model(call: ast.Call) -> bool:
    return bool(_MODEL.search(called(call))) and len(call.args) + len(call.keywords) > 1


def _is_mixed(source: Source, scope: ast.AST, call: ast.Call, name: str) -> bool:
    """Whether a model is given a mixture of what a name holds and of noise."""
    given = resolved(source, scope, call.args[0])
    parts = {node.id: node for node in source.walk(given) if isinstance(node, ast.Name)}
    return name in parts and any(
        called(resolved(source, scope, node)) in _DRAWN for node in parts.values()
    )


@reads
def unused_time(source: Source) -> Iterator[Pattern]:
    """`def forward(self, x, t)` that never reads `t`, of a model that removes noise."""
    if "randn_like" not in source.code(source.tree) or not any(
        called(call) in ("randint", "rand") for call in source.of(ast.Call)
    ):
        return
    for body in source.module_classes.values():
        for function in body.body:
            if not isinstance(function, ast.FunctionDef) or function.name != "forward":
                continue
            for name in parameters_of(function)[2:]:
                reads = [node for node in source.walk(function)
                         if isinstance(node, ast.Name) and node.id == name
                         and isinstance(node.ctx, ast.Load)]  # fmt: skip
                if (
                    _TIME.match(name)
                    and not reads
                    and len(function.body) > 0
                    and _is_given(source, function, body, name)
                ):
                    yield source.pattern("unused time", function, name)


def _is_given(source: Source, function: ast.FunctionDef, body: ast.ClassDef, name: str) -> bool:
    """Whether the model is made by the script, and every module with this parameter ignores it."""
    is_made = any(called(call) == body.name for call in source.of(ast.Call))
    is_abstract = any(isinstance(node, ast.Raise) for node in source.walk(function))
    others = [each for other in source.module_classes.values() for each in other.body
              if isinstance(each, ast.FunctionDef) and each.name == "forward"
              and each is not function and name in parameters_of(each)]  # fmt: skip
    mixed = any("isinstance" in source.code(each) for each in source.module_classes.values())
    return is_made and not is_abstract and not (others and mixed)


@reads
def noisy_target(source: Source) -> Iterator[Pattern]:
    """`noisy = clean + noise` and `mse_loss(model(noisy), noisy)`: the noise is reconstructed."""
    for call in source.of(ast.Call):
        if not _COMPARING.match(called(call)) or len(call.args) < 2:
            continue
        scope = source.scope(call)
        for one, other in (call.args[:2], call.args[1::-1]):
            made = resolved(source, scope, one)
            if not isinstance(other, ast.Name) or not isinstance(made, ast.Call):
                continue
            if [dotted(each) for each in made.args] != [other.id] or called(made) in _DRAWN:
                continue
            noisy = resolved(source, scope, other)
            clean = _without_noise(source, scope, noisy)
            if clean and clean != other.id and source.stores(scope, other.id) == 1:
                yield source.pattern("noisy target", call, clean)


def _without_noise(source: Source, scope: ast.AST, node: ast.expr) -> str:
    """Return `x` of `x + 0.1 * randn_like(x)`, also of a clamped one or of a dropout, or ""."""
    while isinstance(node, ast.Call) and called(node) in ("clamp", "clip", "clamp_"):
        inner = node.func.value if isinstance(node.func, ast.Attribute) else None
        node = node.args[0] if dotted(inner or node) in ("torch", "np") else inner or node.func
    if isinstance(node, ast.Call) and called(node) == "dropout" and node.args:
        training = argument(node, 1, "training")
        is_always = training is None or getattr(training, "value", False) is True
        return dotted(node.args[0]) if is_always else ""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add | ast.Mult):
        return ""
    drawn = _DRAWN if isinstance(node.op, ast.Add) else {"bernoulli", "rand_like", "rand"}
    for clean, noise in ((node.left, node.right), (node.right, node.left)):
        whole = resolved(source, scope, noise)
        if dotted(clean) and any(called(each) in drawn for each in source.walk(whole)):
            return dotted(clean)
    return ""
