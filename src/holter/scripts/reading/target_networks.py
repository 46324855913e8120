"""Target networks that are the network itself, or that nothing copies it to."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.bellman import title
from holter.scripts.reading.loops import unplaced
from holter.scripts.reading.source import Function, Pattern, Source, called, dotted

_COPYING = {"load_state_dict", "copy_", "lerp_", "mul_"}


_TARGET = re.compile(r"(^|_)(target|tgt|targ|ema|slow|teacher|momentum)(_|$|\d)|target", re.I)


_COPY = re.compile(r"sync|update|copy|hard|soft|polyak|load_state_dict|state_dict|zip", re.I)


def same_network(source: Source) -> Iterator[Pattern]:
    """`self.target = self.q`: both names are the same network."""
    for node in source.of(ast.Assign):
        if len(node.targets) != 1:
            continue
        to, value = dotted(node.targets[0]), dotted(node.value)
        if not to or not value or to == value or not _TARGET.search(to.rpartition(".")[2]):
            continue
        if _TARGET.search(value.rpartition(".")[2]) or not _is_built(source, node, value):
            continue
        if _is_synchronised(source, to, value):
            yield source.pattern("same network", node, value.rpartition(".")[2])


def _is_built(source: Source, node: ast.Assign, name: str) -> bool:
    """Whether a name is a module that the same function or class builds."""
    holder = next(
        (each for each in source.above(node) if isinstance(each, ast.ClassDef)), source.scope(node)
    )
    for each in source.walk(holder):
        is_given = isinstance(each, ast.Assign) and name in map(dotted, each.targets)
        if is_given and source.makes_module(unplaced(each.value)):  # type: ignore[attr-defined]
            return True
    return False


def _is_synchronised(source: Source, one: str, other: str) -> bool:
    """Whether the file copies the one network to the other, or gives both to such a function."""
    names = {one.rpartition(".")[2], other.rpartition(".")[2]}
    for call in source.of(ast.Call):
        if not _COPY.search(called(call)) and not _COPY.search(ast.unparse(call.func)):
            continue
        parts = {
            title(each) for each in source.walk(call) if isinstance(each, ast.Name | ast.Attribute)
        }
        if names <= parts:
            return True
    return False


def never_copied(source: Source) -> Iterator[Pattern]:
    """A function that copies weights into a target network, and that nothing calls."""
    used = {each.attr for each in source.of(ast.Attribute)} | {
        each.id for each in source.of(ast.Name) if isinstance(each.ctx, ast.Load)
    }
    for function in source.of(*Function.__args__):
        if function.name in used or function.name.startswith("__") or function.decorator_list:
            continue
        names = {
            title(each)
            for each in source.walk(function)
            if isinstance(each, ast.Name | ast.Attribute)
        }
        copies = [call for call in source.walk(function) if isinstance(call, ast.Call)
                  and called(call) in ("load_state_dict", "copy_", "lerp_")]  # fmt: skip
        is_copy = (
            any(isinstance(each.func, ast.Attribute) for each in copies) and len(function.body) <= 4
        )
        if is_copy and any(re.search(r"target|tgt|targ(_|$)", name) for name in names) and not (
            _is_copied_elsewhere(source, function)
        ):  # fmt: skip
            body = next(
                (each for each in source.above(function) if isinstance(each, ast.ClassDef)), None
            )
            is_made = body is not None and any(
                called(call) == body.name for call in source.of(ast.Call)
            )
            if is_made or (body is None and source.is_script):
                yield source.pattern("target never copied", function, function.name)


def _is_copied_elsewhere(source: Source, function: Function) -> bool:
    """Whether weights are copied in a loop, or in another function that is no constructor."""
    for call in source.of(ast.Call):
        scope = source.scope(call)
        if called(call) not in _COPYING or scope is function:
            continue
        in_loop = any(isinstance(each, ast.For | ast.While) for each in source.above(call))
        if in_loop or getattr(scope, "name", "__init__") != "__init__":
            return True
    return False
