"""Fractions of progress that floor division rounds to 0."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Function, Pattern, Source, called, dotted

_PROGRESS = re.compile(r"step|epoch|iter|\bit\b|\bt\b|update|batch", re.I)
_STEP = re.compile(r"^(global_)?(step|it|iter|iteration|update|batch_idx)$", re.I)
_TOTAL = re.compile(r"^(total|(total|max|num|n)_?(steps|iters|iterations|updates))$", re.I)


@reads
def rounded(source: Source) -> Iterator[Pattern]:
    """`min(1.0, step // warmup)`: a share that is rounded down is 0 until the end."""
    for node in source.of(ast.Call):
        if called(node) != "min" or len(node.args) != 2:
            continue
        is_one = any(isinstance(each, ast.Constant) and each.value == 1 for each in node.args)
        divided = [each for each in node.args if isinstance(each, ast.BinOp)
                   and isinstance(each.op, ast.FloorDiv)]  # fmt: skip
        is_share = any(isinstance(each, ast.Constant) and each.value == 1
                       and isinstance(each.value, float) for each in node.args)  # fmt: skip
        if is_one and divided and (is_share or _PROGRESS.search(ast.unparse(divided[0].left))):
            yield source.pattern("rounded share", node, ast.unparse(divided[0]))


@reads
def whole_factor(source: Source) -> Iterator[Pattern]:
    """`if step < warmup: return (step + 1) // warmup` of a LambdaLR: 0 until its last step."""
    if not any(called(call) in ("LambdaLR", "MultiplicativeLR") or re.search(
            r"param_group", source.code(source.tree)) for call in source.of(ast.Call)):  # fmt: skip
        return
    for node in source.of(ast.BinOp, ast.Call):
        divided: ast.AST = node
        if isinstance(node, ast.Call):
            if called(node) not in ("int", "floor") or len(node.args) != 1:
                continue
            divided = node.args[0]
        is_whole = isinstance(divided, ast.BinOp) and isinstance(
            divided.op, ast.Div if isinstance(node, ast.Call) else ast.FloorDiv
        )
        if not isinstance(divided, ast.BinOp) or not is_whole:
            continue
        above = source.parent(node)
        if not isinstance(above, ast.Return | ast.IfExp | ast.Lambda):
            continue
        branch = next((each for each in source.above(node)
                       if isinstance(each, ast.If | ast.IfExp | Function)), None)  # fmt: skip
        test = branch.test if isinstance(branch, ast.If | ast.IfExp) else None
        if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.Lt | ast.LtE):
            continue
        bound = ast.unparse(test.comparators[0])
        is_share = ast.unparse(divided.right) == bound
        if is_share and dotted(test.left) in {dotted(each) for each in ast.walk(divided.left)}:
            yield source.pattern("rounded share", node, ast.unparse(node))


@reads
def zero_share(source: Source) -> Iterator[Pattern]:
    """`t // T` of `t = randint(0, T)`, or `step // total_steps`: 0 throughout."""
    ranges = set(_ranges(source))
    for node in source.of(ast.BinOp):
        if not isinstance(node.op, ast.FloorDiv):
            continue
        what, by = dotted(node.left).rpartition(".")[2], ast.unparse(node.right)
        last = dotted(node.right).rpartition(".")[2]
        is_progress = _STEP.match(what) and _TOTAL.match(last)
        if not what or not ((what, by) in ranges or is_progress):
            continue
        if not _is_index(source, node):
            yield source.pattern("rounded share", node, ast.unparse(node))


def _ranges(source: Source) -> Iterator[tuple[str, str]]:
    """Yield names whose values are below a bound, with the bound, wherever they are bound."""
    found: dict[str, set[str]] = {}
    for node in source.of(ast.Assign):
        target, value = node.targets[0], node.value
        name, bound = dotted(target), ""
        if called(value) == "randint" and isinstance(value, ast.Call):
            numbers = [each for each in value.args if not isinstance(each, ast.Tuple)]
            bound = ast.unparse(numbers[1 if len(numbers) > 1 else 0]) if numbers else ""
        if name:
            found.setdefault(name, set()).add(bound)
    for name, bounds in found.items():
        yield from ((name, bound) for bound in bounds if bound)


def _is_index(source: Source, node: ast.AST) -> bool:
    """Whether a quotient is a place, a number of turns, or compared: not a share."""
    for above in source.above(node):
        if isinstance(above, ast.Subscript | ast.Compare | ast.FormattedValue):
            return True
        if isinstance(above, ast.Call) and called(above) in ("range", "print", "embedding"):
            return True
        if isinstance(above, ast.stmt):
            return False
    return False
