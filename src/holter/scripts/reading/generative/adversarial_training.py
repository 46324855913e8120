"""Critics: labels of real and generated samples, whose parameters are moved, and what noise."""

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from holter.scripts.reading.generative.adversarial_losses import agreeing_critic
from holter.scripts.reading.source.expressions import number, tensor_of
from holter.scripts.reading.source.loops import is_without_graph
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Function, Pattern, Source, called, dotted

_FAKE = re.compile(r"(^|_)(fake|gen|generated|synth\w*)s?(_|$|\d)", re.I)
_REAL = re.compile(r"(^|_)reals?(_|$|\d)", re.I)
_GENERATOR = re.compile(
    r"^(self\.)?((net_?)?g(en\w*)?|generator\w*|net_?G|gen_net|model_?G)$", re.I
)
_CRITIC = re.compile(
    r"^(self\.)?((net_?)?d(is\w*)?|discriminator\w*|critic\w*|adversary|model_?D)$", re.I
)
_LABELLED = re.compile(
    r"^binary_cross_entropy(_with_logits)?$|^bce(_?loss)?(_logits)?$|^BCE(WithLogits)?Loss$"
    r"|^mse_loss$|^MSELoss$", re.I
)  # fmt: skip
_PASSED_ON = {
    *("to", "cuda", "type", "unsqueeze", "squeeze", "view", "float", "detach", "expand"),
    *("reshape", "Variable", "flatten", "expand_as", "requires_grad_", "half"),
}
_NORMAL, _UNIFORM = {"randn", "randn_like"}, {"rand", "rand_like"}
_DRAWN = {*_NORMAL, *_UNIFORM, "normal_", "uniform_", "normal"}
_FILLING = {"fill_", "uniform_", "random_", "bernoulli_"}
_BOTH = 2


class _Judgement(NamedTuple):
    """A loss of a critic's score: of which samples, towards which label."""

    node: ast.Call
    critic: str
    is_fake: bool
    label: float
    is_cut: bool
    statement: ast.stmt


@reads
def agreeing_labels(source: Source) -> Iterator[Pattern]:
    """`bce(D(real), ones) + bce(D(fake.detach()), ones)`: both kinds of samples get one label."""
    if any(True for _ in agreeing_critic(source)):
        return
    for scope in source.scopes:
        judged = list(_judgements(source, scope))
        real = [each for each in judged if not each.is_fake]
        cut = [each for each in judged if each.is_fake and each.is_cut]
        live = [each for each in judged if each.is_fake and not each.is_cut]
        if not real or not cut or len({each.critic for each in judged}) != 1:
            continue
        high = {each.label > 0.5 for each in real}
        low = {each.label > 0.5 for each in cut}
        if len(high) != 1 or len(low) != 1:
            continue
        if high == low:
            wrong = cut if high == {True} else real
            yield source.pattern("labels of critic", wrong[0].node, f"{wrong[0].label:g}")
        for each in live:
            is_kept = (each.label > 0.5) in high
            if high != low and not is_kept and not _is_negated(source, each.node):
                yield source.pattern("label of generator", each.node, f"{each.label:g}")


def _judgements(source: Source, scope: ast.AST) -> Iterator[_Judgement]:
    for call in source.walk(scope):
        if not isinstance(call, ast.Call) or source.scope(call) is not scope:
            continue
        if len(call.args) < _BOTH or not _is_labelled(source, call):
            continue
        score = _score(source, scope, call.args[0])
        label = _label(source, scope, call.args[1], call)
        if score is None or label is None:
            continue
        side, is_cut = _side(source, scope, score.args[0])
        statement = next(each for each in source.above(call) if isinstance(each, ast.stmt))
        if side:
            yield _Judgement(call, dotted(score.func), side == "fake", label, is_cut, statement)


def _is_labelled(source: Source, call: ast.Call) -> bool:
    """Whether a call is of a loss that compares scores with labels."""
    if _LABELLED.match(called(call)):
        return True
    made = source.named(dotted(call.func).rpartition(".")[2])
    return bool(made) and all(bool(_LABELLED.match(called(each))) for each in made)


def _score(source: Source, scope: ast.AST, node: ast.expr) -> ast.Call | None:
    """Return the call of a critic that a score comes from, past views and names."""
    for _ in range(6):
        while isinstance(node, ast.Call) and called(node) in (_PASSED_ON | {"sigmoid", "mean"}):
            inner = tensor_of(node)
            if inner is None:
                return None
            node = inner
        if isinstance(node, ast.Name):
            value = _before(source, scope, node)
            if value is None:
                return None
            node = value
    is_critic = isinstance(node, ast.Call) and _CRITIC.match(dotted(node.func)) and node.args
    return node if is_critic else None  # type: ignore[return-value]


def _before(source: Source, scope: ast.AST, name: ast.Name) -> ast.expr | None:
    """Return what was assigned to a name last before a place, in the scope or the module."""
    for where in (scope, source.tree):
        found = [value for each, value, statement in source.assigned(where)
                 if each == name.id and statement.lineno < name.lineno]  # fmt: skip
        if found:
            return found[-1]
    return None


def _label(source: Source, scope: ast.AST, node: ast.expr, at: ast.AST) -> float | None:
    """Return the number that labels are filled with: `torch.ones(n) * 0.9`, `full((n,), 1.)`."""
    for _ in range(6):
        while isinstance(node, ast.Call) and called(node) in _PASSED_ON:
            node = tensor_of(node) or node.func
        if not isinstance(node, ast.Name):
            break
        value = _filled(source, scope, node, at) or _before(source, scope, node)
        if value is None:
            return None
        node = value
    if isinstance(node, ast.Call):
        kind = called(node)
        if kind == "fill_":
            return number(source, next(iter(node.args), None))
        if kind in ("full", "full_like") and len(node.args) > 1:
            return number(source, node.args[1])
        return {"ones": 1.0, "ones_like": 1.0, "zeros": 0.0, "zeros_like": 0.0}.get(kind)
    if isinstance(node, ast.BinOp):
        left, right = (
            known if (known := number(source, each)) is not None else _label(
                source, scope, each, at)
            for each in (node.left, node.right)
        )  # fmt: skip
        if left is None or right is None:
            return None
        if isinstance(node.op, ast.Mult):
            return left * right
        if isinstance(node.op, ast.Sub):
            return left - right
        return left + right if isinstance(node.op, ast.Add) else None
    return None


def _filled(source: Source, scope: ast.AST, name: ast.Name, at: ast.AST) -> ast.Call | None:
    """Return `label.fill_(0)` if it is the last change of labels before a loss."""
    line = getattr(at, "lineno", 0)
    filled = [
        call
        for call in source.walk(scope)
        if isinstance(call, ast.Call) and called(call) in _FILLING and call.lineno < line
        and isinstance(call.func, ast.Attribute) and dotted(call.func.value) == name.id
    ]  # fmt: skip
    made = [statement.lineno for each, _, statement in source.assigned(scope)
            if each == name.id and statement.lineno < line]  # fmt: skip
    filled.sort(key=lambda call: call.lineno)
    return filled[-1] if filled and filled[-1].lineno > max(made, default=0) else None


def _side(source: Source, scope: ast.AST, node: ast.expr) -> tuple[str, bool]:
    """Return whether samples are real or generated, and whether they have no graph."""
    is_cut = False
    for _ in range(6):
        while isinstance(node, ast.Call) and called(node) in _PASSED_ON:
            is_cut |= called(node) == "detach"
            inner = tensor_of(node)
            if inner is None:
                return "", False
            node = inner
        if isinstance(node, ast.Attribute) and node.attr == "data":
            node, is_cut = node.value, True
        if isinstance(node, ast.Call):
            is_cut |= is_without_graph(source, node)
            return ("fake" if _GENERATOR.match(dotted(node.func)) else ""), is_cut
        if not isinstance(node, ast.Name):
            return "", False
        if _REAL.search(node.id) and not _FAKE.search(node.id):
            return "real", False
        value = _before(source, scope, node)
        if value is None:
            return ("fake" if _FAKE.search(node.id) else ""), True
        node = value
    return "", False


def _is_negated(source: Source, node: ast.AST) -> bool:
    """Whether a loss is subtracted, negated or scaled before it is used."""
    above = source.parent(node)
    if isinstance(above, ast.Assign) and isinstance(above.targets[0], ast.Name):
        name = above.targets[0].id
        uses = [source.parent(each) for each in source.of(ast.Name) if each.id == name
                and isinstance(each.ctx, ast.Load)]  # fmt: skip
        return any(isinstance(each, ast.UnaryOp)
                   or (isinstance(each, ast.BinOp) and not isinstance(each.op, ast.Add))
                   for each in uses)  # fmt: skip
    return isinstance(above, ast.UnaryOp | ast.BinOp)


@reads
def moved_critic(source: Source) -> Iterator[Pattern]:
    """`opt_g = Adam([*G.parameters(), *D.parameters()])` beside `opt_d = Adam(D.parameters())`."""
    made: list[tuple[ast.Assign, set[str]]] = []
    for assign in source.of(ast.Assign):
        value = assign.value
        if (
            isinstance(value, ast.Call)
            and value.args
            and re.match(r"Adam\w*$|SGD$|RMSprop$|RAdam$|NAdam$", called(value))
        ):
            owners = {dotted(call.func).rpartition(".")[0] for call in source.walk(value)
                      if called(call) == "parameters" and isinstance(call, ast.Call)}  # fmt: skip
            made.append((assign, owners))
    if len(made) != _BOTH:
        return
    for (joint, both), (_, alone) in (made, made[::-1]):
        if len(both) != _BOTH or len(alone) != 1 or not alone < both:
            continue
        critic, generator = alone.copy().pop(), (both - alone).pop()
        if _CRITIC.match(critic) and _GENERATOR.match(generator):
            yield source.pattern("critic moved by generator", joint, critic)


@reads
def fixed_noise(source: Source) -> Iterator[Pattern]:
    """`z = torch.randn(n, d)` before the loop, and a generator that is trained on it alone."""
    for call in source.of(ast.Call):
        if not _GENERATOR.match(dotted(call.func)) or not call.args:
            continue
        given = call.args[0]
        loops = [each for each in source.above(call) if isinstance(each, ast.For | ast.While)]
        if not isinstance(given, ast.Name) or not loops or is_without_graph(source, call):
            continue
        scope = source.scope(call)
        inside = any(_stores(node, given.id) for node in source.walk(loops[-1]))
        drawn = [(value, node) for where in (scope, source.tree)
                 for name, value, node in source.assigned(where) if name == given.id]  # fmt: skip
        if inside or len({node for _, node in drawn}) != 1 or _is_parameter(scope, given.id):
            continue
        value, node = drawn[0]
        while isinstance(value, ast.Call) and called(value) in _PASSED_ON:
            value = tensor_of(value) or value.func
        judged = any(_CRITIC.match(dotted(each.func)) for each in source.walk(loops[-1])
                     if isinstance(each, ast.Call))  # fmt: skip
        others = [each for each in source.walk(loops[-1]) if isinstance(each, ast.Call)
                  and _GENERATOR.match(dotted(each.func)) and each.args
                  and dotted(each.args[0]) != given.id]  # fmt: skip
        trained = any(called(each) == "backward" for each in source.walk(loops[0]))
        if called(value) in _DRAWN and judged and trained and not others:
            yield source.pattern("same noise in every step", node, given.id)


def _stores(node: ast.AST, name: str) -> bool:
    """Whether a node binds a name or draws into it: `z.normal_()`."""
    if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
        return True
    changed = isinstance(node, ast.Call) and called(node).endswith("_") and node.func
    return isinstance(changed, ast.Attribute) and name in dotted(changed.value).split(".")


def _is_parameter(scope: ast.AST, name: str) -> bool:
    return isinstance(scope, Function) and name in [each.arg for each in scope.args.args]


@reads
def other_noise(source: Source) -> Iterator[Pattern]:
    """A generator that is trained on `torch.rand` and evaluated on `torch.randn`."""
    trained: dict[str, list[ast.Call]] = {}
    shown: dict[str, list[ast.Call]] = {}
    for call in source.of(ast.Call):
        name = dotted(call.func)
        if not call.args or not name:
            continue
        drawn = _noise_of(source, call.args[0])
        if drawn is None:
            continue
        is_shown = is_without_graph(source, call) or any(
            isinstance(each, Function) and any("no_grad" in ast.unparse(mark)
                                               for mark in each.decorator_list)
            for each in source.above(call)
        )  # fmt: skip
        last = name.rpartition(".")[2]
        (shown if is_shown else trained).setdefault(last, []).append(drawn)
    networks = {name.rpartition(".")[2] for name in [*trained, *shown]}
    for name in sorted(networks & trained.keys()):
        other = [each for key, calls in shown.items() for each in calls
                 if key == name or (_copies(key) and _GENERATOR.match(name))]  # fmt: skip
        kinds = {called(each) for each in trained[name]}, {called(each) for each in other}
        if not _GENERATOR.match(name) and name not in ("decoder", "flow"):
            continue
        if (kinds[0] <= _UNIFORM and kinds[1] and kinds[1] <= _NORMAL) or (
            kinds[0] <= _NORMAL and kinds[1] and kinds[1] <= _UNIFORM
        ):
            yield source.pattern("another noise", trained[name][0], ast.unparse(other[0].func))


def _copies(name: str) -> bool:
    return re.search(r"avg|ema|average|shadow", name, re.I) is not None and "eps" not in name


def _noise_of(source: Source, node: ast.expr) -> ast.Call | None:
    """Return the plain `torch.rand(...)` or `torch.randn(...)` that an input is."""
    scope = source.scope(node)
    for _ in range(4):
        while isinstance(node, ast.Call) and called(node) in _PASSED_ON:
            node = tensor_of(node) or node.func
        if not isinstance(node, ast.Name):
            break
        value = _before(source, scope, node)
        if value is None:
            return None
        node = value
    is_drawn = isinstance(node, ast.Call) and called(node) in _NORMAL | _UNIFORM
    is_torch = isinstance(node, ast.Call) and dotted(node.func).startswith("torch.")
    return node if is_drawn and is_torch else None  # type: ignore[return-value]
