"""Teacher forcing: the tokens that steps are fed, and the layout of what they return."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.sequences.generation import behind
from holter.scripts.reading.source.expressions import axis_of, tensor_of, whole
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Function, Pattern, Source, called, dotted


@reads
def lagging_token(source: Source) -> Iterator[Pattern]:
    """`token = tgt[:, t - 1]` at the end of a step that begins with `tgt[:, 0]` for t = 1."""
    for loop in source.of(ast.For):
        if not isinstance(loop.target, ast.Name) or called(loop.iter) != "range":
            continue
        assert isinstance(loop.iter, ast.Call)
        start = 0 if len(loop.iter.args) == 1 else whole(loop.iter.args[0])
        if start is None or len(loop.iter.args) > 2:
            continue
        turn, scope = loop.target.id, source.scope(loop)
        for statement in loop.body:
            for name, base, offset in _fed(source, statement, turn):
                first = _initial(source, scope, loop, name, base)
                if first is None or not _is_read_before(source, loop, statement, name):
                    continue
                if offset != first + 1 - start:
                    yield source.pattern("lagging token", statement, base)


def _fed(source: Source, statement: ast.stmt, turn: str) -> Iterator[tuple[str, str, int]]:
    """Yield names that are given `tgt[:, t + k]`, or that in one case: name, `tgt`, k."""
    for node in source.walk(statement):
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
            continue
        values = [node.value]
        if isinstance(node.value, ast.IfExp):
            values = [node.value.body, node.value.orelse]
        elif called(node.value) == "where" and isinstance(node.value, ast.Call):
            values = node.value.args[1:]
        for value in values:
            place = _place(value)
            if place is None:
                continue
            offset = _offset(place, turn)
            if offset is not None and isinstance(value, ast.Subscript):
                yield node.targets[0].id, _base(value), offset


def _base(value: ast.Subscript) -> str:
    axis = ":, " if isinstance(value.slice, ast.Tuple) else ""
    return f"{dotted(value.value)}[{axis}"


def _place(value: ast.expr) -> ast.expr | None:
    """Return `t` of `tgt[:, t]`, or of `tgt[t]`."""
    while isinstance(value, ast.Call) and called(value) in ("unsqueeze", "to"):
        inner = tensor_of(value)
        if inner is None:
            return None
        value = inner
    if not isinstance(value, ast.Subscript) or not dotted(value.value):
        return None
    parts = value.slice.elts if isinstance(value.slice, ast.Tuple) else [value.slice]
    if len(parts) == 2 and ast.unparse(parts[0]) == ":":
        return parts[1]
    return parts[0] if len(parts) == 1 else None


def _offset(place: ast.expr, turn: str) -> int | None:
    if isinstance(place, ast.Name):
        return 0 if place.id == turn else None
    if isinstance(place, ast.BinOp) and dotted(place.left) == turn:
        number = whole(place.right)
        if number is not None and isinstance(place.op, ast.Add | ast.Sub):
            return number if isinstance(place.op, ast.Add) else -number
    return None


def _initial(source: Source, scope: ast.AST, loop: ast.For, name: str, base: str) -> int | None:
    """Return the place in the targets of the token that a loop begins with."""
    found = [(value, at) for other, value, at in source.assigned(scope)
             if other == name and at.lineno < loop.lineno]  # fmt: skip
    if not found:
        return None
    value = found[-1][0]
    place = _place(value)
    is_base = isinstance(value, ast.Subscript) and _base(value) == base
    return whole(place) if place is not None and is_base else None


def _is_read_before(source: Source, loop: ast.For, statement: ast.stmt, name: str) -> bool:
    """Whether a loop reads the token before it is given the next one, and only there."""
    reads = [node.lineno for node in source.walk(loop) if isinstance(node, ast.Name)
             and node.id == name and isinstance(node.ctx, ast.Load)]  # fmt: skip
    return bool(reads) and max(reads) < statement.lineno


@reads
def time_major_steps(source: Source) -> Iterator[Pattern]:
    """`torch.stack(steps)` of (batch, classes), flattened against `tgt[:, 1:].reshape(-1)`."""
    for loss in source.of(ast.Call):
        if len(loss.args) < 2 or not re.search(
            r"cross_entropy|nll_loss|loss|criterion|^ce$|^crit$", called(loss), re.I
        ):
            continue
        scope = source.scope(loss)
        scores = _unflattened(loss.args[0])
        wanted = _unflattened(loss.args[1])
        scores = scores if scores is None else behind(source, scope, scores)
        wanted = wanted if wanted is None else behind(source, scope, wanted)
        if called(scores or loss) not in ("stack", "cat") or not isinstance(scores, ast.Call):
            continue
        if not isinstance(wanted, ast.Subscript) or not dotted(wanted.value):
            continue
        axis = axis_of(scores) if len(scores.args) > 1 or scores.keywords else 0
        name = dotted(scores.args[0]) if scores.args else ""
        if axis not in (0, 1) or not name or (called(scores) == "cat" and axis == 1):
            continue
        is_by_sample = isinstance(wanted.slice, ast.Tuple)  # tgt[:, 1:]
        target = dotted(wanted.value)
        for loop in _filling(source, scope, name):
            turn = dotted(loop.target)
            taken = {
                ast.unparse(node.slice).replace("(", "").partition(",")[0].strip() == ":"
                for node in source.walk(loop)
                if isinstance(node, ast.Subscript)
                and dotted(node.value) == target
                and turn in {each.id for each in ast.walk(node.slice) if isinstance(each, ast.Name)}
            }
            if axis == 0 and is_by_sample and False not in taken and _is_counted(loop, target):
                yield source.pattern("time-major steps", scores, name)


def _is_counted(loop: ast.For, target: str) -> bool:
    """Whether a loop goes over the positions of the targets: `range(tgt.size(1))`."""
    text = ast.unparse(loop)
    return f"{target}.size(1)" in text or f"{target}.shape[1]" in text or f"{target}[:, " in text


def _unflattened(value: ast.expr) -> ast.expr | None:
    """Return the tensor of `x.reshape(-1, V)` or `x.flatten(0, 1)`; None if it is not flat."""
    is_flat = False
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        if called(value) in ("reshape", "view", "flatten"):
            is_flat = True
        elif called(value) not in ("contiguous", "to", "float", "long"):
            break
        value = value.func.value
    return value if is_flat else None


def _filling(source: Source, scope: ast.AST, name: str) -> Iterator[ast.For]:
    """Yield the loops that append to a list, one at a time."""
    for node in source.walk(scope):
        if not isinstance(node, ast.Call) or dotted(node.func) != f"{name}.append":
            continue
        loop = next((each for each in source.above(node) if isinstance(each, ast.For)), None)
        if loop is not None:
            yield loop


_RATIO = re.compile(r"teacher|forcing|^tf(_|$)|_tf$", re.I)
_EVALUATION = re.compile(r"(^|_)(eval\w*|val\w*|test\w*|infer\w*|predict\w*|translate|score)(_|$)",
                         re.I)  # fmt: skip


@reads
def forced_evaluation(source: Source) -> Iterator[Pattern]:
    """`model(x, y, teacher_forcing_ratio=1.0)` in an evaluation: it is shown the true tokens."""
    parameters = {
        each.arg: place - 1
        for body in source.module_classes.values()
        for function in body.body
        if isinstance(function, Function) and function.name == "forward"
        for place, each in enumerate(function.args.args)
        if _RATIO.search(each.arg)
    }
    if not parameters:
        return
    evaluated = [call for call in source.of(ast.Call)
                 if dotted(call.func).rpartition(".")[2] in source.models
                 and _is_evaluated(source, call)]  # fmt: skip
    for name, place in parameters.items():
        given = [(call, [*(each.value for each in call.keywords if each.arg == name),
                         *call.args[place : place + 1]]) for call in evaluated]  # fmt: skip
        forced = [call for call, values in given if values and _is_share(values[0])]
        if len(forced) == len(given):  # others compare both
            yield from (source.pattern("forced evaluation", call, name) for call in forced)


def _is_share(value: ast.expr) -> bool:
    """Whether a value is a number above 0, or True."""
    return isinstance(value, ast.Constant) and type(value.value) in (int, float, bool) and (
        bool(value.value)
    )  # fmt: skip


def _is_evaluated(source: Source, call: ast.Call) -> bool:
    """Whether a call belongs to an evaluation without gradients, and makes predictions of it."""
    scope = source.scope(call)
    name = getattr(scope, "name", "")
    above = list(source.above(call))
    is_free = any(
        "no_grad" in ast.unparse(item.context_expr) or "inference_mode" in ast.unparse(item)
        for each in above if isinstance(each, ast.With) for item in each.items
    ) or any("no_grad" in ast.unparse(each) or "inference_mode" in ast.unparse(each)
             for each in getattr(scope, "decorator_list", ()))  # fmt: skip
    if not is_free and not _EVALUATION.search(name):
        return False
    return not any(called(each) == "backward" for each in source.walk(scope)
                   if scope is not source.tree)  # fmt: skip


@reads
def own_answer(source: Source) -> Iterator[Pattern]:
    """`prev = target[:, t]`, then `out[:, t] = step(prev)`: each step is fed its own answer."""
    for loop in source.of(ast.For):
        if not isinstance(loop.target, ast.Name) or called(loop.iter) not in ("range", "trange"):
            continue
        assert isinstance(loop.iter, ast.Call)
        if len(loop.iter.args) != 1 or not re.search(
            r"forward|decode|train|step|run", getattr(source.scope(loop), "name", "train")
        ):
            continue
        turn, scope = loop.target.id, source.scope(loop)
        for statement in loop.body:
            for name, base, offset in _fed(source, statement, turn):
                if offset != 0 or not re.search(r"tgt|trg|target|label|truth|future|^y", base):
                    continue
                first = [value for other, value, at in source.assigned(scope)
                         if other == name and at.lineno < loop.lineno]  # fmt: skip
                begins = bool(first) and _begins(first[-1], base)
                given = [node.lineno for node in source.walk(loop) if isinstance(node, ast.Name)
                         and node.id == name and isinstance(node.ctx, ast.Load)]  # fmt: skip
                inside = source.walk(loop)
                again = [each for each in source.bindings(scope, name)
                         if each in inside and each.lineno > statement.lineno]  # fmt: skip
                is_used = bool(given) and min(given) >= statement.lineno
                if begins and is_used and again:
                    yield source.pattern("own answer", statement, base.rstrip("[:, "))


def _begins(value: ast.expr, base: str) -> bool:
    """Whether a decoder begins with something that comes before its targets."""
    text = ast.unparse(value)
    target = base.rstrip("[:, ")
    is_start = re.search(r"\[:, -1|\[-1\]|zeros|full|BOS|SOS|start|sos|bos|new_", text)
    return bool(is_start) and target not in text
