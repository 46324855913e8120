"""Agents and their episodes: exploration, resets, time limits, samples and moving goals."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.bellman import DISCOUNT, NEXT, bootstraps, title
from holter.scripts.reading.source import Function, Pattern, Source, called, dotted
from holter.scripts.reading.values import tensor_of

_EPSILON = re.compile(r"(^|_)(eps|epsilon|explore|exploration)(_|$|\d)|epsilon", re.I)
_UNIFORM = {"random", "rand", "uniform", "random_sample", "item"}
_DRAWN = {"randrange", "randint", "choice", "sample", "integers", "randint_like"}
_GREEDY = {"argmax", "max", "argmin"}
_ENDED = re.compile(r"^(terminated|term|terminal|done|dones?)$", re.I)
_CUT = re.compile(r"^(truncated|trunc|truncation)$", re.I)
_SAMPLING = re.compile(r"^_?(sample|draw|get)(_(batch|minibatch|transitions|experiences?))?$")
_RANDOM = re.compile(r"rand|choice|sample|perm|integers|shuffle|multinomial|priorit|tree", re.I)
_TARGET = re.compile(r"target|tgt|(^|_)(targ|slow|frozen|old|ref)(_|$|\d)", re.I)
_CUTTING = {"no_grad", "inference_mode"}


def random_above_epsilon(source: Source) -> Iterator[Pattern]:
    """`if random.random() > eps: return random action`: the agent explores with `1 - eps`."""
    for node in source.of(ast.If, ast.IfExp):
        assert isinstance(node, ast.If | ast.IfExp)
        epsilon, is_small = _draw(node.test)
        if not epsilon:
            continue
        then = list(node.body) if isinstance(node, ast.If) else [node.body]
        other = list(node.orelse) if isinstance(node, ast.If) else [node.orelse]
        if isinstance(node, ast.If) and not other and isinstance(then[-1], ast.Return):
            other = list(_after(source, node))
        first, second = (_kind(source, part) for part in (then, other))
        if (first, second) == (("random", "greedy") if not is_small else ("greedy", "random")):
            yield source.pattern("random above epsilon", node.test, epsilon)


def _draw(test: ast.expr) -> tuple[str, bool]:
    """Return the name of epsilon in `random() < eps`, and whether the draw is the smaller one."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return "", False
    sides = [test.left, test.comparators[0]]
    is_less = isinstance(test.ops[0], ast.Lt | ast.LtE)
    if not is_less and not isinstance(test.ops[0], ast.Gt | ast.GtE):
        return "", False
    for place, (draw, name) in enumerate((sides, sides[::-1])):
        found = title(name) if not isinstance(name, ast.Call) else called(name)
        if called(draw) in _UNIFORM and _EPSILON.search(found):
            return found, is_less if place == 0 else not is_less
    return "", False


def _after(source: Source, node: ast.stmt) -> list[ast.stmt]:
    """Return the statements that follow in the same block."""
    above = source.parent(node)
    for field in ("body", "orelse"):
        block = getattr(above, field, None)
        if isinstance(block, list) and node in block:
            return block[block.index(node) + 1 :]
    return []


def _kind(source: Source, nodes: list[ast.stmt] | list[ast.expr]) -> str:
    """Return whether statements draw an action, or take the best one."""
    calls = {called(each) for node in nodes for each in source.walk(node)}
    is_greedy, is_random = bool(calls & _GREEDY), bool(calls & _DRAWN)
    if is_greedy == is_random:
        return ""
    return "greedy" if is_greedy else "random"


def dropped_observation(source: Source) -> Iterator[Pattern]:
    """`env.reset()` as a statement in a loop whose next action is taken from the old `obs`."""
    for statement in source.of(ast.Expr):
        call = statement.value
        if called(call) != "reset" or not isinstance(call, ast.Call):
            continue
        env = dotted(call.func).rpartition(".")[0]
        loop = next((each for each in source.above(statement)
                     if isinstance(each, ast.For | ast.While | Function)), None)  # fmt: skip
        is_branch = any(isinstance(each, ast.If) for each in source.above(statement))
        if not env or not isinstance(loop, ast.For | ast.While) or not is_branch:
            continue
        if any(isinstance(each, ast.Break | ast.Return) for each in _after(source, statement)):
            continue
        observed = _observed(source, loop, env)
        stores = [each for each in source.walk(loop) if dotted(each) == observed
                  and isinstance(getattr(each, "ctx", None), ast.Store)]  # fmt: skip
        if observed and len(stores) == 1 and not _is_taken(source, loop, statement, env):
            yield source.pattern("dropped observation", statement, observed)


def _observed(source: Source, loop: ast.AST, env: str) -> str:
    """Return the name under which a loop keeps its observation: `obs, r, done, _ = env.step(a)`."""
    for node in source.walk(loop):
        if isinstance(node, ast.Assign) and called(node.value) == "step":
            target, call = node.targets[0], node.value
            if dotted(call.func).rpartition(".")[0] != env:  # type: ignore[attr-defined]
                continue
            if isinstance(target, ast.Tuple) and len(target.elts) in (4, 5):
                name = dotted(target.elts[0])
                passed = [
                    dotted(each.targets[0])
                    for each in source.walk(loop)
                    if isinstance(each, ast.Assign) and dotted(each.value) == name
                ]
                return next(iter(passed), name)
    return ""


def _is_taken(source: Source, loop: ast.AST, statement: ast.Expr, env: str) -> bool:
    """Whether the loop reads an observation in another way: a second reset, `env.state`."""
    for node in source.walk(loop):
        if isinstance(node, ast.Call) and dotted(node.func).startswith(f"{env}."):
            if called(node) not in ("step", "reset", "render", "close", "seed"):
                return True
            if called(node) == "reset" and source.parent(node) is not statement:
                return True
        if isinstance(node, ast.Attribute) and dotted(node.value) == env:
            is_called = isinstance(source.parent(node), ast.Call)
            if not is_called and node.attr not in ("action_space", "observation_space"):
                return True
    return False


def unread_time_limit(source: Source) -> Iterator[Pattern]:
    """`if terminated: obs, _ = env.reset()` where `truncated` of the same step is never read."""
    made = {dotted(call.func).rpartition(".")[2] for call in source.of(ast.Call)}
    if not made & {"make", "make_vec"}:
        return  # an environment of the file, which may have no time limit
    for node in source.of(ast.Assign):
        target = node.targets[0]
        if called(node.value) != "step" or not isinstance(target, ast.Tuple):
            continue
        if len(target.elts) != 5:
            continue
        ended, cut = (dotted(each) for each in target.elts[2:4])
        scope = source.scope(node)
        read = {each.id for each in source.walk(scope) if isinstance(each, ast.Name)
                and isinstance(each.ctx, ast.Load)}  # fmt: skip
        if not _ENDED.match(ended) or not cut or cut in read:
            continue
        loop = next((each for each in source.above(node) if isinstance(each, ast.For | ast.While)),
                    None)  # fmt: skip
        for branch in source.walk(loop) if loop is not None else ():
            if isinstance(branch, ast.If) and dotted(branch.test) == ended:
                resets = [each for part in branch.body for each in source.walk(part)
                          if called(each) == "reset"]  # fmt: skip
                if resets:
                    yield source.pattern("unread time limit", branch, cut)


def latest_transitions(source: Source) -> Iterator[Pattern]:
    """`list(self.data)[-size:]` as the sample of a replay buffer: the latest ones, in order."""
    for function in source.of(ast.FunctionDef):
        body = source.parent(function)
        if not _SAMPLING.match(function.name) or not isinstance(body, ast.ClassDef):
            continue
        if _RANDOM.search("".join(ast.unparse(each) for each in function.body)):
            continue
        names = [each.name for each in source.walk(body) if isinstance(each, ast.FunctionDef)]
        stores = any(re.search(r"push|add|store|put", name) for name in names)
        stores |= any(called(each) == "append" for each in source.walk(body))
        is_replay = re.search(r"replay|memory|experience", body.name, re.I) is not None
        is_replay |= "deque(maxlen" in source.code(body) or "capacity" in source.code(body)
        for node in source.walk(function):
            if not stores or not is_replay or not isinstance(node, ast.Subscript):
                continue
            held, part = node.value, node.slice
            while isinstance(held, ast.Call) and called(held) in ("list", "tuple", "array"):
                held = held.args[0] if held.args else held.func
            if not dotted(held).startswith("self.") or not isinstance(part, ast.Slice):
                continue
            low, high = part.lower, part.upper
            is_last = isinstance(low, ast.UnaryOp) and high is None
            is_first = low is None and isinstance(high, ast.Name)
            if is_last or is_first:
                yield source.pattern("latest transitions", node, dotted(held))


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
        if not network or _TARGET.search(network):
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
            called(item.context_expr) in _CUTTING for item in each.items
        ):
            return True
        if isinstance(each, ast.Attribute) and each.attr in ("detach", "item", "data", "numpy"):
            return True
        if isinstance(each, Function) and any(
            dotted(mark.func if isinstance(mark, ast.Call) else mark).rpartition(".")[2] in _CUTTING
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
            if _TARGET.search(owner.rpartition(".")[2]) and "state_dict" in ast.unparse(call.args[0]
                    if call.args else call):  # fmt: skip
                copies.setdefault(owner.rpartition(".")[2], []).append(call)
    for assign in source.of(ast.Assign):
        name = dotted(assign.targets[0]).rpartition(".")[2]
        if called(assign.value) == "deepcopy" and _TARGET.search(name):
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


def limit_as_end(source: Source) -> Iterator[Pattern]:
    """`buffer.add(obs, a, r, next_obs, terminated or truncated)`: a time limit is an end."""
    if not any(True for _ in bootstraps(source)):
        return
    for node in source.of(ast.BoolOp):
        names = [dotted(each) for each in node.values]
        if not isinstance(node.op, ast.Or) or len(names) != 2:
            continue
        if not (_ENDED.match(names[0]) and _CUT.match(names[1])):
            continue
        call = source.parent(node)
        while isinstance(call, ast.Tuple | ast.Call) and not (
            isinstance(call, ast.Call)
            and re.match(r"append|push|add|store|remember|put", called(call))
        ):
            call = source.parent(call)
        if isinstance(call, ast.Call):
            yield source.pattern("time limit as end", call, names[1])
