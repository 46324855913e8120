"""Replay buffers: observations that are overwritten, and transitions that are never sampled."""

import ast
import re
from collections.abc import Iterator, Sequence

from holter.scripts.reading.agents.bootstrapping import NEXT
from holter.scripts.reading.source.loops import blocks, owner_of
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Function, Pattern, Source, called, dotted, of_self

_STORING = re.compile(
    r"^(append|push|add|store|remember|put|insert|extend|save|cache|record)"
    r"|(_transition|_experience|_sample|_memory|_step)$"
)
_SHOWING = {"print", "format", "write", "info", "debug", "step", "render"}
_SAMPLING = re.compile(r"^_?(sample|draw|get)(_(batch|minibatch|transitions|experiences?))?$")
_RANDOM = re.compile(r"rand|choice|sample|perm|integers|shuffle|multinomial|priorit|tree", re.I)
_STORES = {"append", "push", "add", "store", "put", "insert", "remember"}
_COPYING = {"clone", "copy", "deepcopy", "tensor", "array", "tolist", "tuple"}
_ARRAYS = {"as_tensor", "asarray", "from_numpy", "FloatTensor", "float"}
_CREATING = {"__init__", "reset"}
_OBSERVING = {"reset", "step", "observe", "observation", "get_state", "get_obs", "_obs", "obs"}


@reads
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


@reads
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


@reads
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


@reads
def observed(source: Source) -> Iterator[Pattern]:
    """An environment that returns its own state, and writes to it in the next step."""
    if not _stores_without_copy(source):
        return
    for body in source.of(ast.ClassDef):
        written_in_place = {
            name
            for function in body.body
            if isinstance(function, Function) and function.name not in _CREATING
            for name in _overwritten(function)
        }
        for function in body.body:
            if not isinstance(function, Function) or function.name not in _OBSERVING:
                continue
            for node in source.walk(function):
                if isinstance(node, ast.Return) and node.value is not None:
                    first = node.value.elts[0] if isinstance(node.value, ast.Tuple) else node.value
                    if of_self(first) in written_in_place:
                        yield source.pattern("returned state", node, of_self(first))


def _overwritten(function: Function) -> set[str]:
    """Return the attributes that a method writes to in place, and does not replace."""
    written_to = {
        of_self(target.value if isinstance(target, ast.Subscript) else target)
        for node in ast.walk(function)
        for target in _targets(node)
    }
    replaced = {
        of_self(target)
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
        for target in node.targets
    }
    return written_to - replaced - {""}


def _stores_without_copy(source: Source) -> bool:
    """Whether the script puts observations aside, and never a copy of one."""
    observations = _observations(source)
    stores = [
        node
        for node in source.walk(source.tree)
        if isinstance(node, ast.Call) and called(node) in _STORES and node.args
    ]
    if any(called(part) in _COPYING for call in stores for part in source.walk(call)):
        return False
    return any(
        isinstance(part, ast.Name) and part.id in observations
        for call in stores
        if not _fills_arrays(source, called(call))
        for argument in call.args
        for part in (argument.elts if isinstance(argument, ast.Tuple) else (argument,))
    )


def _observations(source: Source) -> set[str]:
    """Return the names that hold what an environment returned, as it is."""
    names: set[str] = set()
    made: set[str] = set()
    for node in source.of(ast.Assign):
        for target in node.targets:
            pairs = [(target, node.value)]
            if isinstance(target, ast.Tuple):
                values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
                pairs = list(zip(target.elts, values, strict=False))
            for name, value in pairs:
                if isinstance(name, ast.Name) and called(value) in _OBSERVING:
                    names.add(name.id)
                elif isinstance(name, ast.Name) and called(value) in _COPYING | _ARRAYS:
                    made.add(name.id)
    return names - made


def _fills_arrays(source: Source, name: str) -> bool:
    """Whether the file defines a method of this name that keeps no reference to its arguments."""
    own = [each for each in source.of(ast.FunctionDef) if getattr(each, "name", "") == name]
    keeps = any(
        called(part) in ("append", "appendleft", "insert", "extend") or _keeps_tuple(part)
        for each in own
        for part in source.walk(each)
    )
    return bool(own) and not keeps


def _keeps_tuple(node: ast.AST) -> bool:
    """Whether a statement is such as `self.rows[i] = (s, a, r)`."""
    return (
        isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Tuple)
        and isinstance(node.targets[0], ast.Subscript)
    )


def _targets(node: ast.AST) -> list[ast.expr]:
    """Return what a statement writes to in place: `self.state[...] = ...`."""
    if isinstance(node, ast.Assign):
        return [target for target in node.targets if isinstance(target, ast.Subscript)]
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Subscript):
        return [node.target]
    return []
