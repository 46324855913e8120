"""Resets and time limits of episodes."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.agents.bootstrapping import bootstraps
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Function, Pattern, Source, called, dotted, following

_ENDED = re.compile(r"^(terminated|term|terminal|done|dones?)$", re.I)
_CUT = re.compile(r"^(truncated|trunc|truncation)$", re.I)


@reads
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
        if any(isinstance(each, ast.Break | ast.Return) for each in following(source, statement)):
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


@reads
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


@reads
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
