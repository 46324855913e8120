"""Padding that counts as labels."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Function, Pattern, Source, called, dotted

_LABELS = re.compile(r"label|(^|[^a-z])tags?\b|target|(^|_)ys?$", re.I)
_FILLING = {"masked_fill", "masked_fill_", "where", "full", "full_like", "new_full", "fill_"}
_OF_CLASSES = {"cross_entropy", "nll_loss"}
_CLAMPED = re.compile(r"clamp|where|masked_fill|abs\(|relu|maximum|clip")
_Constants = dict[str, float]


@reads
def counted(source: Source) -> Iterator[Pattern]:
    """Labels that are padded with another value than the one that the loss ignores."""
    constants: _Constants = {}
    for name, value, _ in source.assigned(source.tree):
        if (number := _number(value, {})) is not None:
            constants[name] = number
    ignored = {
        _number(node.value, constants)
        for node in source.of(ast.keyword)
        if isinstance(node, ast.keyword) and node.arg == "ignore_index"
    }
    if not ignored or None in ignored or _is_filled_in(source, ignored, constants):
        return  # labels may be masked by hand
    for node in source.of(ast.Call):
        if called(node) != "pad_sequence" or not node.args:
            continue
        if not _LABELS.search(ast.unparse(node.args[0]).partition("for ")[0]):
            continue
        given = [each.value for each in node.keywords if each.arg == "padding_value"]
        given += node.args[2:3]
        padded = _number(given[0], constants) if given else 0.0
        if padded is not None and padded not in ignored:
            yield source.pattern("counted padding", node, f"{padded:g}")


@reads
def sides(source: Source) -> Iterator[Pattern]:
    """`pad_sequence(ids, padding_side="left")` beside labels that are padded on the right."""
    for function in source.of(*Function.__args__):
        calls = [call for call in source.walk(function) if isinstance(call, ast.Call)
                 and called(call) == "pad_sequence"]  # fmt: skip
        at = [next((getattr(k.value, "value", "") for k in call.keywords
                    if k.arg == "padding_side"), "right") for call in calls]  # fmt: skip
        if {*at} == {"left", "right"}:
            yield source.pattern("padding sides", calls[at.index("left")], "padding_side")


def _number(node: ast.expr, constants: _Constants) -> float | None:
    """Return the number that an expression is, or None if that depends on the run."""
    if isinstance(node, ast.Name):
        return constants.get(node.id)
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError):
        return None
    return float(value) if isinstance(value, int | float) else None


def _is_filled_in(source: Source, ignored: set[float | None], constants: _Constants) -> bool:
    """Whether the script writes the value that the loss ignores into labels after padding."""
    for node in source.of(ast.Assign, ast.Call):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            values = [node.value]
        elif isinstance(node, ast.Call) and called(node) in _FILLING:
            values = [*node.args, *(each.value for each in node.keywords)]
        else:
            continue
        if any(_number(each, constants) in ignored for each in values):
            return True
    return False


@reads
def unmasked(source: Source) -> Iterator[Pattern]:
    """`rows.sum() / mask.sum()`: the mask counts what the sum is divided by, and hides nothing."""
    for function in source.of(*Function.__args__):
        assigned = source.assigned(function)
        for node in source.walk(function):
            if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Div):
                continue
            rows, mask = _summed(node.left), _summed(node.right)
            made = [value for name, value, _ in assigned if name == rows]
            tests = [value for name, value, _ in assigned if name == mask]
            if len(made) != 1 or len(tests) != 1 or not isinstance(made[0], ast.Call):
                continue
            target = _target_of(made[0])
            if target is None or not _is_about(tests[0], target):
                continue
            uses = [each for each in source.walk(function) if isinstance(each, ast.Name)
                    and each.id == mask and isinstance(each.ctx, ast.Load)]  # fmt: skip
            together = [each for each in uses if _shares_statement(source, each, rows, node)]
            if not together and not _mentions(made[0], mask):
                yield source.pattern("unmasked sum", node, mask)


def _summed(value: ast.expr) -> str:
    """Return the name whose sum an expression is: `mask.sum().clamp(min=1)`."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        if called(value) == "sum" and not value.args:
            return dotted(value.func.value)
        if called(value) not in ("clamp", "float", "clamp_min"):
            return ""
        value = value.func.value
    return ""


def _target_of(call: ast.Call) -> ast.expr | None:
    """Return the target of a loss without reduction whose placeholders were replaced."""
    options = {each.arg: each.value for each in call.keywords}
    reduction = options.get("reduction")
    if not isinstance(reduction, ast.Constant) or reduction.value != "none":
        return None
    given = [*call.args[1:2], *(options[name] for name in ("target",) if name in options)]
    if not given or "ignore_index" in options:
        return None
    if called(call) in _OF_CLASSES and not _CLAMPED.search(ast.unparse(given[0])):
        return None  # it ignores -100 by itself, and rejects other numbers that are no class
    return given[0]


def _is_about(test: ast.expr, target: ast.expr) -> bool:
    """Whether a mask compares the target of a loss with something."""
    names = {each.id for each in ast.walk(target) if isinstance(each, ast.Name)}
    return any(
        isinstance(each, ast.Compare) and dotted(each.left) in names for each in ast.walk(test)
    )


def _shares_statement(source: Source, use: ast.AST, rows: str, ratio: ast.AST) -> bool:
    """Whether a mask is used together with the losses of rows, beside the ratio of both."""
    above = list(source.above(use))
    if ratio in above:
        return False  # that of the number of rows
    statement = next((each for each in above if isinstance(each, ast.stmt)), use)
    return _mentions(statement, rows)


def _mentions(node: ast.AST, name: str) -> bool:
    return any(isinstance(each, ast.Name) and each.id == name for each in ast.walk(node))


@reads
def all_counted(source: Source) -> Iterator[Pattern]:
    """A sum of losses that ignores some targets, divided by the number of all of them."""
    for function in source.of(*Function.__args__):
        for call in source.walk(function):
            if not isinstance(call, ast.Call) or called(call) not in _OF_CLASSES:
                continue
            options = {each.arg: each.value for each in call.keywords}
            reduction = options.get("reduction")
            if "ignore_index" not in options or len(call.args) < 2:
                continue
            if not isinstance(reduction, ast.Constant) or reduction.value != "sum":
                continue
            targets = {each.id for each in source.walk(call.args[1]) if isinstance(each, ast.Name)}
            for count in source.walk(function):
                if (
                    called(count) == "numel"
                    and isinstance(count, ast.Call)
                    and isinstance(count.func, ast.Attribute)
                    and dotted(count.func.value) in targets
                    and not isinstance(source.parent(count), ast.Compare)
                ):
                    yield source.pattern("ignored counted", count, dotted(count.func.value))
