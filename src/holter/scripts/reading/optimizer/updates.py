"""Gradients that are erased or clipped at the wrong place of an update."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.loops import LOOPS, around, condition, updates
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Pattern, Source, called, dotted

_CLIPS = {"clip_grad_norm_", "clip_grad_value_", "clip_grad_norm"}


@reads
def erased(source: Source) -> Iterator[Pattern]:
    """`optimizer.zero_grad()` for each batch, and `optimizer.step()` for every fourth."""
    for backward in _backwards(source):
        loop = around(source, backward)
        if not isinstance(loop, LOOPS) or condition(source, backward, loop) is not None:
            continue
        made = updates(source, loop)
        if len({owner for _, owner in made}) != 1 or not all(
            is_accumulating(source, step, loop) for step, _ in made
        ):
            continue
        for zero in source.walk(loop):
            is_zero = called(zero) == "zero_grad" and around(source, zero) is loop
            if is_zero and condition(source, zero, loop) is None:
                yield source.pattern("erased accumulation", zero, made[0][1])


def _backwards(source: Source) -> list[ast.Call]:
    return [call for call in source.of(ast.Call) if called(call) == "backward"]


def is_accumulating(source: Source, step: ast.Call, loop: ast.AST) -> bool:
    """Whether an update is made in some turns only, counted by a remainder."""
    test = condition(source, step, loop)
    if test is None or around(source, step) is not loop:
        return False
    if any(called(each) == "backward" for each in source.walk(test)):
        return False
    name = dotted(test.test)
    tests: list[ast.AST] = [test.test]
    tests += [each.value for each in source.walk(loop) if isinstance(each, ast.Assign)
              and name and name in map(dotted, each.targets)]  # fmt: skip
    return any(isinstance(each, ast.BinOp) and isinstance(each.op, ast.Mod)
               for test_ in tests for each in source.walk(test_))  # fmt: skip


@reads
def cleared(source: Source) -> Iterator[Pattern]:
    """`loss.backward()`, `optimizer.zero_grad()`, `optimizer.step()`: a step without gradients."""
    for backward in _backwards(source):
        region = around(source, backward)
        made = updates(source, region)
        zeros = [
            call
            for call in source.walk(region)
            if isinstance(call, ast.Call)
            and called(call) == "zero_grad"
            and isinstance(call.func, ast.Attribute)
        ]
        every = [call for call in _backwards(source) if around(source, call) is region]
        if len(made) != 1 or len(zeros) != 1 or len(every) != 1:
            continue
        (step, owner), zero = made[0], zeros[0]
        is_own = ast.unparse(zero.func.value) == owner  # type: ignore[attr-defined]
        between = backward.lineno < zero.lineno < step.lineno
        same = all(condition(source, each, region) is None and around(source, each) is region
                   for each in (step, zero, backward))  # fmt: skip
        if is_own and between and same:
            yield source.pattern("cleared before the step", zero, owner)


@reads
def clipped(source: Source) -> Iterator[Pattern]:
    """Gradients that are clipped before `backward()`, or after `optimizer.step()`."""
    regions = {around(source, each): each for each in _backwards(source)}
    for region, backward in regions.items():
        inside = [each for each in _backwards(source) if each in source.walk(region)]
        made = updates(source, region)
        clips = [call for call in source.walk(region) if isinstance(call, ast.Call)
                 and called(call) in _CLIPS]  # fmt: skip
        if len(inside) != 1 or len(made) != 1 or len(clips) != 1:
            continue
        step, clip = made[0][0], clips[0]
        if any(around(source, each) is not region for each in (step, clip)) or _is_measured(
            source, clip
        ):
            continue
        if clip.lineno < backward.lineno < step.lineno:
            yield source.pattern("early clipping", clip, ast.unparse(backward))
        elif backward.lineno < step.lineno < clip.lineno:
            yield source.pattern("late clipping", clip, ast.unparse(step))


def _is_measured(source: Source, clip: ast.Call) -> bool:
    """Whether a call only measures a norm: its result is used, or it is without a bound."""
    is_statement = isinstance(source.parent(clip), ast.Expr)
    return not is_statement or bool(re.search(r"inf|1e\+?\d\d|scale", ast.unparse(clip)))


@reads
def scaled(source: Source) -> Iterator[Pattern]:
    """`scaler.scale(loss).backward()`, then clipping, without `scaler.unscale_(optimizer)`."""
    if any(called(call) in ("unscale_", "unscale_gradients") for call in source.of(ast.Call)):
        return
    for backward in _backwards(source):
        value = backward.func.value if isinstance(backward.func, ast.Attribute) else backward
        if called(value) != "scale" or not isinstance(value, ast.Call):
            continue
        scaler = dotted(value.func).rpartition(".")[0]
        region = around(source, backward)
        for clip in source.walk(region):
            if not isinstance(clip, ast.Call) or called(clip) not in _CLIPS:
                continue
            later = [call for call in source.walk(region) if isinstance(call, ast.Call)
                     and dotted(call.func) == f"{scaler}.step"
                     and call.lineno > clip.lineno > backward.lineno]  # fmt: skip
            if later and scaler and not _is_measured(source, clip):
                yield source.pattern("clipped with the scale", clip, scaler)


@reads
def bypassed(source: Source) -> Iterator[Pattern]:
    """`scaler.scale(loss).backward()`, then `optimizer.step()`, or no `scaler.update()`."""
    for backward in _backwards(source):
        value = backward.func.value if isinstance(backward.func, ast.Attribute) else backward
        if called(value) != "scale" or not isinstance(value, ast.Call):
            continue
        scaler = dotted(value.func).rpartition(".")[0]
        if not scaler or not any(
            called(each) == "GradScaler" for each in source.named(scaler.rpartition(".")[2])
        ):
            continue
        steps = [call for call in source.of(ast.Call) if dotted(call.func) == f"{scaler}.step"]
        is_updated = any(dotted(call.func) == f"{scaler}.update" for call in source.of(ast.Call))
        region = around(source, backward)
        made = [call for call, _ in updates(source, region) if call not in steps]
        if not steps and made:
            yield source.pattern("bypassed scaler", made[0], scaler)
        elif steps and not is_updated:
            yield source.pattern("scaler never updated", steps[0], scaler)
