"""Iterators over parameters that are used up before they are used again."""

import ast
from collections.abc import Iterator

from holter.scripts.reading.source.loops import LOOPS
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Pattern, Source, called

_PARAMETERS = {"parameters", "named_parameters"}
_LAZY = {"filter", "map", "chain", "zip", "enumerate"}
# Calls that do not consume an iterator, or not all of it.
_HARMLESS = {"next", "iter", "print", "type", "isinstance", "repr", "id", "tee", "islice"}
_BRANCHES = (ast.If, ast.IfExp, ast.Try, ast.Match)


@reads
def exhausted(source: Source) -> Iterator[Pattern]:
    """An iterator over parameters that several calls, or all turns of a loop, go through."""
    if source.defined & _PARAMETERS:
        return  # a class of the file may return a list
    for scope in source.scopes:
        assigned = list(source.assigned(scope))
        for name, value, statement in assigned:
            if not _is_lazy(value) or source.stores(scope, name) > 1:
                continue
            uses = [use for use in _uses(source, scope, name) if _consumes(source, use)]
            own = [use for use in uses if source.scope(use) is scope]
            again = [
                use
                for use in uses
                if any(first is not use and _precedes(source, first, use) for first in own)
            ]
            again += [use for use in uses if _repeats(source, use, statement)]
            if again:
                yield source.pattern("exhausted", again[0], name)


def _is_lazy(value: ast.expr) -> bool:
    if called(value) in _PARAMETERS:
        return True
    if called(value) in _LAZY or isinstance(value, ast.GeneratorExp):
        return any(called(node) in _PARAMETERS for node in ast.walk(value))
    return False


def _uses(source: Source, scope: ast.AST, name: str) -> list[ast.Name]:
    """Return where a scope and the functions in it read a name, in the order of lines."""
    uses = [
        node
        for node in source.walk(scope)
        if isinstance(node, ast.Name)
        and node.id == name
        and isinstance(node.ctx, ast.Load)
        and (source.scope(node) is scope or not source.stores(source.scope(node), name))
    ]
    return sorted(uses, key=lambda node: (node.lineno, node.col_offset))


def _consumes(source: Source, use: ast.Name) -> bool:
    """Whether a use goes through the iterator."""
    parent = source.parent(use)
    if isinstance(
        parent, ast.Compare | ast.BoolOp | ast.UnaryOp | ast.Attribute | ast.FormattedValue
    ):
        return False
    if isinstance(parent, ast.If | ast.IfExp | ast.Assign | ast.Return | ast.Dict | ast.Tuple):
        return False
    return called(parent or use) not in _HARMLESS


def _repeats(source: Source, use: ast.AST, statement: ast.stmt) -> bool:
    """Whether a use is in the body of a loop that the assignment is not in."""
    around = set(source.above(statement))
    node = use
    for above in source.above(use):
        if isinstance(above, LOOPS) and above not in around:
            is_head = isinstance(above, ast.For | ast.AsyncFor) and node is above.iter
            if not is_head and not _leaves(above):
                return True
        if above in around:
            return False
        node = above
    return False


def _leaves(loop: ast.AST) -> bool:
    """Whether a loop may end in its first turn."""
    return any(isinstance(node, ast.Break | ast.Return) for node in ast.walk(loop))


def _precedes(source: Source, first: ast.Name, second: ast.Name) -> bool:
    """Whether the first use runs whenever the second does: no branch is around it alone."""
    if source.scope(first) is source.scope(second) and first.lineno > second.lineno:
        return False
    if any(isinstance(above, ast.Lambda) for above in source.above(first)):
        return False
    around = {id(each) for each in source.above(second)}
    if any(isinstance(above, ast.Return) for above in source.above(first)):
        return False
    for above in source.above(first):
        if isinstance(above, _BRANCHES) and id(above) not in around:
            return False
        if isinstance(above, _BRANCHES) and _branch(source, above, first) is not _branch(
            source, above, second
        ):
            return False
    return True


def _branch(source: Source, choice: ast.AST, node: ast.AST) -> object:
    """Return the block of a choice that holds a node, by one object for each block."""
    child = node
    for above in source.above(node):
        if above is choice:
            break
        child = above
    for block in ("body", "orelse", "handlers", "cases", "finalbody"):
        held = getattr(choice, block, None)
        if held is child:
            return held
        if isinstance(held, list) and any(part is child for part in held):
            return child if block in ("handlers", "cases") else held
    return None
