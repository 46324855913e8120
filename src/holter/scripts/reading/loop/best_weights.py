"""Weights that are kept by reference, so that later steps change them."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.loop.best_scores import key_of
from holter.scripts.reading.source.loops import LOOPS, outer_loops, owner_of, reached, trains
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Function, Pattern, Source, called, dotted

_KEPT = re.compile(r"best|state|weights|snapshot|checkpoint|ckpt|backup|saved|params", re.I)


@reads
def aliased(source: Source) -> Iterator[Pattern]:
    """`best_state = model.state_dict()`, which later steps change, loaded in the end."""
    for node in source.of(ast.Assign):
        for target, value in _pairs(node):
            name = key_of(target)
            if not _KEPT.search(name) or not _is_repeated(source, node):
                continue
            model = _alias(source, value)
            if model and _is_restored(source, node, name) and not _is_rebuilt(source, node, model):
                yield source.pattern("weights by reference", node, name)


def _pairs(node: ast.Assign) -> Iterator[tuple[ast.expr, ast.expr]]:
    for target in node.targets:
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            yield from zip(target.elts, node.value.elts, strict=False)
        elif isinstance(node.value, ast.Dict) and dotted(target):
            for key, value in zip(node.value.keys, node.value.values, strict=True):
                if isinstance(key, ast.Constant):
                    entry = ast.Subscript(target, key, ast.Store())
                    yield entry, value
        else:
            yield target, node.value


def _alias(source: Source, node: ast.expr) -> str:
    """Return the model whose weights an expression holds without a copy, or ""."""
    if isinstance(node, ast.Call):
        name = called(node)
        if name == "state_dict" and isinstance(node.func, ast.Attribute) and not node.args:
            return dotted(node.func.value)
        if name in ("dict", "OrderedDict") and len(node.args) == 1:
            return _alias(source, node.args[0])
        if name == "copy" and isinstance(node.func, ast.Attribute):
            return _alias(source, node.args[0] if node.args else node.func.value)
    if isinstance(node, ast.DictComp) and len(node.generators) == 1:
        over = node.generators[0].iter
        inner = owner_of(over)
        if called(over) != "items" or inner is None:
            return ""
        model = _alias(source, inner)
        value = node.value
        while True:
            if isinstance(value, ast.Attribute) and value.attr == "data":
                value = value.value
            elif called(value) == "detach" and (held := owner_of(value)) is not None:
                value = held
            else:
                break
        return model if isinstance(value, ast.Name) else ""
    return ""


def _is_repeated(source: Source, node: ast.Assign) -> bool:
    """Whether a statement is run in some turns of a loop that trains."""
    is_chosen = any(isinstance(each, ast.If) for each in source.above(node))
    return is_chosen and any(trains(source, loop) for loop in outer_loops(source, node))


def _is_restored(source: Source, node: ast.Assign, name: str) -> bool:
    """Whether weights that were kept are loaded or saved elsewhere than where they were kept."""
    block = source.parent(node)
    inside = set(source.walk(block)) if block is not None else set()
    for call in source.of(ast.Call):
        if called(call) not in ("load_state_dict", "save", "load_weights") or call in inside:
            continue
        if any(
            key_of(each).rpartition(".")[2] == name.rpartition(".")[2] for each in call.args[:1]
        ):
            return True
    returned = [each for each in source.of(ast.Return) if each.value is not None
                and source.scope(each) is source.scope(node)]  # fmt: skip
    return any(name in map(key_of, source.walk(each)) for each in returned)


def _is_rebuilt(source: Source, node: ast.Assign, model: str) -> bool:
    """Whether a loop around makes the model again, so that no later step changes it."""
    loops = [each for each in source.above(node) if isinstance(each, LOOPS)]
    copied = any(called(call) == "deepcopy" and model in ast.unparse(call)
                 for call in source.of(ast.Call))  # fmt: skip
    for loop in loops[:1]:
        for each in source.walk(loop):
            if isinstance(each, ast.Assign) and model in map(dotted, each.targets):
                return True
    return copied and not loops


@reads
def by_reference(source: Source) -> Iterator[Pattern]:
    """`best_model = model`: a second name of the model that goes on training."""
    for node in source.of(ast.Assign):
        value, name = dotted(node.value), key_of(node.targets[0])
        if len(node.targets) != 1 or not re.search(r"best_?(model|net|policy|agent|weights)", name):
            continue
        if value.rpartition(".")[2] not in source.models or not _is_repeated(source, node):
            continue
        loops = outer_loops(source, node)
        is_rebuilt = any(
            isinstance(each, ast.Assign)
            and value in {dotted(part) for target in each.targets for part in source.walk(target)}
            for loop in loops for each in reached(source, loop)
        )  # fmt: skip
        nodes: list[ast.Name | ast.Attribute] = [*source.of(ast.Name), *source.of(ast.Attribute)]
        used = [each for each in nodes if dotted(each) == name and isinstance(each.ctx, ast.Load)]
        if not is_rebuilt and used and value not in _parameters(source, node):
            yield source.pattern("weights by reference", node, name)


def _parameters(source: Source, node: ast.AST) -> set[str]:
    """Return the parameters of a function that does not train itself: its model may be fresh."""
    scope = source.scope(node)
    if not isinstance(scope, Function) or trains(source, scope):
        return set()
    return {each.arg for each in scope.args.args}
