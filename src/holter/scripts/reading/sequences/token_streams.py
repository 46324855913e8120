"""Streams of tokens: how they are cut into columns, and states that go from chunk to chunk."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.expressions import made_once
from holter.scripts.reading.source.layouts import sizes_of
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Function, Pattern, Source, called, dotted

_STATE = re.compile(r"^(h|c|hx|hn|h_t|hid|hidden|hiddens|states?|memory|mems|carry|hc|h_state"
                    r"|hidden_state|rnn_state|lstm_state)\d?$", re.I)  # fmt: skip
_RESET = re.compile(r"^(is_)?(first|reset|resets|start|starts|new|begin|restart|boundary)$", re.I)
_LOSSES = re.compile(r"loss|criterion|cross_entropy|nll|(^|_)ce$", re.I)
_TURNS = re.compile(
    r"\.t\(\)|transpose|permute|swapaxes|\.m?T\b|movedim|rearrange|reshape\(\w+, -1\)\.t"
)


@reads
def crossed_columns(source: Source) -> Iterator[Pattern]:
    """`ids.view(n, batch_size)` of n = len // batch_size: successive tokens, side by side."""
    text = source.code(source.tree)
    if not _has_next_chunks(source) or re.search(r"randperm|permutation\(", text):
        return
    for call in source.of(ast.Call):
        if called(call) not in ("view", "reshape") or not isinstance(call.func, ast.Attribute):
            continue
        sizes, scope = sizes_of(call), source.scope(call)
        if len(sizes) != 2:
            continue
        statement = next((each for each in source.above(call) if isinstance(each, ast.stmt)), call)
        if _TURNS.search(ast.unparse(statement)):
            continue
        lanes = _lanes(source, scope)
        if not lanes or sizes[1] != lanes[1] or sizes[0] not in (lanes[0], "-1"):
            continue
        if _is_turned_later(source, scope, statement):
            continue
        yield source.pattern("crossed columns", call, lanes[1])


def _has_next_chunks(source: Source) -> bool:
    """Whether a file takes `s[i : i + n]`, and `s[i + 1 : i + 1 + n]` as what follows it."""
    found: dict[str, set[str]] = {}
    for node in source.of(ast.Subscript):
        if isinstance(node.slice, ast.Slice) and node.slice.lower is not None:
            found.setdefault(dotted(node.value), set()).add(ast.unparse(node.slice.lower))
    return any(f"{lower} + 1" in lowers or f"1 + {lower}" in lowers
               for lowers in found.values() for lower in lowers)  # fmt: skip


def _lanes(source: Source, scope: ast.AST) -> tuple[str, str] | None:
    """Return the names of the length and of the number of columns: n of n = len(x) // batch."""
    for node in source.walk(scope):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv):
            top = ast.unparse(node.left)
            if not re.search(r"\.size\(0\)|len\(|numel\(\)|\.shape\[0\]|\.size\(-1\)", top):
                continue
            columns = dotted(node.right)
            above = source.parent(node)
            length = dotted(above.targets[0]) if isinstance(above, ast.Assign) else ""
            if columns and re.search(r"batch|bsz|\bbs\b|^B$|lanes|streams", columns):
                return length or ast.unparse(node), columns
    return None


def _is_turned_later(source: Source, scope: ast.AST, statement: ast.AST) -> bool:
    return any(
        isinstance(node, ast.Assign | ast.Return) and node.lineno > getattr(statement, "lineno", 0)
        and _TURNS.search(ast.unparse(node))
        for node in source.walk(scope)
    ) and isinstance(scope, Function)  # fmt: skip


@reads
def state_not_carried(source: Source) -> Iterator[Pattern]:
    """`logits, _ = model(x, state)` in the loop of an evaluation; training hands `state` on."""
    carried: dict[str, list[ast.AST]] = {}
    lost: list[tuple[str, ast.Assign, str]] = []
    loops: list[ast.For | ast.While] = [*source.of(ast.For), *source.of(ast.While)]
    for loop in loops:
        body = [node for part in loop.body for node in source.walk(part)]
        for node in body:
            if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
                continue
            target = node.targets[0]
            if not isinstance(target, ast.Tuple) or len(target.elts) != 2:
                continue
            model, last = dotted(node.value.func), target.elts[1]
            given = [*node.value.args[1:], *(each.value for each in node.value.keywords)]
            states = [each.id for each in given if isinstance(each, ast.Name)
                      and _STATE.match(each.id)]  # fmt: skip
            states += [dotted(each.args[0]) for each in given if isinstance(each, ast.Call)
                       and each.args and _STATE.match(dotted(each.args[0]))]  # fmt: skip
            if len(states) != 1 or not model:
                continue
            if dotted(last) == states[0]:
                carried.setdefault(model, []).append(source.scope(loop))
            elif _is_lost(source, loop, states[0], last):
                lost.append((model, node, states[0]))
    for model, node, state in lost:
        scopes = carried.get(model, [])
        if scopes and source.scope(node) not in scopes:
            yield source.pattern("state not carried", node, state)


def _is_lost(source: Source, loop: ast.stmt, state: str, last: ast.expr) -> bool:
    """Whether a state begins before a loop and stays as it is in all of its iterations."""
    scope = source.scope(loop)
    made = [at for name, _, at in source.assigned(scope) if name == state]
    is_before = bool(made) and all(at.lineno < loop.lineno for at in made)
    is_read = any(isinstance(node, ast.Name) and node.id == dotted(last)
                  and isinstance(node.ctx, ast.Load) for node in source.walk(scope))  # fmt: skip
    return is_before and isinstance(last, ast.Name) and not is_read


@reads
def state_across_samples(source: Source) -> Iterator[Pattern]:
    """`out, h = model(x, h)` over a shuffled loader: each batch begins with another one's state."""
    shuffled = set(_shuffled(source))
    for loop in source.of(ast.For):
        over = loop.iter
        while called(over) in ("enumerate", "tqdm") and isinstance(over, ast.Call) and over.args:
            over = over.args[0]
        if dotted(over).rpartition(".")[2] not in shuffled:
            continue
        body = [node for part in loop.body for node in source.walk(part)]
        if not any(called(node) == "backward" for node in body):
            continue
        for node in body:
            if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
                continue
            target = node.targets[0]
            if not isinstance(target, ast.Tuple) or len(target.elts) != 2:
                continue
            state = dotted(target.elts[1])
            given = {each.id for each in [*node.value.args[1:],
                                          *(k.value for k in node.value.keywords)]
                     if isinstance(each, ast.Name)}  # fmt: skip
            if not _STATE.match(state) or state not in given:
                continue
            others = [
                at
                for name, value, at in source.assigned(source.scope(loop))
                if name == state and at in body and not _is_detached(value, state)
            ]
            if not others:
                yield source.pattern("state across samples", node, state)


def _is_detached(value: ast.expr, state: str) -> bool:
    """Whether a value is the same state without its graph."""
    if isinstance(value, ast.IfExp):
        return _is_detached(value.body, state) and _is_detached(value.orelse, state)
    text = ast.unparse(value)
    names = {each.id for each in ast.walk(value) if isinstance(each, ast.Name)}
    is_same = state in names and re.search(r"detach|repackage|\.data\b", text)
    return bool(is_same) and not re.search(r"\*|where|zeros|init", text)


def _shuffled(source: Source) -> Iterator[str]:
    """Yield the names of loaders that shuffle."""
    for assign in source.of(ast.Assign):
        if called(assign.value) != "DataLoader" or not isinstance(assign.value, ast.Call):
            continue
        options = {each.arg: each.value for each in assign.value.keywords}
        value = options.get("shuffle")
        if isinstance(value, ast.Constant) and value.value is True:
            name = dotted(assign.targets[0]).rpartition(".")[2]
            if name and len(source.named(name)) == 1:
                yield name


@reads
def averaged_perplexity(source: Source) -> Iterator[Pattern]:
    """`total += math.exp(loss)` over batches: a mean of perplexities, not of losses."""
    for change in source.of(ast.AugAssign):
        loss = _exponential(source, change.value) if isinstance(change.op, ast.Add) else ""
        if loss and _is_in_loop(source, change) and _is_divided(source, change):
            yield source.pattern("averaged perplexity", change, loss)
    for call in source.of(ast.Call):
        if called(call) == "append" and len(call.args) == 1 and _is_in_loop(source, call):
            name = dotted(call.func).rpartition(".")[0]
            loss = _exponential(source, call.args[0])
            if loss and _is_mean_of(source, call, name) and _is_in_batches(source, call):
                yield source.pattern("averaged perplexity", call, loss)


def _exponential(source: Source, value: ast.expr) -> str:
    """Return the loss whose exponential a value is, as it is written, or ""."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
        return _exponential(source, value.left) or _exponential(source, value.right)
    while isinstance(value, ast.Call) and called(value) in ("item", "float", "min"):
        inner = value.func.value if isinstance(value.func, ast.Attribute) else (
            value.args[0] if value.args else None)  # fmt: skip
        if inner is None:
            return ""
        value = inner
    if isinstance(value, ast.Name):
        made = made_once(source, source.scope(value), value.id)
        is_perplexity = re.match(r"ppl|perplexity", value.id, re.I)
        return _exponential(source, made) if made is not None and is_perplexity else ""
    if called(value) != "exp" or not isinstance(value, ast.Call):
        return ""
    inside = value.args[0] if value.args else value.func
    text = ast.unparse(inside)
    if isinstance(inside, ast.UnaryOp) or not _LOSSES.search(text) or " - " in text:
        return ""
    return text


def _is_in_loop(source: Source, node: ast.AST) -> bool:
    """Whether the innermost loop around a node has a batch in it: a call of a model, a loss."""
    for each in source.above(node):
        if isinstance(each, Function):
            return False
        if isinstance(each, ast.For):
            return True
    return False


def _is_in_batches(source: Source, node: ast.AST) -> bool:
    """Whether a loop is over batches, not over epochs or runs."""
    loop = next((each for each in source.above(node) if isinstance(each, ast.For)), None)
    return loop is not None and bool(re.search(
        r"load|batch|bptt|_dl\b|chunk|range\(0, ", ast.unparse(loop.iter)))  # fmt: skip


def _is_divided(source: Source, change: ast.AugAssign) -> bool:
    name = dotted(change.target)
    return any(
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Div)
        and any(dotted(each) == name for each in ast.walk(node.left))
        for node in source.walk(source.scope(change))
    )


def _is_mean_of(source: Source, at: ast.AST, name: str) -> bool:
    """Whether a list is averaged: `sum(p) / len(p)`, `np.mean(p)`."""
    scope = source.scope(at)
    return bool(re.search(
        rf"sum\({re.escape(name)}\) / |mean\({re.escape(name)}\)|tensor\({re.escape(name)}\)\.mean",
        source.code(scope)))  # fmt: skip


@reads
def unread_reset(source: Source) -> Iterator[Pattern]:
    """`for x, y, first in chunks` whose state never starts again, since nothing reads `first`."""
    for loop in source.of(ast.For):
        parts = [each for each in ast.walk(loop.target) if isinstance(each, ast.Name)]
        body = [node for part in loop.body for node in source.walk(part)]
        names = {node.id for node in body if isinstance(node, ast.Name)}
        for flag in parts:
            if not _RESET.match(flag.id) or flag.id in names or len(parts) < 3:
                continue
            for node in body:
                if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
                    continue
                target = node.targets[0]
                state = dotted(target.elts[-1]) if isinstance(target, ast.Tuple) else ""
                given = {ast.unparse(each) for each in node.value.args[1:]}
                is_read_elsewhere = any(
                    isinstance(each, ast.Name) and each.id == flag.id
                    and isinstance(each.ctx, ast.Load) for each in source.of(ast.Name)
                )  # fmt: skip
                if _STATE.match(state) and state in given and is_read_elsewhere:
                    yield source.pattern("unread reset", node, flag.id)
