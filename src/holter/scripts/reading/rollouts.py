"""What an agent stores and learns from: observations, ends of episodes, and its target network."""

import ast
import re
from collections.abc import Iterator, Sequence

from holter.scripts.reading.bellman import DISCOUNT, ENDS, NEXT, REWARD, factors, title
from holter.scripts.reading.loops import owner_of
from holter.scripts.reading.source import Pattern, Source, called, dotted

_STORING = re.compile(
    r"^(append|push|add|store|remember|put|insert|extend|save|cache|record)"
    r"|(_transition|_experience|_sample|_memory|_step)$"
)
_VECTORS = {"SyncVectorEnv", "AsyncVectorEnv", "make_vec", "SubprocVecEnv", "DummyVecEnv"}
_SHOWING = {"print", "format", "write", "info", "debug", "step", "render"}
_LAMBDA = re.compile(r"(^|_)(lam|lambda|lmbda|lambd|gae_lambda|tau|td_lambda)(_|$)", re.I)
_ADVANTAGE = re.compile(r"(^|_)(adv|advs|advantages?|gae|gaes)(_|$)", re.I)
_VALUE = re.compile(r"(^|_)(v|val|vals|values?|baselines?|state_values?)(_|$)", re.I)
_RETURN = re.compile(r"(^|_)(ret|rets|returns?|targets?|r_t|value_targets?|v_target)(_|$)", re.I)


def overwritten(source: Source) -> Iterator[Pattern]:
    """`obs = next_obs` before `buffer.add(obs, action, reward, next_obs, done)`."""
    for block in blocks(source):
        if not any(
            called(each) == "step" for statement in block for each in source.walk(statement)
        ):
            continue
        for place, statement in enumerate(block):
            pair = _handed_on(statement)
            if pair is None:
                continue
            old, new = pair
            for later in block[place + 1 :]:
                if _rebinds(source, later, {old, new}):
                    break
                call = _stores_both(source, later, old, new)
                if call is not None:
                    yield source.pattern("overwritten observation", call, old)
                    break
        yield from _same_twice(source, block)


def blocks(source: Source) -> Iterator[Sequence[ast.stmt]]:
    """Yield each list of statements of a file."""
    for node in source.walk(source.tree):
        for field in ("body", "orelse", "finalbody"):
            body = getattr(node, field, None)
            if isinstance(body, list) and body and isinstance(body[0], ast.stmt):
                yield body


def _handed_on(statement: ast.stmt) -> tuple[str, str] | None:
    """Return the names of `obs = next_obs`."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    value = statement.value
    if called(value) in ("copy", "clone"):
        value = owner_of(value) or value
    old, new = dotted(statement.targets[0]), dotted(value)
    if not old or not NEXT.search(new.rpartition(".")[2]) or NEXT.search(old.rpartition(".")[2]):
        return None
    return old, new


def _rebinds(source: Source, statement: ast.stmt, names: set[str]) -> bool:
    return any(isinstance(getattr(each, "ctx", None), ast.Store) and dotted(each) in names
               for each in source.walk(statement))  # fmt: skip


def _stores_both(source: Source, statement: ast.stmt, old: str, new: str) -> ast.Call | None:
    for call in source.walk(statement):
        if not isinstance(call, ast.Call) or called(call) in _SHOWING:
            continue
        if not _STORING.search(called(call)):
            continue
        given = {dotted(each) for each in _parts(call)}
        if {old, new} <= given:
            return call
    return None


def _parts(call: ast.Call) -> Iterator[ast.expr]:
    """Yield the arguments of a call, and the parts of tuples and of named records among them."""
    for each in [*call.args, *(keyword.value for keyword in call.keywords)]:
        inside: list[ast.expr] = [each]
        if isinstance(each, ast.Tuple | ast.List):
            inside = each.elts
        elif isinstance(each, ast.Dict):
            inside = each.values
        elif isinstance(each, ast.Call) and called(each)[:1].isupper():
            inside = list(each.args)
        yield from (_bare(part) for part in inside)


def _bare(node: ast.expr) -> ast.expr:
    """Return what conversions are called on or given: `obs` of `torch.tensor(obs)`."""
    while isinstance(node, ast.Call):
        inner = node.args[0] if node.args else owner_of(node)
        if inner is None:
            break
        node = inner
    return node


def _same_twice(source: Source, block: Sequence[ast.stmt]) -> Iterator[Pattern]:
    """Yield `obs, reward, done, _ = env.step(a)` before `buffer.add(obs, a, reward, obs, done)`."""
    stepped: str = ""
    for statement in block:
        if isinstance(statement, ast.Assign) and called(statement.value) == "step":
            target = statement.targets[0]
            is_unpacked = isinstance(target, ast.Tuple) and len(target.elts) in (4, 5)
            stepped = dotted(target.elts[0]) if is_unpacked else ""  # type: ignore[attr-defined]
            continue
        if not stepped or not isinstance(statement, ast.Expr):
            continue
        for call in source.walk(statement):
            if isinstance(call, ast.Call) and _STORING.search(called(call)):
                given = [dotted(each) for each in _parts(call)]
                if given.count(stepped) == 2 and len(given) > 3:
                    yield source.pattern("overwritten observation", call, stepped)


def unended(source: Source) -> Iterator[Pattern]:
    """`gae = delta + gamma * lam * gae` over rollouts whose ends of episodes are stored."""
    if not _goes_on_after_ends(source):
        return
    for node in source.of(ast.Assign):
        loop = next((each for each in source.above(node) if isinstance(each, ast.For)), None)
        if loop is None or not isinstance(node.targets[0], ast.Name | ast.Subscript):
            continue
        running = ast.unparse(node.targets[0])
        value = node.value
        if isinstance(value, ast.Name) or not re.search(r"reversed|-1", ast.unparse(loop.iter)):
            continue
        if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Add):
            continue
        for new, past in ((value.left, value.right), (value.right, value.left)):
            product = factors(past)
            own = [each for each in product if ast.unparse(each) == running]
            rest = [each for each in product if each not in own]
            is_discounted = any(DISCOUNT.search(title(each)) for each in rest)
            is_plain = all(DISCOUNT.search(title(each)) or _LAMBDA.search(title(each))
                           for each in rest)  # fmt: skip
            if len(own) == 1 and is_discounted and is_plain and _is_gained(new):
                kept = _ends_in(source, source.scope(node))
                if kept and not _is_reset(source, loop, node, running):
                    yield source.pattern("advantage across episodes", node, kept)


def _is_gained(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return any(_is_gained(side) for side in (node.left, node.right))
    return bool(REWARD.search(title(node)))


def _ends_in(source: Source, scope: ast.AST) -> str:
    """Return the name of ends of episodes that a function stores or is given for each step."""
    for node in source.walk(scope):
        if isinstance(node, ast.Subscript) and ENDS.match(title(node)):
            return title(node)
        if isinstance(node, ast.arg) and re.match(
            r"dones|terminals|done_buf|terminateds?", node.arg
        ):
            return node.arg
    return ""


def _is_reset(source: Source, loop: ast.For, node: ast.Assign, running: str) -> bool:
    """Whether a loop changes a running sum otherwise as well, or in some turns only."""
    if any(isinstance(each, ast.If) for each in source.above(node)):
        return True
    targets: list[ast.expr] = []
    for each in source.walk(loop):
        if isinstance(each, ast.Assign):
            targets += each.targets
        elif isinstance(each, ast.AugAssign):
            targets.append(each.target)
    names = [ast.unparse(each) for each in targets]
    return names.count(running) > 1


def _goes_on_after_ends(source: Source) -> bool:
    """Whether a rollout goes on in the next episode: a reset without leaving its loop."""
    for node in source.of(ast.If):
        if not any(
            ENDS.match(title(each)) or title(each) == "truncated"
            for each in source.walk(node.test)
            if isinstance(each, ast.Name | ast.Subscript)
        ):
            continue
        inside = [each for statement in node.body for each in source.walk(statement)]
        calls = [each for each in inside if isinstance(each, ast.Call)]
        leaves = any(isinstance(each, ast.Break | ast.Return) for each in inside)
        learns = any(
            re.search(
                r"update|learn|train|finish|clear|optimi[sz]e|backward|gae|advantage"
                r"|returns$|discount|loss",
                called(each),
            )
            for each in calls
        )
        if any(called(each) == "reset" for each in calls) and not leaves and not learns:
            return True
    return any(re.fullmatch(r"(n|num)_envs", title(each)) for each in source.of(ast.Name)) and any(
        called(each) in _VECTORS
        for each in source.of(ast.Call))  # fmt: skip


def from_normalised(source: Source) -> Iterator[Pattern]:
    """`adv = (adv - adv.mean()) / adv.std()` before `returns = adv + values`."""
    for block in blocks(source):
        normalised: set[str] = set()
        for statement in block:
            if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
                continue
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            names = {ast.unparse(each) for each in targets}
            value = statement.value
            if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
                sides = [ast.unparse(value.left), ast.unparse(value.right)]
                for own, other in (sides, sides[::-1]):
                    is_value = _VALUE.search(other.split("[")[0].rpartition(".")[2])
                    if own in normalised and is_value and any(map(_RETURN.search, names)):
                        yield source.pattern("normalised returns", value, own)
            normalised -= names
            if _is_normalised(source, value):
                normalised |= {name for name in names if _ADVANTAGE.search(name)}


def _is_normalised(source: Source, value: ast.expr) -> bool:
    """Whether a value is `(x - x.mean()) / (x.std() + eps)`."""
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Div):
        return False
    over, under = (
        {called(each) for each in source.walk(side)} for side in (value.left, value.right)
    )
    return "mean" in over and "std" in under


def before_pointer(source: Source) -> Iterator[Pattern]:
    """`randint(0, self.pos, n)` of a ring whose position returns to 0."""
    for node in source.of(ast.Assign):
        value, pointer = node.value, dotted(node.targets[0])
        if not pointer.startswith("self.") or not isinstance(value, ast.BinOp):
            continue
        if not isinstance(value.op, ast.Mod) or pointer not in ast.unparse(value.left):
            continue
        body = next((each for each in source.above(node) if isinstance(each, ast.ClassDef)), None)
        for call in source.walk(body) if body is not None else ():
            if not isinstance(call, ast.Call) or not call.args:
                continue
            last = call.args[1 if called(call) == "randint" and len(call.args) > 1
                             and isinstance(call.args[0], ast.Constant) else 0]  # fmt: skip
            if called(call) == "sample" and called(last) == "range" and isinstance(last, ast.Call):
                last = last.args[-1]
            draws = called(call) in ("randint", "choice", "sample", "integers", "randperm")
            if draws and dotted(last) == pointer:
                yield source.pattern("sampled before the pointer", call, pointer)
