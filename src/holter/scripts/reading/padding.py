"""Padding that counts as labels."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source import Pattern, Source, called

_LABELS = re.compile(r"label|(^|[^a-z])tags?\b|target|(^|_)ys?$", re.I)
_FILLING = {"masked_fill", "masked_fill_", "where", "full", "full_like", "new_full", "fill_"}
_Constants = dict[str, float]


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
