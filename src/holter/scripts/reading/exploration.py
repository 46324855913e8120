"""Schedules of exploration that run in the wrong direction."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.bellman import factors, title
from holter.scripts.reading.origins import Frame, origins
from holter.scripts.reading.source import Pattern, Source, called
from holter.scripts.reading.values import number

_DEEPEST = 8
_STEP = re.compile(r"(^|_)(step|steps_done|t|frame|frame_idx|episode|iteration|i|it)$")


def reversed_exploration(source: Source) -> Iterator[Pattern]:
    """`start + frac * (end - start)` whose fraction falls: exploration rises to its start."""
    for node in source.of(ast.BinOp):
        if not isinstance(node.op, ast.Add):
            continue
        for first, rest in ((node.left, node.right), (node.right, node.left)):
            product = factors(rest)
            if len(product) != 2 or not title(first):
                continue
            for span, share in (product, product[::-1]):
                if not isinstance(span, ast.BinOp) or not isinstance(span.op, ast.Sub):
                    continue
                other = span.left if title(span.right) == title(first) else None
                if other is None:
                    continue
                names = (_age(title(first)), _age(title(other)))
                falls = _falls(source, share, Frame(source.scope(node)))
                if names == ("start", "end") and falls is True:
                    yield source.pattern("reversed exploration", node, title(first))
                if names == ("end", "start") and falls is False:
                    yield source.pattern("reversed exploration", node, title(first))


_EXPLORING = re.compile(r"eps|explor|temperature|noise", re.I)


def _age(name: str) -> str:
    if not _EXPLORING.search(name):
        return ""
    if re.search(r"start|init|begin|max", name, re.I):
        return "start"
    return "end" if re.search(r"end|final|min|stop|last", name, re.I) else ""


def _falls(source: Source, node: ast.expr, frame: Frame, depth: int = 0) -> bool | None:
    """Whether a share falls with the steps; None if that is not known."""
    if depth > _DEEPEST:
        return None
    if isinstance(node, ast.Name):
        found = {_falls(source, value, where, depth + 1)
                 for value, where, _ in origins(source, node, frame)}  # fmt: skip
        if found:
            return found.pop() if len(found) == 1 else None
        return False if _STEP.search(node.id) else None
    if isinstance(node, ast.Attribute):
        return False if re.search(r"(^|_)(steps?|steps_done|t|frames?)$", node.attr) else None
    if isinstance(node, ast.Call):
        return _of_call(source, node, frame, depth)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _falls(source, node.operand, frame, depth + 1)
        return None if inner is None else not inner
    return _of_operation(source, node, frame, depth) if isinstance(node, ast.BinOp) else None


def _of_operation(source: Source, node: ast.BinOp, frame: Frame, depth: int) -> bool | None:
    if isinstance(node.op, ast.Div | ast.FloorDiv):
        return _falls(source, node.left, frame, depth + 1)
    if isinstance(node.op, ast.Sub) and _fixed(source, node.left) is not None:
        inner = _falls(source, node.right, frame, depth + 1)
        return None if inner is None else not inner
    if isinstance(node.op, ast.Mult):
        for one, other in ((node.left, node.right), (node.right, node.left)):
            if (value := _fixed(source, one)) is not None and value > 0:
                return _falls(source, other, frame, depth + 1)
    return None


def _of_call(source: Source, node: ast.Call, frame: Frame, depth: int) -> bool | None:
    if called(node) in ("min", "max", "clip", "minimum", "maximum"):
        kinds = [_falls(source, each, frame, depth + 1) for each in node.args
                 if _fixed(source, each) is None]  # fmt: skip
        return kinds[0] if len(kinds) == 1 else None
    if called(node) == "exp" and len(node.args) == 1:
        return _falls(source, node.args[0], frame, depth + 1)
    return None


def _fixed(source: Source, node: ast.expr) -> float | None:
    """Return the number that an expression is at every step."""
    names = [each.id for each in source.walk(node) if isinstance(each, ast.Name)]
    return None if any(map(_STEP.search, names)) else number(source, node)
