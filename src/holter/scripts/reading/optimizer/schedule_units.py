"""Schedulers that are stepped in another unit than the one they are set in."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.expressions import number, resolved
from holter.scripts.reading.source.loops import EPOCH
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Function, Pattern, Source, called, dotted

_BY_EPOCH = {"StepLR": "step_size", "MultiStepLR": "milestones", "ExponentialLR": "gamma"}
_LOOPS = (ast.For, ast.While)
_MOST = 12  # a step size that can only count epochs, where batches are many
_FACTOR = 0.1  # by which torch multiplies a rate if it is given none
_SLOWEST = 0.97  # a factor closer to 1 may be meant for batches
_PER_STEP = re.compile(
    r"len\([\w.]*(loader|_dl|dl|batches)\w*\)|steps_per_epoch|//\s*\w*(batch|bs)", re.I
)


@reads
def by_batch(source: Source) -> Iterator[Pattern]:
    """`StepLR(optimizer, 3)` that is stepped beside `optimizer.step()` in a loop over batches."""
    for made, steps in _schedulers(source):
        kind = called(made)
        if kind not in _BY_EPOCH:
            continue
        size = _size(source, made, kind)
        if size is None:
            continue
        for call in steps:
            loops = _loops(source, call)
            if len(loops) < 2 or not _is_beside_update(source, call, loops[0]):
                continue
            if _is_epochs(loops[-1]) and not _is_once(loops[0]):
                yield source.pattern("scheduler by batch", call, f"{kind}: {size}")


@reads
def by_epoch(source: Source) -> Iterator[Pattern]:
    """`OneCycleLR(optimizer, lr, total_steps=epochs * len(loader))` that is stepped each epoch."""
    for made, steps in _schedulers(source):
        if not _counts_steps(source, made) or not steps:
            continue
        loops = [_loops(source, call) for call in steps]
        if all(len(each) == 1 and _is_epochs(each[0]) and _has_inner_training(source, each[0])
               for each in loops):  # fmt: skip
            yield source.pattern("scheduler by epoch", steps[0], called(made))


@reads
def short_cosine(source: Source) -> Iterator[Pattern]:
    """`CosineAnnealingLR(optimizer, T_max=epochs // 2)`: the rate rises again."""
    for made, steps in _schedulers(source):
        total = _given(made, "T_max", 1) if called(made) == "CosineAnnealingLR" else None
        if not isinstance(total, ast.BinOp) or not isinstance(total.op, ast.Div | ast.FloorDiv):
            continue
        name = dotted(total.left).rpartition(".")[2]
        divisor = number(source, total.right)
        if not EPOCH.search(name) or divisor is None or divisor <= 1:
            continue
        for call in steps:
            loops = _loops(source, call)
            if len(loops) != 1 or not isinstance(loops[0], ast.For):
                continue
            over = loops[0].iter
            ends = over.args[-1:] if isinstance(over, ast.Call) and called(over) == "range" else []
            if ends and dotted(ends[0]).rpartition(".")[2] == name and not any(
                isinstance(each, ast.If) for each in source.above(call)
                if source.scope(each) is source.scope(call)
            ):  # fmt: skip
                yield source.pattern("rising cosine", made, ast.unparse(total))


def _schedulers(source: Source) -> Iterator[tuple[ast.Call, list[ast.Call]]]:
    """Yield each scheduler that is built once: how it is built, and where it is stepped."""
    built: dict[str, list[ast.Call]] = {}
    for node in source.of(ast.Assign):
        for target in node.targets:
            name = dotted(target)
            if name and re.search(r"sched", name, re.I) and isinstance(node.value, ast.Call):
                built.setdefault(name, []).append(node.value)
    for name, values in built.items():
        if len(values) == 1:
            steps = [call for call in source.of(ast.Call)
                     if dotted(call.func) == f"{name}.step" and not call.args]  # fmt: skip
            yield values[0], steps


def _size(source: Source, made: ast.Call, kind: str) -> str | None:
    """Return the setting that counts epochs, if it is too small for batches."""
    factor = _given(made, "gamma", 1 if kind == "ExponentialLR" else 2)
    decay = number(source, factor) if factor is not None else _FACTOR
    if decay is None or decay > _SLOWEST:
        return None
    if kind == "ExponentialLR":
        return f"gamma={decay:g}"
    given = _given(made, _BY_EPOCH[kind], 1)
    if given is None:
        return None
    if kind == "MultiStepLR":
        listed = resolved(source, source.scope(made), given)
        if not isinstance(listed, ast.List | ast.Tuple):
            return None
        values = [number(source, each) for each in listed.elts]
        small = values and all(value is not None and value <= 3 * _MOST for value in values)
        return ast.unparse(listed) if small else None
    value = number(source, given)
    return f"step_size={value:g}" if value is not None and value <= _MOST else None


def _given(made: ast.Call, name: str, place: int) -> ast.expr | None:
    """Return an argument by its name or its place."""
    named = [keyword.value for keyword in made.keywords if keyword.arg == name]
    return next(iter(named or made.args[place : place + 1]), None)


def _loops(source: Source, call: ast.AST) -> list[ast.AST]:
    """Return the loops around a call, and those around the only call of its function."""
    loops: list[ast.AST] = [each for each in source.above(call) if isinstance(each, _LOOPS)]
    scope = source.scope(call)
    if isinstance(scope, Function):
        uses = [use for use in source.of(ast.Call) if called(use) == scope.name]
        outer = [[each for each in source.above(use) if isinstance(each, _LOOPS)] for use in uses]
        if len(outer) == 1:
            loops += outer[0]
    return loops


def _is_beside_update(source: Source, call: ast.Call, loop: ast.AST) -> bool:
    """Whether the same loop makes an update, and the scheduler's step has no condition."""
    for above in source.above(call):
        if above is loop:
            break
        if isinstance(above, ast.If | ast.Try):
            return False
    inner = [node for node in source.walk(loop) if isinstance(node, _LOOPS) and node is not loop]
    if any(called(node) == "backward" for each in inner for node in source.walk(each)):
        return False
    return any(called(node) == "backward" for node in source.walk(loop))


def _is_epochs(loop: ast.AST) -> bool:
    """Whether a loop counts epochs, by the name of its variable or of its range."""
    return isinstance(loop, ast.For) and bool(
        EPOCH.search(ast.unparse(loop.target)) or EPOCH.search(ast.unparse(loop.iter))
    )


def _is_once(loop: ast.AST) -> bool:
    return isinstance(loop, ast.For) and bool(EPOCH.search(ast.unparse(loop.target)))


def _counts_steps(source: Source, made: ast.Call) -> bool:
    """Whether the length of a schedule is a number of batches: `epochs * len(loader)`."""
    kind, scope = called(made), source.scope(made)
    given = {keyword.arg: keyword.value for keyword in made.keywords}
    if kind == "OneCycleLR":
        if "steps_per_epoch" in given:
            return True
        total = given.get("total_steps")
        return total is not None and bool(_PER_STEP.search(_text(source, scope, total)))
    if kind == "CosineAnnealingLR":
        total = given.get("T_max", made.args[1] if len(made.args) > 1 else None)
        return total is not None and bool(_PER_STEP.search(_text(source, scope, total)))
    if kind == "LambdaLR" and len(made.args) > 1:
        factor = made.args[1]
        name = dotted(factor).rpartition(".")[2]
        body = next((each for each in source.of(*Function.__args__) if each.name == name), factor)
        texts = [source.code(body)]
        texts += [ast.unparse(value) for each in (scope, source.tree)
                  for other, value, _ in source.assigned(each)
                  if re.search(rf"\b{re.escape(other)}\b", texts[0])]  # fmt: skip
        texts += [ast.unparse(node.value) for node in source.of(ast.Assign)
                  for target in node.targets if isinstance(target, ast.Attribute)
                  and f"self.{target.attr}" in texts[0]]  # fmt: skip
        return any(_PER_STEP.search(text) for text in texts[1:]) or bool(
            re.search(r"len\(\w*(loader|_dl)\w*\)", texts[0])
        )
    return False


def _text(source: Source, scope: ast.AST, value: ast.expr) -> str:
    """Return the code of a value, with that of the names in it."""
    names = {node.id for node in source.walk(value) if isinstance(node, ast.Name)}
    found = [ast.unparse(made) for each in (scope, source.tree)
             for name, made, _ in source.assigned(each) if name in names]  # fmt: skip
    return " ".join([ast.unparse(value), *found])


def _has_inner_training(source: Source, loop: ast.AST) -> bool:
    """Whether one turn makes several updates: in a loop of its own, or in a function with one."""
    nodes = [node for node in source.walk(loop) if node is not loop]
    inner = [node for node in nodes if isinstance(node, _LOOPS)]
    if any(called(each) == "backward" for node in inner for each in source.walk(node)):
        return True
    names = {called(node) for node in nodes}
    return any(
        called(each) == "backward"
        for function in source.of(*Function.__args__)
        if function.name in names
        for node in source.walk(function)
        if isinstance(node, _LOOPS)
        for each in source.walk(node)
    )
