"""Exploration: schedules and branches in the wrong direction, and actions that are not stored."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.agents.bootstrapping import factors, title
from holter.scripts.reading.source.expressions import number
from holter.scripts.reading.source.origins import Frame, origins
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Pattern, Source, called, following

_DEEPEST = 8
_STEP = re.compile(r"(^|_)(step|steps_done|t|frame|frame_idx|episode|iteration|i|it)$")
_EXPLORING = re.compile(r"eps|explor|temperature|noise", re.I)
_EPSILON = re.compile(r"(^|_)(eps|epsilon|explore|exploration)(_|$|\d)|epsilon", re.I)
_UNIFORM = {"random", "rand", "uniform", "random_sample", "item"}
_DRAWN = {"randrange", "randint", "choice", "sample", "integers", "randint_like"}
_GREEDY = {"argmax", "max", "argmin"}
_STORING = {"append", "push", "add", "store", "put", "insert", "remember"}
_RANDOM_ACTION = re.compile(r"eps|explor|rand|random", re.I)


@reads
def reversed_exploration(source: Source) -> Iterator[Pattern]:
    """`start + frac * (end - start)` whose fraction falls: exploration rises to its start."""
    for node in source.of(ast.BinOp):
        if not isinstance(node.op, ast.Add):
            continue
        for first, rest in ((node.left, node.right), (node.right, node.left)):
            product = factors(rest)
            if len(product) != 2 or not title(first):
                continue
            for span, share in (product, product[::-1]):
                if not isinstance(span, ast.BinOp) or not isinstance(span.op, ast.Sub):
                    continue
                other = span.left if title(span.right) == title(first) else None
                if other is None:
                    continue
                names = (_age(title(first)), _age(title(other)))
                falls = _falls(source, share, Frame(source.scope(node)))
                if names == ("start", "end") and falls is True:
                    yield source.pattern("reversed exploration", node, title(first))
                if names == ("end", "start") and falls is False:
                    yield source.pattern("reversed exploration", node, title(first))


def _age(name: str) -> str:
    if not _EXPLORING.search(name):
        return ""
    if re.search(r"start|init|begin|max", name, re.I):
        return "start"
    return "end" if re.search(r"end|final|min|stop|last", name, re.I) else ""


def _falls(source: Source, node: ast.expr, frame: Frame, depth: int = 0) -> bool | None:
    """Whether a share falls with the steps; None if that is not known."""
    if depth > _DEEPEST:
        return None
    if isinstance(node, ast.Name):
        found = {_falls(source, value, where, depth + 1)
                 for value, where, _ in origins(source, node, frame)}  # fmt: skip
        if found:
            return found.pop() if len(found) == 1 else None
        return False if _STEP.search(node.id) else None
    if isinstance(node, ast.Attribute):
        return False if re.search(r"(^|_)(steps?|steps_done|t|frames?)$", node.attr) else None
    if isinstance(node, ast.Call):
        return _of_call(source, node, frame, depth)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _falls(source, node.operand, frame, depth + 1)
        return None if inner is None else not inner
    return _of_operation(source, node, frame, depth) if isinstance(node, ast.BinOp) else None


def _of_operation(source: Source, node: ast.BinOp, frame: Frame, depth: int) -> bool | None:
    if isinstance(node.op, ast.Div | ast.FloorDiv):
        return _falls(source, node.left, frame, depth + 1)
    if isinstance(node.op, ast.Sub) and _fixed(source, node.left) is not None:
        inner = _falls(source, node.right, frame, depth + 1)
        return None if inner is None else not inner
    if isinstance(node.op, ast.Mult):
        for one, other in ((node.left, node.right), (node.right, node.left)):
            if (value := _fixed(source, one)) is not None and value > 0:
                return _falls(source, other, frame, depth + 1)
    return None


def _of_call(source: Source, node: ast.Call, frame: Frame, depth: int) -> bool | None:
    if called(node) in ("min", "max", "clip", "minimum", "maximum"):
        kinds = [_falls(source, each, frame, depth + 1) for each in node.args
                 if _fixed(source, each) is None]  # fmt: skip
        return kinds[0] if len(kinds) == 1 else None
    if called(node) == "exp" and len(node.args) == 1:
        return _falls(source, node.args[0], frame, depth + 1)
    return None


def _fixed(source: Source, node: ast.expr) -> float | None:
    """Return the number that an expression is at every step."""
    names = [each.id for each in source.walk(node) if isinstance(each, ast.Name)]
    return None if any(map(_STEP.search, names)) else number(source, node)


@reads
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
            other = list(following(source, node))
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


def _kind(source: Source, nodes: list[ast.stmt] | list[ast.expr]) -> str:
    """Return whether statements draw an action, or take the best one."""
    calls = {called(each) for node in nodes for each in source.walk(node)}
    is_greedy, is_random = bool(calls & _GREEDY), bool(calls & _DRAWN)
    if is_greedy == is_random:
        return ""
    return "greedy" if is_greedy else "random"


@reads
def unexecuted(source: Source) -> Iterator[Pattern]:
    """`a = where(explore, random, greedy)` is executed, and `greedy` is stored."""
    for step in source.of(ast.Assign):
        call = step.value
        if called(call) != "step" or not isinstance(call, ast.Call) or not call.args:
            continue
        executed = [each.id for each in source.walk(call.args[0]) if isinstance(each, ast.Name)]
        scope = source.scope(step)
        returned = {each.id for target in step.targets for each in source.walk(target)
                    if isinstance(each, ast.Name)}  # fmt: skip
        for name in executed:
            chosen = _chosen_from(source, scope, name)
            for store in source.walk(scope):
                if not isinstance(store, ast.Call) or called(store) not in _STORING:
                    continue
                held = {each.id for part in [*store.args, *(k.value for k in store.keywords)]
                        for each in source.walk(part) if isinstance(each, ast.Name)}  # fmt: skip
                if held & returned and name not in held and held & chosen:
                    yield source.pattern("unexecuted action", store, sorted(held & chosen)[0])


def _chosen_from(source: Source, scope: ast.AST, name: str) -> set[str]:
    """Return the names that an exploring choice replaces: `b` of `where(explore, random, b)`."""
    found = set()
    for other, value, _ in source.assigned(scope):
        if other != name:
            continue
        if called(value) == "where" and isinstance(value, ast.Call) and len(value.args) == 3:
            test, *sides = value.args
        elif isinstance(value, ast.IfExp):
            test, *sides = value.test, value.body, value.orelse
        else:
            return set()
        if _RANDOM_ACTION.search(ast.unparse(value)) and test is not None:
            found |= {each.id for each in sides if isinstance(each, ast.Name)}
    return found
