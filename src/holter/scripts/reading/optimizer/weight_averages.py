"""Moving averages of weights: decays, coefficients, buffers and when they begin."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.expressions import HOMES, argument, number, resolved
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Pattern, Source, called, dotted

_AVERAGE = re.compile(r"ema|avg|average|shadow|swa|smooth", re.I)
_SCORING = re.compile(r"eval|valid|test|score|accuracy|psnr|metric|report|sample", re.I)
_UPDATES = {"mul_", "lerp_", "copy_", "add_"}
_MOST = 0.5  # of the average that may be initial weights
_HELD = re.compile(r"parameters|buffers|state_dict|params|shadow|values\(|items\(|weights")
_DECAY = re.compile(r"decay|(^|_)(beta|momentum|ema_m)($|_)", re.I)
_LEAST = 0.4  # weight of the average itself; those of batch statistics are no weights
_MADE = {"data", "detach()", "clone()", "float()"}
_START = re.compile(r"(swa|ema|avg|average)_?start|start_?(swa|ema|avg)", re.I)


@reads
def slow(source: Source) -> Iterator[Pattern]:
    """A decay whose power by the number of steps is above one half: mostly initial weights."""
    steps = _steps(source)
    if steps is None:
        return
    for node, decay in _decays(source):
        value = number(source, decay)
        if value is not None and 0.9 < value < 1 and value**steps > _MOST:
            yield source.pattern("slow average", node, f"{value:g}, {steps:.0f}")


def _decays(source: Source) -> Iterator[tuple[ast.AST, ast.expr]]:
    """Yield each update of an average, and what its old value is multiplied by."""
    for call in source.of(ast.Call):
        if called(call) == "get_ema_multi_avg_fn" and call.args:
            yield call, call.args[0]
        loop = next((each for each in source.above(call) if isinstance(each, ast.For)), None)
        if loop is None or called(loop.iter) != "zip" or "parameters" not in ast.unparse(loop.iter):
            continue
        if not _AVERAGE.search(ast.unparse(loop.iter) + getattr(_class(source, call), "name", "")):
            continue
        if called(call) == "mul_" and call.args:
            yield call, call.args[0]
        if called(call) == "lerp_" and len(call.args) == 2:
            rest = call.args[1]
            if isinstance(rest, ast.BinOp) and isinstance(rest.op, ast.Sub):
                yield call, rest.right


def _class(source: Source, node: ast.AST) -> ast.AST | None:
    return next((each for each in source.above(node) if isinstance(each, ast.ClassDef)), None)


def _steps(source: Source) -> float | None:
    """Return how many steps the loops around `backward()` make, if constants say so."""
    counts = []
    for call in source.of(ast.Call):
        if called(call) != "backward":
            continue
        count = 1.0
        loops = [each for each in source.above(call) if isinstance(each, ast.For | ast.While)]
        if not loops:
            return None
        for loop in loops:
            turns = _turns(source, loop)
            if turns is None:
                return None
            count *= turns
        counts.append(count)
    return sum(counts) if counts else None


def _turns(source: Source, loop: ast.AST) -> float | None:
    if not isinstance(loop, ast.For):
        return None
    given = loop.iter
    if called(given) in ("tqdm", "trange") and isinstance(given, ast.Call) and given.args:
        given = given.args[0] if called(given) == "tqdm" else given
    if called(given) not in ("range", "trange") or not isinstance(given, ast.Call):
        return None
    numbers = [number(source, each) for each in given.args[:3]]
    if not numbers or any(each is None for each in numbers):
        return None
    first, last, step = ([0.0, *numbers, 1.0] if len(numbers) == 1 else [*numbers, 1.0])[:3]
    assert first is not None and last is not None and step is not None
    return max((last - first) / step, 0.0) if step else None


@reads
def without_buffers(source: Source) -> Iterator[Pattern]:
    """An average of parameters that is evaluated with the initial buffers of BatchNorm."""
    if not any("BatchNorm" in called(call) for call in source.of(ast.Call)):
        return
    calls = list(source.of(ast.Call))
    if any(called(call) in ("buffers", "named_buffers", "update_bn") for call in calls):
        return
    for loop in source.of(ast.For):
        zipped = loop.iter
        if called(zipped) != "zip" or not isinstance(zipped, ast.Call) or len(zipped.args) < 2:
            continue
        owners = [_owner(each) for each in zipped.args[:2]]
        if not all(owners) or not any(called(n) in _UPDATES for n in source.walk(loop)):
            continue
        inside = getattr(_class(source, loop), "name", "")
        copy = owners[0]
        named = f"{copy} {inside}"
        if not _AVERAGE.search(named):
            continue
        names = {copy.rpartition(".")[2]} | {
            name for scope in source.scopes for name, value, _ in source.assigned(scope)
            if inside and called(value) == inside
        }  # fmt: skip
        later = [call for call in calls if not _is_initial(source, call, loop)]
        if _is_scored(calls, names) and not _is_copied(later, names):
            yield source.pattern("average without buffers", loop, copy)


def _owner(node: ast.expr) -> str:
    if called(node) == "parameters" and isinstance(node, ast.Call):
        return dotted(node.func.value) if isinstance(node.func, ast.Attribute) else ""
    return ""


def _is_scored(calls: list[ast.Call], names: set[str]) -> bool:
    """Whether the average is put into evaluation mode, or given to a function that scores."""
    for call in calls:
        given = list(call.args) if _SCORING.search(called(call)) else []
        if called(call) == "eval" and isinstance(call.func, ast.Attribute):
            given = [call.func.value]
        if any(set(dotted(each).split(".")) & names for each in given):
            return True
    return False


def _is_initial(source: Source, call: ast.Call, loop: ast.For) -> bool:
    """Whether a call runs once, before the loop that updates the average in its scope."""
    is_before = source.scope(call) is source.scope(loop) and call.lineno < loop.lineno
    return (
        is_before
        and not any(isinstance(each, ast.For | ast.While | ast.If) for each in source.above(call))
        and any(isinstance(each, ast.For | ast.While) for each in source.above(loop))
    )


def _is_copied(calls: list[ast.Call], names: set[str]) -> bool:
    """Whether a state is loaded into the average, with the buffers of the model."""
    return any(
        called(call) == "load_state_dict"
        and isinstance(call.func, ast.Attribute)
        and set(dotted(call.func.value).split(".")) & names
        for call in calls
    )


@reads
def exchanged(source: Source) -> Iterator[Pattern]:
    """`ema.mul_(1 - decay).add_(p, alpha=decay)`: it keeps 0.1 % of the average."""
    for node, kept in _updates(source):
        loop = next((each for each in source.above(node) if isinstance(each, ast.For)), None)
        if loop is None or not _HELD.search(ast.unparse(loop.iter)) or _is_first(source, node):
            continue
        share = _share(source, kept)
        if share is not None and share < _LEAST:
            yield source.pattern("exchanged average", node, ast.unparse(kept))


def _is_first(source: Source, node: ast.AST) -> bool:
    """Whether an update stands under a condition on the step: a copy at the beginning."""
    return any(isinstance(each, ast.If) for each in source.above(node)) and any(
        "step" in ast.unparse(each.test) for each in source.above(node) if isinstance(each, ast.If)
    )


def _share(source: Source, node: ast.expr) -> float | None:
    """Return how much of the average is kept, by numbers or else by the name of a decay."""
    node = resolved(source, source.scope(node), node)
    known = number(source, node)
    if known is not None:
        return known if 0 < known < 1 else None
    name = dotted(node).rpartition(".")[2]
    if name:
        return 1.0 if _DECAY.search(name) else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        rest = _share(source, node.right) if number(source, node.left) == 1 else None
        return None if rest is None else 1 - rest
    return None


def _updates(source: Source) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield each update of an average, and what the average itself is multiplied by."""
    for call in source.of(ast.Call):
        name, target = called(call), _target(call)
        if name == "add_" and isinstance(target, ast.Call) and called(target) == "mul_":
            if target.args:
                yield call, target.args[0]
        elif name == "copy_" and call.args and target is not None:
            yield from _of_sum(call.args[0], target)
        elif name in ("lerp_", "lerp"):
            kept = argument(call, 1, "weight")
            is_stored = name == "lerp_" or isinstance(source.parent(call), ast.Assign | ast.Call)
            rest = _rest(source, kept) if kept is not None and is_stored else None
            if rest is not None:
                yield call, rest
    for assign in source.of(ast.Assign):
        yield from _of_sum(assign.value, assign.targets[0])


def _rest(source: Source, weight: ast.expr) -> ast.expr | None:
    """Return `decay` of `1 - decay`, or the number that is left of a constant weight."""
    if isinstance(weight, ast.BinOp) and isinstance(weight.op, ast.Sub):
        return weight.right if number(source, weight.left) == 1 else None
    share = _share(source, weight)
    left = ast.Constant(1 - share) if share is not None else None
    return ast.copy_location(left, weight) if left is not None else None


def _target(call: ast.Call) -> ast.expr | None:
    if isinstance(call.func, ast.Attribute) and dotted(call.func.value) not in HOMES:
        return call.func.value
    return None


def _of_sum(value: ast.expr, target: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield what the target itself is multiplied by in `a * target + b * other`."""
    while isinstance(value, ast.Call) and called(value) in ("clone", "detach", "to"):
        if not isinstance(value.func, ast.Attribute):
            return
        value = value.func.value
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Add):
        return
    own = []
    for part in (value.left, value.right):
        if not isinstance(part, ast.BinOp) or not isinstance(part.op, ast.Mult):
            return
        for factor, weighed in ((part.left, part.right), (part.right, part.left)):
            if _bare(weighed) == _bare(target) and _bare(weighed):
                own.append(factor)
    if len(own) == 1:
        yield value, own[0]


def _bare(node: ast.expr) -> str:
    """Return what is written of a weight, without `.data` and the like."""
    text = ast.unparse(node)
    while text.rpartition(".")[2] in _MADE:
        text = text.rpartition(".")[0]
    return text


@reads
def early_average(source: Source) -> Iterator[Pattern]:
    """`if epoch < swa_start: swa.update_parameters(model)`: the average of the first epochs."""
    for node in source.of(ast.If):
        test = node.test
        if not isinstance(test, ast.Compare) or len(test.ops) != 1:
            continue
        left, right = dotted(test.left), dotted(test.comparators[0])
        if isinstance(test.ops[0], ast.Lt | ast.LtE):
            is_before = bool(_START.search(right)) and not _START.search(left)
        elif isinstance(test.ops[0], ast.Gt | ast.GtE):
            is_before = bool(_START.search(left)) and not _START.search(right)
        else:
            continue
        updates = [each for statement in node.body for each in source.walk(statement)
                   if called(each) == "update_parameters"]  # fmt: skip
        if is_before and updates:
            yield source.pattern("average before its start", test, left)
