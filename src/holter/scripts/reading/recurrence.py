"""States that a loop does not hand on."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source import Pattern, Source, called, dotted

# Not `h0`, which says that it is the initial state.
_STATE = re.compile(r"^(h|c|hx|cx|hidden|state|memory_state|carry|hc)[1-9]?$", re.I)
_TIME = re.compile(r"^(t|tt|time|timestep|time_step|step)$")
_TRAINING = {"backward", "zero_grad"}


def dropped(source: Source) -> Iterator[Pattern]:
    """`out, _ = cell(x[t], h)` in a loop over time that never gives `h` another value."""
    for loop in source.of(ast.For, ast.While):
        body = [node for part in loop.body for node in source.walk(part)]  # type: ignore[attr-defined]
        if any(called(node) in _TRAINING for node in body):
            continue  # a loop over batches
        for node in body:
            if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
                continue
            target = node.targets[0]
            if not isinstance(target, ast.Tuple) or len(target.elts) != 2:
                continue
            out, last = target.elts
            if not isinstance(last, ast.Name) or last.id != "_" or not node.value.args:
                continue
            first, *others = node.value.args
            lost = [name for name in _states(others) if not _changes(source, loop, name)]
            if lost and (_at_a_time(source, loop, first) or _is_fed_back(body, out, first)):
                yield source.pattern("dropped state", node, lost[0])


def _states(arguments: list[ast.expr]) -> list[str]:
    parts = [part for each in arguments
             for part in (each.elts if isinstance(each, ast.Tuple) else [each])]  # fmt: skip
    return [each.id for each in parts if isinstance(each, ast.Name) and _STATE.match(each.id)]


def _changes(source: Source, loop: ast.AST, name: str) -> bool:
    """Whether a loop gives a state another value, or the state is an object that changes itself."""
    for node in source.walk(loop):
        if isinstance(node, ast.Name) and node.id == name:
            if isinstance(node.ctx, ast.Store):
                return True
            above = source.parent(node)
            if isinstance(above, ast.Subscript) and isinstance(above.ctx, ast.Store):
                return True
            if isinstance(above, ast.Attribute) and called(source.parent(above) or above):
                return True
    made = [value for other, value, _ in source.assigned(source.scope(loop)) if other == name]
    return any(
        isinstance(value, ast.Dict | ast.List) or called(value)[:1].isupper() for value in made
    )


def _at_a_time(source: Source, loop: ast.AST, first: ast.expr) -> bool:
    """Whether an argument is one time step: `x[:, t]`, or `x[t]` in a method of a module."""
    if not isinstance(first, ast.Subscript) or not isinstance(loop, ast.For):
        return False
    turns = {node.id for node in source.walk(loop.target) if isinstance(node, ast.Name)}
    parts = first.slice.elts if isinstance(first.slice, ast.Tuple) else [first.slice]
    axes = [axis for axis, part in enumerate(parts)
            if any(dotted(node) in turns for node in source.walk(part))]  # fmt: skip
    if not axes:
        return False
    if axes[0] > 0:
        return True
    if isinstance(parts[0], ast.Slice):
        return False  # `x[i : i + size]` is a batch
    return any(_TIME.match(name) for name in turns) or any(
        above in source.module_classes.values() for above in source.above(loop)
    )


def _is_fed_back(body: list[ast.AST], out: ast.expr, first: ast.expr) -> bool:
    """Whether the loop computes an argument from what the call returned."""
    known = {dotted(out)} - {""}
    for _ in range(3):
        for node in body:
            if isinstance(node, ast.Assign) and any(
                isinstance(each, ast.Name) and each.id in known for each in ast.walk(node.value)
            ):
                known |= {dotted(target) for target in node.targets} - {""}
    return isinstance(first, ast.Name) and first.id in known
