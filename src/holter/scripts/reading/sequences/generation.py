"""Generation by steps: temperatures, contexts, beams, states and the tokens that are fed."""

import ast
import re
from collections.abc import Iterator, Sequence

from holter.scripts.reading.source.expressions import resolved, tensor_of, whole
from holter.scripts.reading.source.layouts import made_before
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Pattern, Source, called, dotted

_TEMPERATURE = re.compile(r"(^|_)(temp|temperature|tau)($|_)|^temp|^[tT]$", re.I)
_SCORE = re.compile(r"score|log_?p|logprob|cum|nll|total", re.I)
_STATE = re.compile(r"(^|_)(h|c|hx|cx|hn|cn|hid|hidden|states?|memory_state|carry|hc|cache|past)"
                    r"(_|\d|$)", re.I)  # fmt: skip
_NEW = re.compile(r"(^|_)(new|next|n|after|out|2|prime)($|_)|\d$", re.I)
_KEEPING = {"append", "push", "heappush", "extend", "add"}
_SAMPLING = {"multinomial", "Categorical", "choice", "choices"}


@reads
def temperature_late(source: Source) -> Iterator[Pattern]:
    """`probs = logits.softmax(-1) / temperature`: probabilities are scaled, not sharpened."""
    for node in source.of(ast.BinOp):
        if isinstance(node.op, ast.Div | ast.Mult) and _is_temperature(node.right):
            given = behind(source, source.scope(node), node.left)
            if _is_softmax(given) and _is_sampled(source, node):
                yield source.pattern("late temperature", node, ast.unparse(node.right))
    for change in source.of(ast.AugAssign):
        if not isinstance(change.op, ast.Div) or not _is_temperature(change.value):
            continue
        if not isinstance(change.target, ast.Name):
            continue
        scope = source.scope(change)
        made = [value for name, value, at in source.assigned(scope)
                if name == change.target.id and at.lineno < change.lineno]  # fmt: skip
        if made and _is_softmax(made[-1]):
            yield source.pattern("late temperature", change, ast.unparse(change.value))


def _is_temperature(node: ast.expr) -> bool:
    return bool(_TEMPERATURE.search(dotted(node).rpartition(".")[2]))


def _is_softmax(node: ast.expr) -> bool:
    while isinstance(node, ast.Call) and called(node) in ("squeeze", "cpu", "view", "numpy"):
        inner = tensor_of(node)
        if inner is None:
            break
        node = inner
    return called(node) == "softmax" or (
        isinstance(node, ast.Subscript) and called(node.value) == "softmax"
    )


def _is_sampled(source: Source, node: ast.AST) -> bool:
    """Whether the function around draws from, or chooses by, probabilities."""
    scope = source.scope(node)
    is_powered = any(isinstance(each, ast.BinOp) and isinstance(each.op, ast.Pow)
                     for each in source.above(node))  # fmt: skip
    return not is_powered and any(called(each) in _SAMPLING for each in source.walk(scope))


@reads
def context_head(source: Source) -> Iterator[Pattern]:
    """`model(ids[:, :block])` in a loop that appends to `ids`: the newest tokens are cut off."""
    loops: list[ast.For | ast.While] = [*source.of(ast.For), *source.of(ast.While)]
    for loop in loops:
        body = [node for part in loop.body for node in source.walk(part)]
        grown = {name: at for node in body for name, at in _grown(node)}
        turns = {each.id for each in ast.walk(loop.target) if isinstance(each, ast.Name)} if (
            isinstance(loop, ast.For)) else set()  # fmt: skip
        for node in body:
            if not isinstance(node, ast.Subscript) or not isinstance(node.ctx, ast.Load):
                continue
            part = _cut(node)
            if dotted(node.value) not in grown or part is None or part.lower is not None:
                continue
            names = {each.id for each in ast.walk(part) if isinstance(each, ast.Name)}
            upper = part.upper
            if upper is None or isinstance(upper, ast.UnaryOp) or names & (turns | {*grown}):
                continue
            if isinstance(upper, ast.BinOp) or whole(upper) in (0, 1):
                continue
            if any(isinstance(n, ast.Call) and called(n) == "min" for n in ast.walk(upper)):
                continue
            is_fixed = not any(
                isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store) and each.id in names
                for each in body
            )
            if is_fixed and _is_model_argument(source, node, grown[dotted(node.value)]):
                yield source.pattern("oldest context", node, dotted(node.value))


def _grown(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield the name that a statement makes longer: `x = cat([x, new], 1)`, `x.append(new)`."""
    if isinstance(node, ast.Assign) and called(node.value) in ("cat", "concat", "concatenate"):
        assert isinstance(node.value, ast.Call)
        parts = node.value.args[0] if node.value.args else None
        name = dotted(node.targets[0])
        is_pair = isinstance(parts, ast.Tuple | ast.List) and len(parts.elts) == 2
        if is_pair and name and dotted(parts.elts[0]) == name:  # type: ignore[union-attr]
            yield name, node
    elif called(node) == "append" and isinstance(node, ast.Call):
        yield dotted(node.func).rpartition(".")[0], node
    elif isinstance(node, ast.AugAssign) and isinstance(node.value, ast.List):
        yield dotted(node.target), node


def _cut(node: ast.Subscript) -> ast.Slice | None:
    """Return the slice of time in `x[:, a:b]`, or in `x[a:b]`."""
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    last = parts[-1] if parts else None  # an empty tuple: `x[()]`
    if len(parts) > 2 or not isinstance(last, ast.Slice) or last.step is not None:
        return None
    is_whole = len(parts) == 1 or ast.unparse(parts[0]) in (":", "...")
    return last if is_whole else None


def _is_model_argument(source: Source, node: ast.Subscript, grows: ast.AST) -> bool:
    """Whether a part is given to a model, whose output is appended in the end."""
    scope = source.scope(node)
    statement = next((each for each in source.above(node) if isinstance(each, ast.stmt)), None)
    if statement is None or statement.lineno > getattr(grows, "lineno", 0):
        return False
    name = dotted(statement.targets[0]) if isinstance(statement, ast.Assign) else ""
    calls = [each for each in source.above(node) if isinstance(each, ast.Call)]
    if name and isinstance(statement, ast.Assign) and not any(map(_may_be_model, calls)):
        calls = [call for call in source.walk(scope) if isinstance(call, ast.Call)
                 and any(dotted(each) == name for each in call.args)]  # fmt: skip
    return any(map(_may_be_model, calls)) and any(
        called(each) in ("argmax", "multinomial", "Categorical", "topk", "sample", "choice")
        for each in source.walk(scope)
    )


def _may_be_model(call: ast.Call) -> bool:
    name = dotted(call.func)
    return bool(re.search(r"model|net|gpt|lm|decoder|transformer|^self(\.forward)?$", name, re.I))


@reads
def added_probabilities(source: Source) -> Iterator[Pattern]:
    """`score + v` of values that `softmax(...).topk` gave: a beam that adds probabilities."""
    for scope in source.scopes:
        chosen = set(_of_probabilities(source, scope))
        if not chosen or not _is_beam(source, scope):
            continue
        for node in source.walk(scope):
            sides: Sequence[ast.expr] = ()
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
                sides = (node.left, node.right)
            elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
                sides = (node.target, node.value)
            if len(sides) < 2:
                continue
            for total, new in (sides, sides[::-1]):
                if not _SCORE.search(dotted(total) or ast.unparse(total)):
                    continue
                name = _element(new)
                if name in chosen:
                    yield source.pattern("added probabilities", node, name)
                    break


def _element(value: ast.expr) -> str:
    """Return the name of which an expression takes one element: `float(p[i])`, `p[i].item()`."""
    while isinstance(value, ast.Subscript) or called(value) in ("item", "float", "unsqueeze"):
        if isinstance(value, ast.Subscript):
            value = value.value
        elif isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            value = value.func.value
        elif isinstance(value, ast.Call) and value.args:
            value = value.args[0]
        else:
            break
    return dotted(value)


def _is_beam(source: Source, scope: ast.AST) -> bool:
    return bool(re.search(r"beam|candidate|hypothes|\bhyps?\b", source.code(scope), re.I))


def _of_probabilities(source: Source, scope: ast.AST) -> Iterator[str]:
    """Yield the names of values that are the largest of a softmax, and of loops over them."""
    values: set[str] = set()
    for node in source.walk(scope):
        if not isinstance(node, ast.Assign) or called(node.value) != "topk":
            continue
        given = tensor_of(node.value) if isinstance(node.value, ast.Call) else None
        while isinstance(given, ast.Subscript) or called(given or node) in ("squeeze", "view"):
            given = given.value if isinstance(given, ast.Subscript) else tensor_of(given)  # type: ignore[arg-type]
        if given is None or called(resolved(source, scope, given)) != "softmax":
            continue
        target = node.targets[0]
        if isinstance(target, ast.Tuple) and isinstance(target.elts[0], ast.Name):
            values.add(target.elts[0].id)
    for name in values:
        made = [value for other, value, _ in source.assigned(scope) if other == name]
        if any("log" in ast.unparse(value) for value in made):
            continue
        yield name
        for loop in source.walk(scope):
            if not isinstance(loop, ast.For) or called(loop.iter) != "zip":
                continue
            assert isinstance(loop.iter, ast.Call)
            targets = loop.target.elts if isinstance(loop.target, ast.Tuple) else []
            for each, target in zip(loop.iter.args, targets, strict=False):
                if any(dotted(part) == name for part in ast.walk(each)) and dotted(target):
                    yield dotted(target)


@reads
def stale_state(source: Source) -> Iterator[Pattern]:
    """`logits, h_new = cell(x, h)` in a loop that keeps `h`, and never reads `h_new`."""
    loops: list[ast.For | ast.While] = [*source.of(ast.For), *source.of(ast.While)]
    for loop in loops:
        body = [node for part in loop.body for node in source.walk(part)]
        for node in body:
            if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
                continue
            target = node.targets[0]
            if not isinstance(target, ast.Tuple) or len(target.elts) < 2:
                continue
            new = target.elts[1]
            if isinstance(new, ast.Tuple):
                new = new.elts[0] if new.elts else new
            if not isinstance(new, ast.Name) or not _STATE.search(new.id):
                continue
            given = [*node.value.args, *(each.value for each in node.value.keywords)]
            parts = [part for each in given for part in (
                each.elts if isinstance(each, ast.Tuple) else [each])]  # fmt: skip
            old = [each.id for each in parts if isinstance(each, ast.Name)
                   and each.id != new.id and _STATE.search(each.id)]  # fmt: skip
            if not old or not _is_unread(source, loop, new.id) or not _NEW.search(new.id):
                continue
            stem = [name for name in old if _is_same_state(name, new.id)]
            if stem and (_is_kept(source, loop, stem[0]) or not _is_rebound(body, stem[0])):
                yield source.pattern("stale state", node, new.id)


def _is_same_state(old: str, new: str) -> bool:
    """Whether two names are of one state but for what says that it is new."""

    def stem(name: str) -> str:
        bare = re.sub(r"(^|_)(new|next|n|after|out|prime|prev|old|last|2|1)(?=_|$)", "", name)
        return bare.strip("_0123456789").lower()

    return stem(old) == stem(new)


def _is_unread(source: Source, loop: ast.AST, name: str) -> bool:
    return not any(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
        for node in source.walk(source.scope(loop))
    )


def _is_rebound(body: list[ast.AST], name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
               for node in body)  # fmt: skip


def _is_kept(source: Source, loop: ast.AST, name: str) -> bool:
    """Whether a loop puts a state into a list of what goes on: `beams.append((ids, score, h))`."""
    return any(
        called(node) in _KEEPING
        and isinstance(node, ast.Call)
        and any(isinstance(part, ast.Name) and part.id == name
                for each in node.args for part in ast.walk(each))
        for node in source.walk(loop)
    )  # fmt: skip


def behind(source: Source, scope: ast.AST, value: ast.expr) -> ast.expr:
    """Return what a name was given last before its place, or the expression itself."""
    made = made_before(source, scope, value) if isinstance(value, ast.Name) else None
    value = value if made is None or made[1] else made[0]
    while called(value) in ("contiguous", "clone", "to") and isinstance(value, ast.Call):
        inner = tensor_of(value)
        if inner is None:
            break
        value = inner
    return value
