"""Origins: what a name stands for at its place, through assignments and functions of the file."""

import ast
from collections.abc import Iterator
from typing import NamedTuple

from holter.scripts.reading.source.expressions import HOMES, tensor_of
from holter.scripts.reading.source.tree import Function, Source, called, dotted, parameters_of

_JOINING = {"stack", "cat", "concat", "sum"}


class Frame(NamedTuple):
    """A function that a call entered, and the frame of the call."""

    scope: ast.AST
    call: ast.Call | None = None
    above: "Frame | None" = None


class Origin(NamedTuple):
    """An expression that a name stands for, or a part of it if the name is a sum."""

    node: ast.expr
    frame: Frame
    sign: int = 1


def origins(source: Source, name: ast.Name, frame: Frame) -> Iterator[Origin]:
    """Yield the values that a name may have at its place; none if they are not known."""
    around = {name, *source.above(name)}
    bound = [node for node in source.bindings(frame.scope, name.id)
             if node not in around and (node.lineno, node.col_offset)
             < (name.lineno, name.col_offset)]  # fmt: skip
    # What was bound before a plain assignment on the same path is lost.
    certain = [node for node in bound if source.parent(node) in around
               and not isinstance(node, ast.AugAssign)
               and not _is_other_branch(source, node, around)]  # fmt: skip
    if certain:
        bound = [node for node in bound if node.lineno >= certain[-1].lineno]
    elif name.id in parameters_of(frame.scope):
        given = _argument(source, name.id, frame)
        if given is None:
            return
        yield given
    elif not bound and frame.scope is not source.tree:
        of_module = source.bindings(source.tree, name.id)
        if len(of_module) == 1 and isinstance(of_module[0], ast.Assign):
            yield from _given(source, of_module[0], name.id, Frame(source.tree))
        return
    signs = {ast.Add: 1, ast.Sub: -1}
    if any(isinstance(node, ast.AugAssign) and type(node.op) not in signs for node in bound):
        return
    for node in bound:
        if isinstance(node, ast.AugAssign):
            yield Origin(node.value, frame, signs[type(node.op)])
        else:
            yield from _given(source, node, name.id, frame)


def _is_other_branch(source: Source, node: ast.stmt, around: set[ast.AST]) -> bool:
    """Whether a statement is in the one branch of an `if`, and a name in the other."""
    holder = source.parent(node)
    if not isinstance(holder, ast.If):
        return False
    return any(part in around for part in holder.body) != (node in holder.body)


def _given(
    source: Source, node: ast.Assign | ast.AnnAssign, name: str, frame: Frame
) -> Iterator[Origin]:
    """Yield what an assignment gives to a name, of a tuple its element."""
    value = node.value
    for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
        if isinstance(target, ast.Name) and target.id == name and value is not None:
            yield Origin(value, frame)
        if not isinstance(target, ast.Tuple | ast.List):
            continue
        origin = returned(source, value, frame) if isinstance(value, ast.Call) else None
        whole, where = (origin.node, origin.frame) if origin is not None else (value, frame)
        if isinstance(whole, ast.Tuple | ast.List) and len(whole.elts) == len(target.elts):
            for part, each in zip(target.elts, whole.elts, strict=True):
                if isinstance(part, ast.Name) and part.id == name:
                    yield Origin(each, where)


def _argument(source: Source, name: str, frame: Frame) -> Origin | None:
    """Return what the call of a frame gives to a parameter."""
    if frame.call is None or frame.above is None:
        return None
    for keyword in frame.call.keywords:
        if keyword.arg == name:
            return Origin(keyword.value, frame.above)
    place = parameters_of(frame.scope).index(name)
    place -= isinstance(source.parent(frame.scope), ast.ClassDef)
    if not 0 <= place < len(frame.call.args):
        return None
    given = frame.call.args[place]
    return None if isinstance(given, ast.Starred) else Origin(given, frame.above)


def returned(source: Source, call: ast.Call, frame: Frame) -> Origin | None:
    """Return what a call of a function of the file gives back, if it has one return."""
    home = dotted(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    if home in HOMES or _is_entered(call, frame):
        return None
    found = [each for each in source.of(ast.FunctionDef) if each.name == called(call)]
    if not found and isinstance(call.func, ast.Name):
        found = _forward(source, call.func.id)
    if len(found) != 1:
        return None
    values = [node.value for node in source.of(ast.Return) if source.scope(node) is found[0]]
    is_generator = any(source.scope(node) is found[0] for node in source.of(ast.Yield))
    if len(values) != 1 or values[0] is None or is_generator:
        return None
    return Origin(values[0], Frame(found[0], call, frame))


def _is_entered(call: ast.Call, frame: Frame | None) -> bool:
    while frame is not None:
        if frame.call is call:
            return True
        frame = frame.above
    return False


def _forward(source: Source, name: str) -> list[ast.FunctionDef]:
    """Return the `forward` of the model of a name."""
    made = {called(value) for scope in source.scopes for other, value, _ in source.assigned(scope)
            if other == name}  # fmt: skip
    body = source.module_classes.get(made.pop()) if len(made) == 1 else None
    return [each for each in (body.body if body is not None else ())
            if isinstance(each, ast.FunctionDef) and each.name == "forward"]  # fmt: skip


def collected(source: Source, node: ast.expr, frame: Frame) -> list[ast.expr]:
    """Return what a list was given that a call joins: `torch.stack(losses)`."""
    joined = tensor_of(node) if isinstance(node, ast.Call) and called(node) in _JOINING else None
    if not isinstance(joined, ast.Name):
        return []
    return [call.args[0] for call in source.of(ast.Call) if call.args
            and dotted(call.func) == f"{joined.id}.append"
            and source.scope(call) is frame.scope]  # fmt: skip


def passed(source: Source, scope: ast.AST, name: str) -> Iterator[ast.expr]:
    """Yield what the calls of a function, or of a module of the file, give to a parameter."""
    if not isinstance(scope, Function):
        return
    body = source.parent(scope)
    names = {scope.name}
    place = parameters_of(scope).index(name)
    if isinstance(body, ast.ClassDef):
        place -= 1
        if scope.name in ("forward", "__call__"):
            names = set(_instances(source, body.name)) - {""}
        elif scope.name == "__init__":
            names = {body.name}
    for call in source.of(ast.Call):
        if called(call) not in names:
            continue
        if any(isinstance(each, ast.Starred) for each in call.args):
            continue
        values = [each.value for each in call.keywords if each.arg == name]
        yield from (*values, *call.args[place : place + 1])


def _instances(source: Source, name: str) -> Iterator[str]:
    """Yield the last parts of the names that modules of a class are kept under."""
    for node in source.of(ast.Assign):
        if called(node.value) == name:
            yield from (dotted(target).rpartition(".")[2] for target in node.targets)
