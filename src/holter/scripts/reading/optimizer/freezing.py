"""Modules that `requires_grad = False` does not freeze."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Pattern, Source, called, dotted, of_self

_HOLDERS = ("ParameterList", "ParameterDict", "UninitializedParameter", "Buffer")
_CHILDREN = {"children", "modules", "named_children", "named_modules"}
_PARAMETERS = {"parameters", "named_parameters"}
# What may freeze parameters elsewhere.
_ELSEWHERE = re.compile(r"peft|from_pretrained|freez|frozen|inference_mode|import \*", re.I)


@reads
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
            bound = [each for each in source.walk(above.target) if isinstance(each, ast.Name)]
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


@reads
def nothing_frozen(source: Source) -> Iterator[Pattern]:
    """`if "lora" in name: p.requires_grad = True`, where nothing has set it to False."""
    if not _chooses_trainable(source) or _ELSEWHERE.search(_code(source)):
        return
    found = []
    for node, value in _flags(source):
        if not isinstance(value, ast.Constant) or value.value is not True:
            return  # something is frozen, or may be
        above = next((each for each in source.above(node) if isinstance(each, ast.For)), None)
        choice = next((each for each in source.above(node) if isinstance(each, ast.If)), None)
        is_over_own = above is not None and any(
            called(each) in _PARAMETERS
            and isinstance(each, ast.Call)
            and isinstance(each.func, ast.Attribute)
            and _is_built_here(source, node, dotted(each.func.value))
            for each in source.walk(above.iter)
        )
        if is_over_own and choice is not None and not choice.orelse:
            assert above is not None
            found.append(above)
    for node in found[:1]:
        yield source.pattern("nothing frozen", node, "requires_grad")


def _is_built_here(source: Source, node: ast.AST, name: str) -> bool:
    """Whether a name is a module that this scope builds; a function elsewhere may freeze it."""
    scope = source.scope(node)
    made = [value for other, value, _ in source.assigned(scope) if other == name]
    imported = {each.asname or each.name for node in source.of(ast.ImportFrom)
                for each in node.names}  # fmt: skip
    is_handed_out = any(
        isinstance(call.func, ast.Name)
        and call.func.id in imported
        and any(dotted(each) == name for each in call.args)
        for call in source.of(ast.Call)
    )
    is_built = len(made) == source.stores(scope, name) == 1 and _makes(source, made[0])
    return is_built and not is_handed_out


def _flags(source: Source) -> Iterator[tuple[ast.AST, ast.expr]]:
    """Yield where `requires_grad` is set in whatever way, and to what."""
    for node in source.of(ast.Assign):
        if any(isinstance(each, ast.Attribute) and each.attr == "requires_grad"
               for each in node.targets):  # fmt: skip
            yield node, node.value
    for call in source.of(ast.Call):
        if called(call) == "requires_grad_":
            yield call, call.args[0] if call.args else ast.Constant(not call.keywords)
        elif called(call) == "setattr" and "requires_grad" in ast.unparse(call):
            yield call, call
        for keyword in call.keywords:
            if keyword.arg == "requires_grad":
                is_off = isinstance(keyword.value, ast.Constant) and keyword.value.value is False
                if is_off or not isinstance(keyword.value, ast.Constant):
                    yield call, keyword.value


def _chooses_trainable(source: Source) -> bool:
    """Whether an optimizer is given the parameters that require a gradient, and no others."""
    return any(
        isinstance(node, ast.comprehension)
        and any(called(each) in _PARAMETERS for each in source.walk(node.iter))
        and any(
            isinstance(each, ast.Attribute) and each.attr == "requires_grad"
            for test in node.ifs
            for each in source.walk(test)
        )
        for node in source.walk(source.tree)
    ) or any(
        called(call) == "filter" and "requires_grad" in ast.unparse(call)
        for call in source.of(ast.Call)
    )


def _code(source: Source) -> str:
    """The names of a file: not its comments and texts."""
    names = {node.id for node in source.walk(source.tree) if isinstance(node, ast.Name)}
    names |= {node.attr for node in source.walk(source.tree) if isinstance(node, ast.Attribute)}
    names |= {node.name for node in source.walk(source.tree) if isinstance(node, ast.alias)}
    names |= {node.module or "" for node in source.of(ast.ImportFrom)}
    return " ".join(names) + (" import *" if "*" in names else "")
