"""Decoding of sequences by steps in the wrong order."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source import Function, Pattern, Source, called, dotted

_BLANK = re.compile(r"blank", re.I)
_MERGING = {"unique_consecutive", "groupby"}


def merged_late(source: Source) -> Iterator[Pattern]:
    """`ids = ids[ids != BLANK]` and then `unique_consecutive(ids)`: doubled symbols are lost."""
    for function in source.of(*Function.__args__):
        filtered: dict[str, int] = {}
        for statement in source.walk(function):
            if isinstance(statement, ast.Assign) and _is_filter(statement.value):
                for target in statement.targets:
                    filtered.setdefault(dotted(target), statement.lineno)
        for call in source.walk(function):
            if not isinstance(call, ast.Call) or called(call) not in _MERGING:
                continue
            given = call.args[0] if call.args else None
            if isinstance(call.func, ast.Attribute) and given is None:
                given = call.func.value
            if given is None:
                continue
            name = dotted(given)
            is_late = bool(name) and 0 < filtered.get(name, 0) < call.lineno
            if is_late and _is_new(source, function, name, filtered[name], call):
                yield source.pattern("late merge", call, name)
            elif _is_filter(given):
                yield source.pattern("late merge", call, ast.unparse(given))


def _is_filter(value: ast.expr) -> bool:
    """Whether an expression is something without its blanks."""
    if isinstance(value, ast.Subscript):
        return _is_not_blank(value.slice)
    if isinstance(value, ast.ListComp | ast.GeneratorExp):
        return len(value.generators) == 1 and any(
            _is_not_blank(test) for test in value.generators[0].ifs
        ) and not any(called(each) in _MERGING for each in ast.walk(value))  # fmt: skip
    return False


def _is_not_blank(test: ast.expr) -> bool:
    return (
        isinstance(test, ast.Compare)
        and isinstance(test.ops[0], ast.NotEq)
        and any(_BLANK.search(dotted(each)) for each in (test.left, *test.comparators))
    )


def _is_new(source: Source, function: ast.AST, name: str, since: int, call: ast.Call) -> bool:
    """Whether nothing else was given the name between its filter and a call."""
    between = [
        statement
        for other, value, statement in source.assigned(function)
        if other == name and since < statement.lineno < call.lineno and not _is_filter(value)
    ]
    before = [
        statement
        for other, value, statement in source.assigned(function)
        if other == name
        and statement.lineno < since
        and any(called(each) in _MERGING for each in source.walk(value))
    ]
    return not between and not before
