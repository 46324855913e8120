"""Running averages of weights that stay at their start, or without what BatchNorm measured."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source import Pattern, Source, called, dotted
from holter.scripts.reading.values import number

_AVERAGE = re.compile(r"ema|avg|average|shadow|swa|smooth", re.I)
_SCORING = re.compile(r"eval|valid|test|score|accuracy|psnr|metric|report|sample", re.I)
_UPDATES = {"mul_", "lerp_", "copy_", "add_"}
_MOST = 0.5  # of the average that may be initial weights


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
