"""Modules that `requires_grad = False` does not freeze."""

import ast
from collections.abc import Iterator

from holter.scripts.reading.source import Pattern, Source, called, dotted, of_self

_HOLDERS = ("ParameterList", "ParameterDict", "UninitializedParameter", "Buffer")
_CHILDREN = {"children", "modules", "named_children", "named_modules"}
_PARAMETERS = {"parameters", "named_parameters"}


def ineffective(source: Source) -> Iterator[Pattern]:
    """`model.backbone.requires_grad = False`, which sets an attribute that nobody reads."""
    if "requires_grad" in source.defined:
        return  # a property of the file
    flags = [
        (node, target)
        for node in source.of(ast.Assign)
        if isinstance(node, ast.Assign)
        and not (isinstance(node.value, ast.Constant) and node.value.value is True)
        for target in node.targets
        if isinstance(target, ast.Attribute) and target.attr == "requires_grad"
    ]
    if not flags:
        return
    attributes, names = _attributes(source), _names(source)
    for node, target in flags:
        held = target.value
        while isinstance(held, ast.Subscript):
            held = held.value
        is_module = (
            (isinstance(held, ast.Attribute) and held.attr in attributes)
            or (isinstance(held, ast.Name) and held.id in names)
            or _is_child(source, node, held)
        )
        if is_module and not _is_frozen_otherwise(source, held, attributes):
            yield source.pattern("ineffective freeze", node, dotted(held))


def _makes(source: Source, value: ast.expr) -> bool:
    return source.makes_module(value) and called(value) not in _HOLDERS


def _attributes(source: Source) -> set[str]:
    """Return the attributes of classes that are modules wherever they are assigned."""
    modules: set[str] = set()
    others: set[str] = set()
    for node in source.of(ast.Assign, ast.AnnAssign):
        value: ast.expr | None = node.value  # type: ignore[attr-defined]
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]  # type: ignore[attr-defined]
        of_module = value is not None and _makes(source, value)
        (modules if of_module else others).update(of_self(target) for target in targets)
    return modules - others - {""}


def _names(source: Source) -> set[str]:
    """Return the names that are modules wherever they are bound."""
    modules = {
        name
        for scope in source.scopes
        for name, value, _ in source.assigned(scope)
        if _makes(source, value)
    }
    made = {
        name: sum(
            other == name and _makes(source, value)
            for scope in source.scopes
            for other, value, _ in source.assigned(scope)
        )
        for name in modules
    }
    bound = {name: sum(source.stores(scope, name) for scope in source.scopes) for name in modules}
    return {name for name in modules if made[name] == bound[name]}


def _is_child(source: Source, node: ast.AST, held: ast.expr) -> bool:
    """Whether a name runs over modules: `for layer in net.children()`."""
    if not isinstance(held, ast.Name):
        return False
    for above in source.above(node):
        if isinstance(above, ast.For):
            bound = [each for each in ast.walk(above.target) if isinstance(each, ast.Name)]
            if bound and bound[-1].id == held.id:
                return called(above.iter) in _CHILDREN
    return False


def _is_frozen_otherwise(source: Source, held: ast.expr, attributes: set[str]) -> bool:
    """Whether a call freezes the same module, or no optimizer is given its parameters."""
    last = dotted(held).rpartition(".")[2]
    owners = set()
    for node in source.of(ast.Call):
        if not isinstance(node.func, ast.Attribute):
            continue
        owner = dotted(node.func.value).rpartition(".")[2]
        if called(node) == "requires_grad_" and owner == last:
            return True
        if called(node) in _PARAMETERS:
            above = source.parent(node)
            if isinstance(above, ast.For) and owner == last:
                return True
            owners.add(owner)
    return bool(owners) and all(owner in attributes - {last} for owner in owners)
