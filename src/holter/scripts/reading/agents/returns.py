"""Rewards that are credited to another action, or in the wrong direction of time."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.agents.bootstrapping import DISCOUNT, ENDS, REWARD, factors, title
from holter.scripts.reading.source.loops import blocks
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Pattern, Source, called, dotted

_SAMPLING = {"sample", "rsample"}
_CONVERTING = {
    *("item", "numpy", "cpu", "detach", "squeeze", "tolist", "unsqueeze", "int", "clone"),
    *("clamp", "tanh", "to", "view", "long", "float"),
}
_DISCOUNT = re.compile(r"(^|_)(gamma|discount|lam|lambda|lmbda|gae_lambda)(_|$)", re.I)
_REWARD = re.compile(r"(^|_)(b?r|rew|rews|reward|rewards|delta|deltas|td|td_error)(_|s?$)", re.I)
_ENDS = re.compile(
    r"^(batch_|mb_|b_?)?(d|dones?|terminals?|terminateds?|ends?|fell|crashed)(_b|_t|_batch)?$"
)
_TURNED = re.compile(r"::-1|\breversed\b|\bflip|\.reverse\(|appendleft|insert\(0|, ?-1\)")
_STORING = {"append", "push", "add", "store", "put", "extend", "remember"}
_ESTIMATE = re.compile(r"(^|_)(h|ent|kl|div)|entropy", re.I)
_VALUES = re.compile(r"q|value|critic|target|\bv\b|next|boot", re.I)
_VECTORS = {"SyncVectorEnv", "AsyncVectorEnv", "make_vec", "SubprocVecEnv", "DummyVecEnv"}
_LAMBDA = re.compile(r"(^|_)(lam|lambda|lmbda|lambd|gae_lambda|tau|td_lambda)(_|$)", re.I)
_ADVANTAGE = re.compile(r"(^|_)(adv|advs|advantages?|gae|gaes)(_|$)", re.I)
_VALUE = re.compile(r"(^|_)(v|val|vals|values?|baselines?|state_values?)(_|$)", re.I)
_RETURN = re.compile(r"(^|_)(ret|rets|returns?|targets?|r_t|value_targets?|v_target)(_|$)", re.I)


@reads
def resampled(source: Source) -> Iterator[Pattern]:
    """`env.step(dist.sample())` and `dist.log_prob(dist.sample())`: two different actions."""
    samples: dict[tuple[ast.AST, str], list[ast.Call]] = {}
    for call in source.of(ast.Call):
        if called(call) in _SAMPLING and isinstance(call.func, ast.Attribute):
            owner = ast.unparse(call.func.value)
            samples.setdefault((source.scope(call), owner), []).append(call)
    for (scope, owner), calls in samples.items():
        is_made_again = owner.isidentifier() and source.stores(scope, owner) > 1
        if len(calls) < 2 or is_made_again:
            continue
        uses = {call: _uses(source, scope, call) for call in calls}
        score = f"{owner}.log_prob"
        scored = {call: {use for use in uses[call]
                         if isinstance(use, ast.Call) and ast.unparse(use.func) == score}
                  for call in calls}  # fmt: skip
        acted = {call for call in calls if uses[call] - scored[call]}
        if any(scored[call] and call in acted for call in calls):
            continue  # the probability of an action that is executed too
        for call in calls:
            is_estimate = any(_is_estimate(source, each) for each in (call, *scored[call]))
            if scored[call] and acted and not is_estimate:
                yield source.pattern("another sample", call, owner)


def _uses(source: Source, scope: ast.AST, sample: ast.Call) -> set[ast.AST]:
    """Return the calls and statements that are given a sample, directly or by its name."""
    taker = _taker(source, sample)
    if not isinstance(taker, ast.Assign) or not isinstance(taker.targets[0], ast.Name):
        return {taker}
    name = taker.targets[0].id
    return {_taker(source, use) for use in source.of(ast.Name)
            if use.id == name and isinstance(use.ctx, ast.Load)
            and source.scope(use) is scope}  # fmt: skip


def _taker(source: Source, node: ast.AST) -> ast.AST:
    """Return the call or the statement that is given a value, past conversions of it."""
    return next(above for above in source.above(node) if isinstance(above, ast.stmt)
                or (isinstance(above, ast.Call) and called(above) not in _CONVERTING))  # fmt: skip


def _is_estimate(source: Source, node: ast.Call) -> bool:
    """Whether a name says that the probability of a sample estimates a divergence or entropy."""
    above = next(each for each in source.above(node) if isinstance(each, ast.stmt))
    return isinstance(above, ast.Assign) and bool(_ESTIMATE.search(ast.unparse(above.targets[0])))


@reads
def forwards(source: Source) -> Iterator[Pattern]:
    """`for t in range(T): R = r[t] + gamma * R`: the sum of what came before the action."""
    for node in source.of(ast.Assign):
        loop = source.parent(node)
        if not isinstance(loop, ast.For) or not isinstance(node.targets[0], ast.Name):
            continue
        running, value = node.targets[0].id, node.value
        if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Add):
            continue
        turn = _turn(loop)
        is_return = any(
            _is_discounted(past, running)
            and _is_reward(source, loop, new, turn)
            and running not in _names(new)
            for past, new in ((value.left, value.right), (value.right, value.left))
        )
        if is_return and _is_kept(loop, running):
            text = ast.unparse(source.scope(loop))
            if not _TURNED.search(text):
                yield source.pattern("forward returns", node, running)


def _turn(loop: ast.For) -> set[str]:
    """Return the names that a loop forward in time gives to the step and to the reward."""
    steps = loop.iter
    if not isinstance(steps, ast.Call):
        name = dotted(steps).rpartition(".")[2]
        return _names(loop.target) if _REWARD.search(name) and name.endswith("s") else set()
    is_forward = called(steps) in ("zip", "enumerate") or (
        called(steps) == "range" and len(steps.args) < 3
    )
    return _names(loop.target) if is_forward else set()


def _names(node: ast.AST) -> set[str]:
    """Return the names in an expression, of attributes the last part too."""
    found = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    return found | {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}


def _is_discounted(node: ast.expr, running: str) -> bool:
    names = _names(node)
    is_product = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)
    return is_product and running in names and any(map(_DISCOUNT.search, names))


def _is_reward(source: Source, loop: ast.For, node: ast.expr, turn: set[str]) -> bool:
    """Whether an expression is the reward of a step, or an error made of it in this loop."""
    if isinstance(node, ast.Subscript):
        name = dotted(node.value).rpartition(".")[2]
        return dotted(node.slice) in turn and bool(_REWARD.search(name))
    if not isinstance(node, ast.Name) or not _REWARD.search(node.id):
        return False
    if node.id in turn:
        return True
    made = [each.value for each in loop.body if isinstance(each, ast.Assign)
            and dotted(each.targets[0]) == node.id]  # fmt: skip
    return len(made) == 1 and any(
        isinstance(each, ast.Subscript) and _is_reward(source, loop, each, turn)
        for each in source.walk(made[0])
    )


def _is_kept(loop: ast.For, running: str) -> bool:
    """Whether each value of a running sum is put aside, as the return of its step."""
    for node in ast.walk(loop):
        if called(node) == "append" and running in map(dotted, getattr(node, "args", ())):
            return True
        is_stored = isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript)
        if is_stored and running in _names(node.value):  # type: ignore[attr-defined]
            return True
    return False


@reads
def endless(source: Source) -> Iterator[Pattern]:
    """`r + gamma * next_value`, where the ends of episodes are kept and never read."""
    sums = {source.scope(node): node for node in source.of(ast.BinOp) if _is_bootstrap(node)}
    for scope, node in sums.items():
        read = {name.id for name in source.of(ast.Name) if isinstance(name.ctx, ast.Load)
                and scope in (*source.above(name), source.tree)
                and not _is_storing(source, name)}  # fmt: skip
        ends = [name for name in _kept_ends(source, scope) if name not in read]
        if ends:
            yield source.pattern("endless episode", node, ends[0])


def _is_storing(source: Source, node: ast.Name) -> bool:
    """Whether a name only takes another element: `dones.append(x)`."""
    above = source.parent(node)
    return isinstance(above, ast.Attribute) and above.attr in _STORING


def _kept_ends(source: Source, scope: ast.AST) -> Iterator[str]:
    """Yield the names of what a batch or a rollout holds about ends of episodes."""
    for node in source.of(ast.Assign):
        parts = getattr(node.targets[0], "elts", ())
        is_batch = len(parts) > 3 and called(node.value) not in ("step", "reset")
        if is_batch and source.scope(node) is scope:
            yield from (name for name in map(dotted, parts) if _ENDS.match(name))
    for call in source.of(ast.Call):
        name = dotted(call.func).rpartition(".")[0]
        is_list = called(call) == "append" and name.endswith("s")
        if is_list and _ENDS.match(name) and source.scope(call) is scope:
            yield name


def _is_bootstrap(node: ast.BinOp) -> bool:
    """Whether a sum is such as `r + gamma * q_next.max(1).values`."""
    if not isinstance(node.op, ast.Add):
        return False
    for reward, rest in ((node.left, node.right), (node.right, node.left)):
        head = reward.value if isinstance(reward, ast.Subscript) else reward
        is_product = isinstance(rest, ast.BinOp) and isinstance(rest.op, ast.Mult)
        if is_product and _REWARD.search(dotted(head).rpartition(".")[2]):
            names = _names(rest)
            if any(map(_DISCOUNT.search, names)) and any(map(_VALUES.search, names)):
                return True
    return False


@reads
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


@reads
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
