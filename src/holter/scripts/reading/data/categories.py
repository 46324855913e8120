"""Codes of categories that collide, and groups of rows that are cut at the wrong place."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.expressions import resolved
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Pattern, Source, called, dotted

_WHERE = {"flatnonzero", "where", "nonzero", "argwhere"}


@reads
def early_cuts(source: Source) -> Iterator[Pattern]:
    """`np.split(x, np.flatnonzero(np.diff(ids)))`: each group ends one row too early."""
    for call in source.of(ast.Call):
        if called(call) not in ("split", "tensor_split") or len(call.args) < 2:
            continue
        cuts = resolved(source, source.scope(call), call.args[1])
        if isinstance(cuts, ast.Subscript):
            cuts = cuts.value
        if called(cuts) in _WHERE and isinstance(cuts, ast.Call) and cuts.args:
            inner = resolved(source, source.scope(call), cuts.args[0])
            if isinstance(inner, ast.Compare):
                inner = inner.left if called(inner.left) == "diff" else inner
            text = ast.unparse(inner)
            is_change = isinstance(inner, ast.Compare) and re.fullmatch(
                r"(\w+)\[1:\] != \1\[:-1\]|(\w+)\[:-1\] != \2\[1:\]", text
            )
            prepends = "prepend" in text or "append" in text
            if (called(inner) == "diff" and not prepends) or is_change:
                yield source.pattern("cut too early", call, ast.unparse(cuts)[:50])


@reads
def colliding_codes(source: Source) -> Iterator[Pattern]:
    """`{v: i for i, v in enumerate(values)}` and `.map(codes).fillna(0)`: 0 is the first value."""
    for table in source.of(ast.DictComp):
        loop = table.generators[0]
        over = loop.iter
        if called(over) != "enumerate" or not isinstance(over, ast.Call) or len(over.args) != 1:
            continue
        if over.keywords or not isinstance(loop.target, ast.Tuple):
            continue
        if dotted(table.value) != dotted(loop.target.elts[0]):
            continue
        if not re.search(r"unique\(|set\(", ast.unparse(over)) or "+" in ast.unparse(over):
            continue
        statement = next(
            (each for each in source.above(table) if isinstance(each, ast.Assign)), None
        )
        name = dotted(statement.targets[0]) if statement is not None else ""
        for call in source.of(ast.Call):
            if called(call) != "fillna" or not isinstance(call.func, ast.Attribute):
                continue
            inner = call.func.value
            is_zero = call.args and getattr(call.args[0], "value", None) == 0
            if called(inner) == "map" and isinstance(inner, ast.Call) and is_zero and inner.args:
                given = inner.args[0]
                base = given.value if isinstance(given, ast.Subscript) else given
                if name and dotted(base) == name:
                    yield source.pattern("code of the first", call, name)
