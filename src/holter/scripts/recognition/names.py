"""What a piece of source reads and writes, as dotted names: `x`, `self.loss`."""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

Names = set[str]


@dataclass(frozen=True, slots=True)
class Written:
    """A name that a statement writes; not `whole` where it changes something inside of it."""

    name: str
    whole: bool


def root(name: str) -> str:
    """The variable a dotted name begins with."""
    return name.partition(".")[0]


def touch(one: str, other: str) -> bool:
    """Whether two names are the same thing, or one a part of the other."""
    return one == other or one.startswith(f"{other}.") or other.startswith(f"{one}.")


def any_touch(name: str, others: Iterable[str]) -> bool:
    """Whether `name` touches any of `others`."""
    return any(touch(name, other) for other in others)


def dotted(node: ast.AST) -> str | None:
    """`self.model` of such an expression; None of any other."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = dotted(node.value)
        return None if before is None else f"{before}.{node.attr}"
    return None


def base(node: ast.AST) -> str | None:
    """The longest dotted name that an expression begins with: `out.loss` of `out.loss[0].sum()`."""
    while dotted(node) is None:
        if isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
            node = node.value
        elif isinstance(node, ast.Call):
            node = node.func
        else:
            return None
    return dotted(node)


def reads(node: ast.AST) -> Names:
    """The names an expression reads; of a method call, the object it is called on."""
    found = set(_reads(node))
    bound = {
        each.id
        for part in ast.walk(node)
        if isinstance(part, ast.comprehension)
        for each in ast.walk(part.target)
        if isinstance(each, ast.Name)
    }
    bound |= {
        argument.arg
        for part in ast.walk(node)
        if isinstance(part, ast.Lambda)
        for argument in (*part.args.posonlyargs, *part.args.args, *part.args.kwonlyargs)
    }
    return {each for each in found if root(each) not in bound}


def _reads(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        yield from _reads(node.func.value)
        for part in (*node.args, *node.keywords):
            yield from _reads(part)
        return
    name = dotted(node)
    if name is not None:
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
            yield name
        elif isinstance(node, ast.Attribute):  # `a.b = 1` reads `a`
            yield from _reads_stored(node)
        return
    for child in ast.iter_child_nodes(node):
        yield from _reads(child)


def _reads_stored(node: ast.Attribute) -> Iterator[str]:
    before = dotted(node.value)
    if before is not None:
        yield before


def targets(node: ast.expr) -> Iterator[Written]:
    """What an assignment to `node` writes."""
    if isinstance(node, ast.Tuple | ast.List):
        for elt in node.elts:
            yield from targets(elt)
    elif isinstance(node, ast.Starred):
        yield from targets(node.value)
    elif (name := dotted(node)) is not None:
        yield Written(name, whole=True)
    elif (name := base(node)) is not None:
        yield Written(name, whole=False)


def walrus(node: ast.AST) -> Iterator[Written]:
    """What assignment expressions inside of an expression write."""
    for part in ast.walk(node):
        if isinstance(part, ast.NamedExpr):
            yield Written(part.target.id, whole=True)


def writes(statement: ast.stmt) -> list[Written]:
    """All that a statement writes, whatever it is nested in; calls on objects not counted."""
    found: list[Written] = []
    for part in ast.walk(statement):
        if isinstance(part, ast.Assign):
            for target in part.targets:
                found += targets(target)
        elif isinstance(part, ast.AnnAssign | ast.AugAssign | ast.For | ast.AsyncFor):
            found += targets(part.target)
        elif isinstance(part, ast.withitem) and part.optional_vars is not None:
            found += targets(part.optional_vars)
        elif isinstance(part, ast.NamedExpr):
            found.append(Written(part.target.id, whole=True))
        elif isinstance(part, ast.FunctionDef | ast.ClassDef):
            found.append(Written(part.name, whole=True))
        elif isinstance(part, ast.Import | ast.ImportFrom):
            found += [Written(root(name.asname or name.name), whole=True) for name in part.names]
        elif isinstance(part, ast.ExceptHandler) and part.name is not None:
            found.append(Written(part.name, whole=True))
    return found


def called_on(statement: ast.stmt) -> str | None:
    """Of a statement that is nothing but `a.b.method(...)`: the object the method belongs to."""
    if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)):
        return None
    function = statement.value.func
    return base(function.value) if isinstance(function, ast.Attribute) else None
