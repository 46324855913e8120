"""Gradients of several batches: erased, never divided, or used after the wrong batch."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.optimizer.updates import is_accumulating
from holter.scripts.reading.source.expressions import number
from holter.scripts.reading.source.loops import LOOPS, around, condition, updates
from holter.scripts.reading.source.objective import BACKWARD
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Pattern, Source, called, dotted

_COUNTS = re.compile(r"accum|acc_?steps|micro|grad_?acc|^ga_?steps$|gas$", re.I)
_DIVIDED = re.compile(r"reduction=['\"]sum['\"]|\.no_sync\(|accelerat|deepspeed|world_size", re.I)


@reads
def erased_inside(source: Source) -> Iterator[Pattern]:
    """`for _ in range(accum): optimizer.zero_grad(); loss.backward()`, and one step after it."""
    for loop, backward, step, owner in _inner_loops(source):
        for zero in source.walk(loop):
            if called(zero) != "zero_grad" or around(source, zero) is not loop:
                continue
            assert isinstance(zero, ast.Call)
            of = dotted(zero.func).rpartition(".")[0]
            is_own = of == owner or of.rpartition(".")[2] in source.models
            is_once = condition(source, zero, loop) is None and zero.lineno != backward.lineno
            if is_own and is_once and not _names_in_loss(source, loop, "grad"):
                yield source.pattern("erased accumulation", zero, ast.unparse(step.func))


def _inner_loops(source: Source) -> Iterator[tuple[ast.For, ast.Call, ast.Call, str]]:
    """Yield loops that only go backward, and the update that one turn of the outer loop makes."""
    for backward in source.of(ast.Call):
        loop = around(source, backward) if called(backward) in BACKWARD else None
        if not isinstance(loop, ast.For) or condition(source, backward, loop) is not None:
            continue
        outer = around(source, loop)
        if updates(source, loop) or outer is source.tree:
            continue
        made = updates(source, outer)
        backwards = [call for call in source.walk(outer) if called(call) in BACKWARD]
        if len(backwards) != 1 or len(made) != 1 or around(source, made[0][0]) is not outer:
            continue
        if made[0][0].lineno > backward.lineno:
            yield loop, backward, *made[0]


def _names_in_loss(source: Source, loop: ast.AST, name: str) -> bool:
    """Whether a loop reads gradients itself, such as an attack does."""
    return any(each.attr == name for each in source.walk(loop) if isinstance(each, ast.Attribute))


@reads
def undivided(source: Source) -> Iterator[Pattern]:
    """`loss.backward()` for each of `accum` batches before one step, and no `loss / accum`."""
    text = source.code(source.tree)
    # Without clipping a sum is the mean at a larger rate, which may be what is meant.
    if _DIVIDED.search(text) or "clip_grad" not in text:
        return
    for backward, count in _accumulated(source):
        name = count.rpartition(".")[2]
        operations: list[ast.BinOp | ast.AugAssign] = [*source.of(ast.BinOp)]
        operations += source.of(ast.AugAssign)
        is_divided = any(
            isinstance(each.op, ast.Div)
            and re.search(rf"\b{name}\b", ast.unparse(_divisor(each)))
            and not _is_of_loader(each)
            for each in operations
        )
        # `scale = accum`, `loss.div_(accum)`, `lr=lr / accum` and the like.
        other = rf"\w+ = ([\w.]+\.)?{name}$|div\w*\([^\n]*\b{name}\b|lr=[^,\n]*\b{name}\b"
        if not is_divided and not re.search(other, text, re.M):
            yield source.pattern("undivided accumulation", backward, count)


def _divisor(node: ast.BinOp | ast.AugAssign) -> ast.expr:
    return node.value if isinstance(node, ast.AugAssign) else node.right


def _is_of_loader(node: ast.BinOp | ast.AugAssign) -> bool:
    """Whether a quotient counts updates: `len(loader) / accum`."""
    left = node.target if isinstance(node, ast.AugAssign) else node.left
    name = dotted(left).rpartition(".")[2]
    is_count = re.search(r"(^|_)(n|num|steps?|batches|iters?|total|updates)(_|$)", name, re.I)
    return "len(" in ast.unparse(left) or (bool(is_count) and "loss" not in name)


def _accumulated(source: Source) -> Iterator[tuple[ast.Call, str]]:
    """Yield the backward pass of an accumulation, and the name of the number of its batches."""
    for loop, backward, _, _ in _inner_loops(source):
        over = loop.iter
        if called(over) in ("range", "trange") and isinstance(over, ast.Call) and over.args:
            count = dotted(over.args[-1])
            if _COUNTS.search(count.rpartition(".")[2]):
                yield backward, count
    for backward in source.of(ast.Call):
        loop_ = around(source, backward) if called(backward) in BACKWARD else None
        if not isinstance(loop_, LOOPS) or condition(source, backward, loop_) is not None:
            continue
        for step, _ in updates(source, loop_)[:1]:
            if is_accumulating(source, step, loop_):
                for count in remainders(source, step, loop_):
                    if _COUNTS.search(count.rpartition(".")[2]):
                        yield backward, count


def remainders(source: Source, step: ast.Call, loop: ast.AST) -> list[str]:
    """Return the names of the numbers of batches that an update is made of."""
    test = condition(source, step, loop)
    return [] if test is None else [
        dotted(each.right) for each in _remainders(source, test.test, loop) if dotted(each.right)
    ]  # fmt: skip


def _remainders(source: Source, test: ast.expr, loop: ast.AST) -> Iterator[ast.BinOp]:
    tests = [test]
    tests += [each.value for each in source.walk(loop) if isinstance(each, ast.Assign)
              and dotted(test) and dotted(test) in map(dotted, each.targets)]  # fmt: skip
    for each in tests:
        for node in source.walk(each):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
                yield node


@reads
def first_batch(source: Source) -> Iterator[Pattern]:
    """`if i % accum == 0: optimizer.step()` with `i` from 0: the first step is of one batch."""
    for backward in source.of(ast.Call):
        loop = around(source, backward) if called(backward) in BACKWARD else None
        if not isinstance(loop, ast.For) or condition(source, backward, loop) is not None:
            continue
        index = _index_from_zero(loop)
        made = updates(source, loop)
        if not index or len({owner for _, owner in made}) != 1 or _is_changed(source, loop, index):
            continue
        for step, owner in made:
            test = condition(source, step, loop)
            if test is None or around(source, step) is not loop or step.lineno < backward.lineno:
                continue
            for node in _remainders(source, test.test, loop):
                above = source.parent(node)
                is_zero = isinstance(above, ast.UnaryOp) or (
                    isinstance(above, ast.Compare)
                    and isinstance(above.ops[0], ast.Eq)
                    and ast.unparse(above.comparators[0]) == "0"
                )
                single = number(source, node.right)
                if dotted(node.left) == index and is_zero and single != 1:
                    if test.test is not above or test.orelse:
                        continue
                    yield source.pattern("step after the first batch", test, owner)


def _index_from_zero(loop: ast.For) -> str:
    """Return the name that counts the turns of a loop from 0, or ""."""
    over, target = loop.iter, loop.target
    if not isinstance(over, ast.Call) or over.keywords or len(over.args) != 1:
        return ""
    if called(over) == "enumerate" and isinstance(target, ast.Tuple):
        return dotted(target.elts[0])
    inner = over.args[0]
    if called(over) in ("tqdm", "track") and called(inner) == "enumerate":
        is_plain = isinstance(inner, ast.Call) and len(inner.args) == 1 and not inner.keywords
        return dotted(target.elts[0]) if is_plain and isinstance(target, ast.Tuple) else ""
    return ""


def _is_changed(source: Source, loop: ast.For, name: str) -> bool:
    return any(isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store) and each.id == name
               for part in loop.body for each in source.walk(part))  # fmt: skip
