"""Adversarial training: critics that agree with the generator, generators without gradients."""

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from holter.scripts.reading.source.expressions import number, resolved, summands, tensor_of
from holter.scripts.reading.source.objective import Term, objectives
from holter.scripts.reading.source.origins import Frame, origins
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Pattern, Source, called, dotted

_FAKE = re.compile(r"(^|_)(fake|gen|generated|synth\w*)s?(_|$|\d)|^(gz|x_?hat|xg)$", re.I)
_REAL = re.compile(r"(^|_)real(_|$|\d)|^(x|xb|images?|imgs?|batch|data)$", re.I)
_GENERATOR = re.compile(r"^(net_?)?g(en\w*)?$|generator|(^|_)gen(_|$)|netG|decoder", re.I)
_LABELLED = re.compile(
    r"^binary_cross_entropy(_with_logits)?$|^bce(_|$)|^BCE(WithLogits)?Loss$|^mse_loss$|^MSELoss$"
)
_PASSED_ON = {"Variable", "to", "cuda", "type", "unsqueeze", "squeeze", "view", "float", "detach"}
_VIEWS = {"view", "squeeze", "flatten", "reshape", "mean", "float"}
_WRAPPING = {"to", "cuda", "apply", "train", "DataParallel", "compile"}
_OPTIMIZER = re.compile(r"^(Adam\w*|SGD|RMSprop|Adagrad|RAdam|NAdam|Lion)$")


@reads
def agreeing_critic(source: Source) -> Iterator[Pattern]:
    """`critic(real).mean() - critic(fake).mean()` is minimised, and so is `-critic(fake)`."""
    judged: list[tuple[str, dict[str, set[int]], Term]] = []
    for terms in objectives(source):
        signs: dict[str, dict[str, set[int]]] = {}
        places: dict[str, Term] = {}
        for term in terms:
            score, direction = _score(source, term)
            if score is None or not term.sign or len(score.node.args) != 1:
                continue
            side = _side(source, score)
            name = dotted(score.node.func).rpartition(".")[2]
            if side and name:
                signs.setdefault(name, {}).setdefault(side, set()).add(term.sign * direction)
                places.setdefault(name, term)
        judged += [(name, found, places[name]) for name, found in signs.items()]
    for name, found, place in judged:
        if set(found) != {"real", "fake"} or any(len(each) > 1 for each in found.values()):
            continue
        if found["real"] == found["fake"]:
            continue
        opponents = [each for other, each, _ in judged
                     if other == name and set(each) == {"fake"}]  # fmt: skip
        if opponents and all(each["fake"] == found["fake"] for each in opponents):
            yield source.pattern("agreeing critic", place.node, name)


class _Judged(NamedTuple):
    """A call of a critic, and the frame that it is made in."""

    node: ast.Call
    frame: Frame


def _score(source: Source, term: Term) -> tuple[_Judged | None, int]:
    """Return the score that a term of a loss is made of, and whether the term rises with it."""
    node, direction, frame = term.node, 1, term.frame
    if not isinstance(node, ast.Call) or not node.args:
        return None, 0
    made = [each for each in source.named(dotted(node.func).rpartition(".")[2])
            if isinstance(each, ast.Call)]  # fmt: skip
    if _LABELLED.search(called(node)) or (made and all(_LABELLED.search(called(e)) for e in made)):
        direction = _towards(source, node, frame)
        node = node.args[0]
    elif called(node) in ("softplus", "relu", "logsigmoid"):
        direction = -1 if called(node) == "logsigmoid" else 1
        inner = [(sign, part) for sign, part in summands(tensor_of(node) or node)
                 if not isinstance(part, ast.Constant)]  # fmt: skip
        if len(inner) != 1:
            return None, 0
        direction, node = direction * inner[0][0], inner[0][1]
    elif not term.reductions:
        return None, 0
    for _ in range(4):
        while isinstance(node, ast.Call) and called(node) in _VIEWS:
            node = tensor_of(node) or node.func
        if not isinstance(node, ast.Name):
            break
        values = list(origins(source, node, frame))
        if len(values) != 1:
            return None, 0
        node, frame = values[0].node, values[0].frame
    is_score = isinstance(node, ast.Call) and direction
    return (_Judged(node, frame), direction) if is_score else (None, 0)  # type: ignore[arg-type]


def _towards(source: Source, call: ast.Call, frame: Frame) -> int:
    """Return -1 for a loss whose labels are ones, 1 for zeros, and 0 for what is unknown."""
    node = call.args[1] if len(call.args) > 1 else call
    for _ in range(6):
        while isinstance(node, ast.Call) and called(node) in _PASSED_ON:
            is_method = isinstance(node.func, ast.Attribute)
            node = node.func.value if is_method else next(iter(node.args), node.func)  # type: ignore[attr-defined]
        if not isinstance(node, ast.Name):
            break
        values = list(origins(source, node, frame))
        if len(values) != 1:
            return 0
        node, frame = values[0].node, values[0].frame
    kind = called(node)
    if kind == "fill_" and isinstance(node, ast.Call) and node.args:
        filled = number(source, node.args[0])
        return 0 if filled is None else (-1 if filled > 0.5 else 1)
    if kind in ("full", "full_like") and isinstance(node, ast.Call) and len(node.args) > 1:
        value = number(source, node.args[1])
        return 0 if value is None else (-1 if value > 0.5 else 1)
    return {"ones": -1, "ones_like": -1, "zeros": 1, "zeros_like": 1}.get(kind, 0)


def _side(source: Source, score: _Judged) -> str:
    """Return whether a score is that of real or of generated samples, or ""."""
    given, frame = score.node.args[0], score.frame
    for _ in range(4):
        while isinstance(given, ast.Call) and called(given) in ("detach", "data", "requires_grad_"):
            given = tensor_of(given) or given.func
        if isinstance(given, ast.Call):
            return "fake" if _GENERATOR.search(called(given)) else ""
        if not isinstance(given, ast.Name):
            return ""
        if _FAKE.search(given.id) or _REAL.search(given.id):
            return "fake" if _FAKE.search(given.id) else "real"
        values = list(origins(source, given, frame))
        if len(values) != 1:
            return ""
        given, frame = values[0].node, values[0].frame
    return ""


@reads
def cut_generator(source: Source) -> Iterator[Pattern]:
    """`fake = G(z).detach()`, and a loss of `D(fake)` that the generator's optimizer steps on."""
    for call in source.of(ast.Call):
        if called(call) != "backward" or not isinstance(call.func, ast.Attribute):
            continue
        stepped = _next_step(source, call)
        if not _is_of_generator(source, stepped):
            continue
        loss = resolved(source, source.scope(call), call.func.value)
        made = [node for node in source.walk(loss) if isinstance(node, ast.Call)]
        names = [node for node in source.walk(loss) if isinstance(node, ast.Name)
                 and isinstance(node.ctx, ast.Load)]  # fmt: skip
        names += [each for name in names
                  for each in source.walk(resolved(source, source.scope(call), name))
                  if isinstance(each, ast.Name) and each is not name]  # fmt: skip
        names = [name for name in names if not _is_called(source, name)]
        cut = [name for name in names if _is_cut(source, name)]
        is_alive = any(
            _GENERATOR.search(called(node)) and not _is_detached(source, node) for node in made
        ) or any(
            name.id != cut_.id and _makes_samples(source, name) for name in names for cut_ in cut
        )
        is_unpacked = any(
            isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple)
            for name in names for node in source.bindings(source.scope(name), name.id)
        )  # fmt: skip
        if cut and not is_alive and not is_unpacked:
            yield source.pattern("cut generator", call, cut[0].id)


def _is_called(source: Source, name: ast.Name) -> bool:
    above = source.parent(name)
    return isinstance(above, ast.Call) and above.func is name


def _next_step(source: Source, call: ast.Call) -> str:
    """Return the name of the optimizer that steps next in the block of a backward pass."""
    statement = next(each for each in source.above(call) if isinstance(each, ast.stmt))
    above = source.parent(statement)
    block = next((part for field in ("body", "orelse") for part in [getattr(above, field, [])]
                  if statement in part), [])  # fmt: skip
    if not block:
        return ""
    for each in block[block.index(statement) + 1 :]:
        calls = [node for node in source.walk(each) if isinstance(node, ast.Call)]
        if any(called(node) == "backward" for node in calls):
            return ""
        for node in calls:
            if called(node) == "step" and isinstance(node.func, ast.Attribute):
                return dotted(node.args[0] if node.args else node.func.value)
    return ""


def _is_of_generator(source: Source, optimizer: str) -> bool:
    """Whether an optimizer is that of a generator, by its parameters and by its name."""
    last = optimizer.rpartition(".")[2]
    if not re.search(r"(^|_)(g|gen|generator)(_|$)|opt\w*G$|^G", last):
        return False
    values = source.named(last)
    return all(
        not isinstance(value, ast.Call)
        or not _OPTIMIZER.match(called(value))
        or _GENERATOR.search(ast.unparse(value.args[0]).partition(".parameters")[0])
        for value in values
        if isinstance(value, ast.Call) and value.args
    )


def _is_cut(source: Source, name: ast.Name) -> bool:
    """Whether a name, as it is read here, is of generated samples without a graph."""
    above = source.parent(name)
    if isinstance(above, ast.Attribute) and above.attr == "detach":
        return _makes_samples(source, name)
    made = _latest(source, name)
    return made is not None and _is_generated(made) and _is_detached(source, made)


def _makes_samples(source: Source, name: ast.Name) -> bool:
    made = _latest(source, name)
    return made is not None and _is_generated(made)


def _latest(source: Source, name: ast.Name) -> ast.expr | None:
    bound = [node for node in source.bindings(source.scope(name), name.id)
             if isinstance(node, ast.Assign) and node.lineno < name.lineno]  # fmt: skip
    return bound[-1].value if bound and isinstance(bound[-1].targets[0], ast.Name) else None


def _is_generated(value: ast.expr) -> bool:
    return any(_GENERATOR.search(called(node)) for node in ast.walk(value)
               if isinstance(node, ast.Call))  # fmt: skip


def _is_detached(source: Source, value: ast.expr) -> bool:
    """Whether a value is made without a graph: under no_grad, or detached."""
    if called(value) == "detach" or called(source.parent(source.parent(value) or value)
                                           or value) == "detach":  # fmt: skip
        return True
    return any(
        isinstance(each, ast.With)
        and any(called(item.context_expr) in ("no_grad", "inference_mode") for item in each.items)
        for each in source.above(value)
    )


@reads
def copied_optimizer(source: Source) -> Iterator[Pattern]:
    """`opt_d = Adam(generator.parameters())`: two optimizers of one network, none of the other."""
    for scope in source.scopes:
        made: dict[str, list[tuple[str, ast.Call]]] = {}
        for assign in source.of(ast.Assign):
            value = assign.value
            if source.scope(assign) is scope and isinstance(value, ast.Call) and value.args:
                owner = _owner(value.args[0])
                if _OPTIMIZER.match(called(value)) and owner:
                    name = dotted(assign.targets[0])
                    made.setdefault(owner, []).append((name, value))
        for owner, optimizers in made.items():
            names = [name for name, _ in optimizers]
            if len(set(names)) != 2 or not all(names) or not _step_together(source, names):
                continue
            left = _without_optimizer(source, scope, set(made), owner)
            wrong = [each for each in optimizers if left and _is_named_after(each[0], left, owner)]
            if len(wrong) == 1:
                yield source.pattern("copied optimizer", wrong[0][1], left)


def _owner(node: ast.expr) -> str:
    if isinstance(node, ast.Call) and called(node) == "parameters" and not node.args:
        return dotted(node.func).rpartition(".")[0]
    return ""


def _step_together(source: Source, names: list[str]) -> bool:
    """Whether both optimizers are used beside each other, not one after the other in stages."""
    text = source.code(source.tree)
    return all(re.search(rf"\b{re.escape(name)}\b(\.step|\W)", text) for name in names)


def _without_optimizer(source: Source, scope: ast.AST, owned: set[str], owner: str) -> str:
    """Return the one model of a scope that no optimizer holds, and that is no copy."""
    pairs = [(name, value) for name, value, _ in source.assigned(scope)]
    pairs += [(dotted(target), assign.value) for assign in source.of(ast.Assign)
              if source.scope(assign) is scope for target in assign.targets
              if isinstance(target, ast.Attribute)]  # fmt: skip
    models, used = set(), {dotted(call.func) for call in source.of(ast.Call)}
    for name, made in pairs:
        value: ast.expr | None = made
        while isinstance(value, ast.Call) and called(value) in _WRAPPING:
            value = tensor_of(value)
        is_foreign = value is not None and name in used and _is_imported(source, value)
        is_model = value is not None and (source.makes_module(value) or is_foreign)
        if value is not None and is_model and not called(value).endswith("Loss"):
            models.add(name)
    text = source.code(scope)
    left = {name for name in models - owned - {""} if not _is_passed_on(text, name)}
    return left.pop() if len(left) == 1 and owner in models else ""


def _is_imported(source: Source, value: ast.expr) -> bool:
    """Whether an expression calls a class of another module."""
    return called(value) in source.imported and called(value)[:1].isupper()


def _is_passed_on(text: str, name: str) -> bool:
    """Whether the parameters of a model are used in another way, as in a list of groups."""
    return f"{name}.parameters()" in text or f"{name}.requires_grad_(False)" in text


def _is_named_after(optimizer: str, model: str, other: str) -> bool:
    """Whether `opt_d` or `optimizer_critic` names the model more than the other one."""
    part = re.sub(r"optim(izer|iser)?s?|opt", "", optimizer.rpartition(".")[2], flags=re.I)
    part = part.strip("_").lower()
    short, long = (re.sub(r"^net_?", "", each.rpartition(".")[2], flags=re.I).lower()
                   for each in (other, model))  # fmt: skip
    return bool(part) and long.startswith(part) and not short.startswith(part)
