"""Names and columns that the targets of a file are made of."""

import ast
import re

from holter.scripts.reading.source.tree import Source, called, dotted

_TARGET = re.compile(
    r"^(y|ys|y_?(true|all|train|tr)|labels?|targets?|clicks?|clicked|ratings?|stars|churn(ed)?"
    r"|is_\w+|price|rent|sales|outcome|default(ed)?|converted|bought|survived|score)$",
    re.I,
)
_IS_TARGET = re.compile(r"^(y|ys|target|targets|labels?|truth)(_\w+)?$|_(y|target|labels?)$", re.I)


def is_target(source: Source, node: ast.expr) -> bool:
    """Whether an expression is, by a name or by a column in it, what is to be predicted."""
    words = {dotted(each).rpartition(".")[2] for each in ast.walk(node)}
    words |= {
        each.value
        for each in ast.walk(node)
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    }
    words -= _inputs(source)
    return any(_TARGET.match(word) or _IS_TARGET.match(word) for word in words if word) or bool(
        words & target_columns(source)
    )


def _inputs(source: Source) -> set[str]:
    """Return the columns that stand in a list with others, which are inputs."""
    found: set[str] = set()
    lists: list[ast.List | ast.Tuple] = [*source.of(ast.List), *source.of(ast.Tuple)]
    for node in lists:
        words = [
            each.value
            for each in node.elts
            if isinstance(each, ast.Constant) and isinstance(each.value, str)
        ]
        if len(words) > 1:
            found |= set(words)
    return found


def target_columns(source: Source) -> set[str]:
    """Return the columns and names that the targets of the file are made of."""
    found: set[str] = set()
    for node in source.of(ast.Assign):
        name = dotted(node.targets[0]).rpartition(".")[2]
        if name.isupper() and re.match(r"(TARGET|LABEL)(_COL(UMN)?)?$", name):
            found |= strings_of(node.value)
        elif _IS_TARGET.match(name):
            for part in source.walk(node.value):
                if isinstance(part, ast.Subscript):
                    found |= strings_of(part.slice)
    for call in source.of(ast.Call):
        if called(call) in ("tensor", "as_tensor", "from_numpy") and call.args:
            columns = [
                strings_of(part.slice)
                for part in source.walk(call.args[0])
                if isinstance(part, ast.Subscript)
            ]
            if len(columns) == 1:
                found |= columns[0]
    return found - _inputs(source)


def strings_of(node: ast.AST) -> set[str]:
    """Return the string that a node is, as a set."""
    return {node.value} if isinstance(node, ast.Constant) and isinstance(node.value, str) else set()
