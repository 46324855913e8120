"""Target networks: the network itself, never copied, copied in the wrong direction, or trained."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.agents.bootstrapping import DISCOUNT, NEXT, bootstraps, title
from holter.scripts.reading.source.expressions import tensor_of
from holter.scripts.reading.source.loops import NO_GRADIENT, unplaced
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Function, Pattern, Source, called, dotted

_COPYING = {"load_state_dict", "copy_", "lerp_", "mul_"}
_TARGET = re.compile(r"(^|_)(target|tgt|targ|ema|slow|teacher|momentum)(_|$|\d)|target", re.I)
_COPY = re.compile(r"sync|update|copy|hard|soft|polyak|load_state_dict|state_dict|zip", re.I)
_COPIES = re.compile(r"eval|best|copy|clone|snapshot|saved|backup|old|prev|frozen", re.I)
_BEGINNING = re.compile(r"init|build|make|create|setup|reset|load|restore", re.I)
_AVERAGE = re.compile(r"target|ema|teacher|averaged|average|momentum_", re.I)
_HELD = {"parameters()", "buffers()"}
_COPIED = 2  # a copy and what it is made of
_TARGET_NAME = re.compile(r"target|tgt|(^|_)(targ|slow|frozen|old|ref)(_|$|\d)", re.I)


@reads
def same_network(source: Source) -> Iterator[Pattern]:
    """`self.target = self.q`: both names are the same network."""
    for node in source.of(ast.Assign):
        if len(node.targets) != 1:
            continue
        to, value = dotted(node.targets[0]), dotted(node.value)
        if not to or not value or to == value or not _TARGET.search(to.rpartition(".")[2]):
            continue
        if _TARGET.search(value.rpartition(".")[2]) or not _is_built(source, node, value):
            continue
        if _is_synchronised(source, to, value):
            yield source.pattern("same network", node, value.rpartition(".")[2])


def _is_built(source: Source, node: ast.Assign, name: str) -> bool:
    """Whether a name is a module that the same function or class builds."""
    holder = next(
        (each for each in source.above(node) if isinstance(each, ast.ClassDef)), source.scope(node)
    )
    for each in source.walk(holder):
        is_given = isinstance(each, ast.Assign) and name in map(dotted, each.targets)
        if is_given and source.makes_module(unplaced(each.value)):  # type: ignore[attr-defined]
            return True
    return False


def _is_synchronised(source: Source, one: str, other: str) -> bool:
    """Whether the file copies the one network to the other, or gives both to such a function."""
    names = {one.rpartition(".")[2], other.rpartition(".")[2]}
    for call in source.of(ast.Call):
        if not _COPY.search(called(call)) and not _COPY.search(ast.unparse(call.func)):
            continue
        parts = {
            title(each) for each in source.walk(call) if isinstance(each, ast.Name | ast.Attribute)
        }
        if names <= parts:
            return True
    return False


@reads
def never_copied(source: Source) -> Iterator[Pattern]:
    """A function that copies weights into a target network, and that nothing calls."""
    used = {each.attr for each in source.of(ast.Attribute)} | {
        each.id for each in source.of(ast.Name) if isinstance(each.ctx, ast.Load)
    }
    for function in source.of(*Function.__args__):
        if function.name in used or function.name.startswith("__") or function.decorator_list:
            continue
        names = {
            title(each)
            for each in source.walk(function)
            if isinstance(each, ast.Name | ast.Attribute)
        }
        copies = [call for call in source.walk(function) if isinstance(call, ast.Call)
                  and called(call) in ("load_state_dict", "copy_", "lerp_")]  # fmt: skip
        is_copy = (
            any(isinstance(each.func, ast.Attribute) for each in copies) and len(function.body) <= 4
        )
        if is_copy and any(re.search(r"target|tgt|targ(_|$)", name) for name in names) and not (
            _is_copied_elsewhere(source, function)
        ):  # fmt: skip
            body = next(
                (each for each in source.above(function) if isinstance(each, ast.ClassDef)), None
            )
            is_made = body is not None and any(
                called(call) == body.name for call in source.of(ast.Call)
            )
            if is_made or (body is None and source.is_script):
                yield source.pattern("target never copied", function, function.name)


def _is_copied_elsewhere(source: Source, function: Function) -> bool:
    """Whether weights are copied in a loop, or in another function that is no constructor."""
    for call in source.of(ast.Call):
        scope = source.scope(call)
        if called(call) not in _COPYING or scope is function:
            continue
        in_loop = any(isinstance(each, ast.For | ast.While) for each in source.above(call))
        if in_loop or getattr(scope, "name", "__init__") != "__init__":
            return True
    return False


@reads
def reversed_copy(source: Source) -> Iterator[Pattern]:
    """`model.load_state_dict(target.state_dict())` in a loop: the network that learns is undone."""
    for node in source.of(ast.Call):
        if called(node) != "load_state_dict" or not node.args:
            continue
        given = node.args[0]
        if called(given) != "state_dict" or not isinstance(given, ast.Call):
            continue
        assert isinstance(node.func, ast.Attribute)
        to = ast.unparse(node.func.value)
        source_of = ast.unparse(given.func.value) if isinstance(given.func, ast.Attribute) else ""
        is_average, was_average = _AVERAGE.search(to), _AVERAGE.search(source_of)
        in_loop = any(isinstance(each, ast.For | ast.While) for each in source.above(node))
        inside = source.scope(node) is not source.tree
        if not was_average or is_average or "target" not in source_of.lower():
            continue
        at_start = _BEGINNING.search(getattr(source.scope(node), "name", ""))
        if not (in_loop or inside) or (at_start and not in_loop) or _COPIES.search(to):
            continue
        if not _is_copied_back(source, to, source_of):
            yield source.pattern("reversed copy", node, source_of)


def _is_copied_back(source: Source, model: str, target: str) -> bool:
    """Whether a loop or function, not a constructor, copies the model to the target as well."""
    return any(
        called(node) == "load_state_dict"
        and isinstance(node, ast.Call)
        and ast.unparse(node.func) == f"{target}.load_state_dict"
        and ast.unparse(node).count(f"{model}.state_dict") == 1
        and any(isinstance(each, ast.For | ast.While | ast.FunctionDef)
                and getattr(each, "name", "") != "__init__" for each in source.above(node))
        for node in source.of(ast.Call)
    )  # fmt: skip


@reads
def self_copy(source: Source) -> Iterator[Pattern]:
    """`target.load_state_dict(target.state_dict())`, or `target = deepcopy(target)` in a loop."""
    for node in source.of(ast.Call):
        if called(node) == "load_state_dict" and node.args and isinstance(node.func, ast.Attribute):
            to, given = ast.unparse(node.func.value), node.args[0]
            if _AVERAGE.search(to) and ast.unparse(given) == f"{to}.state_dict()":
                yield source.pattern("self copy", node, to)
        elif called(node) == "zip" and len(node.args) == _COPIED:
            one, other = (ast.unparse(each) for each in node.args)
            head, _, method = one.rpartition(".")
            is_loop = isinstance(source.parent(node), ast.For)
            if one == other and is_loop and method in _HELD and _AVERAGE.search(head):
                yield source.pattern("self copy", node, head)
    for assign in source.of(ast.Assign):
        value, name = assign.value, dotted(assign.targets[0])
        if (
            called(value) == "deepcopy"
            and isinstance(value, ast.Call)
            and [dotted(each) for each in value.args] == [name]
            and _AVERAGE.search(name)
            and any(isinstance(each, ast.For | ast.While) for each in source.above(assign))
        ):
            yield source.pattern("self copy", assign, name)


@reads
def live_goal(source: Source) -> Iterator[Pattern]:
    """`loss(q(s), r + gamma * q(s2).max(1).values)`: a gradient flows through the goal as well."""
    for node, product in bootstraps(source):
        scope = source.scope(node)
        if not isinstance(scope, Function) and scope is not source.tree:
            continue
        if _is_cut(source, node) or len(product) == 0:
            continue
        network = ""
        for each in product:
            network = network or _network(source, scope, each, 0)
        if not network or _TARGET_NAME.search(network):
            continue
        name = "" if isinstance(source.parent(node), ast.Call) else _assigned_name(source, node)
        loss = _loss_of(source, scope, node, name)
        if loss is None or not _predicts(source, scope, loss, node, network):
            continue
        yield source.pattern("gradient through the goal", node, network)


def _is_cut(source: Source, node: ast.AST) -> bool:
    """Whether a node is under no_grad, or detached."""
    for each in source.above(node):
        if isinstance(each, ast.With) and any(
            called(item.context_expr) in NO_GRADIENT for item in each.items
        ):
            return True
        if isinstance(each, ast.Attribute) and each.attr in ("detach", "item", "data", "numpy"):
            return True
        if isinstance(each, Function) and any(
            dotted(mark.func if isinstance(mark, ast.Call) else mark).rpartition(".")[2]
            in NO_GRADIENT
            for mark in each.decorator_list
        ):
            return True
        if isinstance(each, Function):
            break
    return False


def _network(source: Source, scope: ast.AST, node: ast.expr, depth: int) -> str:
    """Return the network whose values of a next state an expression is, with its graph."""
    if depth > 6 or _is_cut(source, node):
        return ""
    if isinstance(node, ast.Name):
        values = [value for name, value, _ in source.assigned(scope) if name == node.id]
        return _network(source, scope, values[0], depth + 1) if len(values) == 1 else ""
    if isinstance(node, ast.Subscript | ast.Attribute):
        return _network(source, scope, node.value, depth + 1)
    if not isinstance(node, ast.Call) or called(node) in ("detach", "item", "numpy", "tensor"):
        return ""
    if node.args and NEXT.search(title(node.args[0])) and dotted(node.func):
        is_reduced = isinstance(node.func, ast.Attribute) and node.func.attr in ("max", "amax")
        if not is_reduced and dotted(node.func) not in ("torch.max", "torch.amax"):
            return dotted(node.func)
    inner = tensor_of(node)
    return _network(source, scope, inner, depth + 1) if inner is not None else ""


def _assigned_name(source: Source, node: ast.AST) -> str:
    statement = next((each for each in source.above(node) if isinstance(each, ast.stmt)), None)
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        return dotted(statement.targets[0])
    return ""


def _loss_of(source: Source, scope: ast.AST, node: ast.AST, name: str) -> ast.Call | None:
    """Return the loss that compares a goal with a prediction, if nothing detaches it there."""
    reads = [each for each in source.walk(scope) if name and dotted(each) == name
             and isinstance(getattr(each, "ctx", None), ast.Load)]  # fmt: skip
    if name and (len(reads) != 1 or isinstance(source.parent(reads[0]), ast.Attribute)):
        return None
    for call in source.walk(scope):
        if not isinstance(call, ast.Call) or len(call.args) < 2:
            continue
        if not re.search(r"mse|l1|huber|smooth|loss|criterion", called(call), re.I):
            continue
        if (name and reads[0] in call.args) or node in call.args:
            return call
    return None


def _predicts(source: Source, scope: ast.AST, loss: ast.Call, node: ast.AST, network: str) -> bool:
    """Whether the other side of a loss is made by the same network."""
    for given in loss.args[:2]:
        if given is node:
            continue
        parts = list(source.walk(given))
        for name, value, _ in source.assigned(scope):
            if name == dotted(given):
                parts += source.walk(value)
        for call in parts:
            is_same = isinstance(call, ast.Call) and dotted(call.func) == network and call.args
            if is_same and not NEXT.search(title(call.args[0])):  # type: ignore[attr-defined]
                return True
    return False


def _inherits_elsewhere(source: Source, function: ast.AST) -> bool:
    """Whether a method's class has a base that another file defines, and what it does with it."""
    body = source.parent(function)
    known = {"object", *(each.name for each in source.of(ast.ClassDef))}
    return isinstance(body, ast.ClassDef) and any(
        dotted(base) not in known and not dotted(base).endswith("Module") for base in body.bases
    )


@reads
def fixed_target(source: Source) -> Iterator[Pattern]:
    """A target network whose values are bootstrapped, and that gets weights only once."""
    if not any(DISCOUNT.search(title(each)) for each in source.of(ast.Name, ast.Attribute)
               if isinstance(each, ast.expr)):  # fmt: skip
        return
    text = source.code(source.tree)
    copies: dict[str, list[ast.Call]] = {}
    for call in source.of(ast.Call):
        if called(call) == "load_state_dict" and isinstance(call.func, ast.Attribute):
            owner = dotted(call.func.value)
            given = ast.unparse(call.args[0] if call.args else call)
            if _TARGET_NAME.search(owner.rpartition(".")[2]) and "state_dict" in given:
                copies.setdefault(owner.rpartition(".")[2], []).append(call)
    for assign in source.of(ast.Assign):
        name = dotted(assign.targets[0]).rpartition(".")[2]
        if called(assign.value) == "deepcopy" and _TARGET_NAME.search(name):
            copies.setdefault(name, []).append(assign.value)  # type: ignore[arg-type]
    for name, calls in copies.items():
        if len(calls) != 1 or not _bootstrapped(source, name):
            continue
        call = calls[0]
        scope = source.scope(call)
        looped = any(isinstance(each, ast.For | ast.While) for each in source.above(call))
        is_start = scope is source.tree or getattr(scope, "name", "") in (
            "__init__", "main", "train", "build", "setup", "run")  # fmt: skip
        if looped or not is_start or _inherits_elsewhere(source, scope):
            continue
        rest = text.replace(ast.unparse(call), "")
        is_written = re.search(
            rf"\b{name}\.(parameters|named_parameters|buffers|state_dict|weight|modules|update|sync"
            rf"|copy)\b|zip\([^)]*\b{name}\b", rest,
        )  # fmt: skip
        if not is_written and not _is_given_to_writer(source, name):
            yield source.pattern("fixed target", call, name)


def _is_given_to_writer(source: Source, name: str) -> bool:
    """Whether a function that may write weights is given a network."""
    for call in source.of(ast.Call):
        given = [*call.args, *(each.value for each in call.keywords)]
        if not any(dotted(each).rpartition(".")[2] == name for each in given):
            continue
        bodies = [each for each in source.of(ast.FunctionDef) if each.name == called(call)]
        if not bodies and called(call) not in ("print", "len", "id", "count_parameters"):
            return True
        if any(re.search(r"load_state_dict|copy_\(|lerp_|mul_\(|\.data\b|deepcopy|zip\(.*param",
                         source.code(body)) for body in bodies):  # fmt: skip
            return True
    return False


def _bootstrapped(source: Source, name: str) -> bool:
    """Whether a network of a name is evaluated on next states."""
    for call in source.of(ast.Call):  # `update(q, target, ...)` may rename it: not followed
        is_named = dotted(call.func).rpartition(".")[2] == name and call.args
        if is_named and NEXT.search(title(call.args[0])):
            return True
    return False
