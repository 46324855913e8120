"""Which statements of a step depend on a model, and which only make its data."""

import ast
from collections.abc import Sequence
from types import FunctionType, MethodType, ModuleType

from holter.scripts.recognition.kinds import (
    Namespace,
    has_graph,
    involves_model,
    is_users,
    look_up,
    method_of,
)
from holter.scripts.recognition.names import called_on, dotted, root, writes
from holter.scripts.recognition.slicing import exposed


def depends_on_model(statements: Sequence[ast.stmt], names: Namespace) -> list[bool]:
    """Which statements depend on a model, or make what those that do write into."""
    marks = [uses_model(each, names) for each in statements]
    last: dict[str, int] = {}
    for place, statement in enumerate(statements):
        last |= {root(each.name): place for each in writes(statement)}
    for name, place in last.items():
        marks[place] |= has_graph(names.get(name))
    marks[-1] = True
    while True:
        before = list(marks)
        for place, statement in enumerate(statements):
            if not marks[place]:
                marks[place] = _belongs(place, statement, statements, marks)
        if marks == before:
            return marks


def _belongs(
    place: int, statement: ast.stmt, statements: Sequence[ast.stmt], marks: Sequence[bool]
) -> bool:
    earlier = [each for each, marked in zip(statements[:place], marks, strict=False) if marked]
    written_before = {root(each.name) for other in earlier for each in writes(other)}
    if {root(each) for each in exposed([statement])} & written_before:
        return True
    own = {root(each.name) for each in writes(statement)}
    read_before = {root(each) for other in earlier for each in exposed([other])}
    if own & (written_before | read_before):
        return True
    later = [s for s, marked in zip(statements[place:], marks[place:], strict=True) if marked]
    return any(own & writes_inside(each) for each in later)


def writes_inside(statement: ast.stmt) -> set[str]:
    """Return the variables that a statement changes in place."""
    found = {root(each.name) for each in writes(statement) if not each.whole}
    for part in ast.walk(statement):
        if isinstance(part, ast.AugAssign):
            found |= {root(each.name) for each in writes(part)}
        elif isinstance(part, ast.Expr) and (receiver := called_on(part)) is not None:
            found.add(root(receiver))
    return found


def uses_model(statement: ast.stmt, names: Namespace) -> bool:
    """Whether a statement calls a model, or anything that may call one."""
    for part in ast.walk(statement):
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
            receiver = dotted(part.func.value)
            owner = None if receiver is None else look_up(receiver, names)
            method = _method(owner, part.func.attr)
            if involves_model(owner) if method is None else involves_model(method):
                return True
    return any(involves_model(look_up(each, names)) for each in _arguments(statement))


def _method(owner: object, name: str) -> FunctionType | MethodType | None:
    if isinstance(owner, ModuleType):
        found = vars(owner).get(name)
        return found if isinstance(found, FunctionType) else None
    return method_of(owner, name) if is_users(owner) else None


def _arguments(statement: ast.stmt) -> set[str]:
    """The names a statement reads, those left out that it only calls methods of."""
    owners = {
        id(part.func.value)
        for part in ast.walk(statement)
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute)
    }
    found: set[str] = set()

    def visit(node: ast.AST) -> None:
        name = dotted(node)
        if name is not None:
            if id(node) not in owners:
                found.add(name)
            return
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            visit(node.func.value)
            for each in (*node.args, *node.keywords):
                visit(each)
            return
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(statement)
    return found
