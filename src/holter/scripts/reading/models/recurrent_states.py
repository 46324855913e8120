"""States of recurrent layers and of encoders: which are joined, ignored, or not handed on."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.expressions import number, whole
from holter.scripts.reading.source.layouts import RECURRENT
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Function, Pattern, Source, called, dotted, of_self

# Not `h0`, which says that it is the initial state.
_STATE = re.compile(r"^(h|c|hx|cx|hidden|state|memory_state|carry|hc)[1-9]?$", re.I)
_TIME = re.compile(r"^(t|tt|time|timestep|time_step|step)$")
_TRAINING = {"backward", "zero_grad"}
_JOINS = {"cat", "concat", "concatenate", "hstack", "stack"}
_LIKE = re.compile(r"^(zeros|ones|empty|rand|randn|full)_like$|^new_(zeros|ones|empty|full)$")
_SHAPES = {"shape", "size", "device", "dtype", "new_zeros", "new_ones", "new_empty", "new_full",
           "dim", "ndim", "numel"}  # fmt: skip
_LENGTHS = re.compile(r"^(\w+_)?(len|lens|length|lengths|seq_?lens?)(_\w+)?$", re.I)


@reads
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


class _States(dict[str, tuple[str, ast.Assign]]):
    """Names of final states in a function, with their layer and where they are made."""


def _final(source: Source, function: ast.AST) -> _States:
    found = _States()
    for node in source.walk(function):
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
            continue
        layer, target = of_self(node.value.func), node.targets[0]
        made = source.named(layer) if layer else ()
        if len(made) != 1 or called(made[0]) not in RECURRENT:
            continue
        if isinstance(target, ast.Tuple) and len(target.elts) == 2:
            state = target.elts[1]
            state = state.elts[0] if isinstance(state, ast.Tuple) and state.elts else state
            if isinstance(state, ast.Name):
                found[state.id] = (layer, node)
    return found


@reads
def joined_states(source: Source) -> Iterator[Pattern]:
    """`cat([h[-1], h[-1]], 1)` of a bidirectional layer, or `h[0]` and `h[1]` of several."""
    for function in source.of(*Function.__args__):
        states = _final(source, function)
        for call in source.walk(function) if states else ():
            if not isinstance(call, ast.Call) or called(call) not in _JOINS or not call.args:
                continue
            parts = call.args[0]
            if not isinstance(parts, ast.Tuple | ast.List) or len(parts.elts) != 2:
                continue
            taken = [_element(each) for each in parts.elts]
            if None in taken or len({name for name, _ in taken if name}) != 1:  # type: ignore[misc]
                continue
            name, places = taken[0][0], [place for _, place in taken]  # type: ignore[index,misc]
            if name not in states:
                continue
            layer = source.named(states[name][0])[0]
            options = {each.arg: each.value for each in layer.keywords}  # type: ignore[attr-defined]
            depth = options.get("num_layers")
            both = getattr(options.get("bidirectional"), "value", None) is True
            layers = 1.0 if depth is None else number(source, depth)
            if not both or layers is None or len(getattr(layer, "args", ())) > 2:
                continue
            rows = [int(each) % int(2 * layers) for each in places if each is not None]
            last = {2 * layers - 2, 2 * layers - 1}
            if len(set(rows)) == 1:
                yield source.pattern("same state twice", call, name)
            elif set(rows) != last and layers > 1 and {each // 2 for each in rows} != {layers - 1}:
                yield source.pattern("state of a lower layer", call, name)


def _element(value: ast.expr) -> tuple[str, int] | None:
    """Return the name and the place of `h[-1]`, or of `h[-1, :, :]`."""
    if not isinstance(value, ast.Subscript) or not isinstance(value.value, ast.Name):
        return None
    parts = value.slice.elts if isinstance(value.slice, ast.Tuple) else [value.slice]
    place = whole(parts[0])
    if place is None or any(ast.unparse(each) != ":" for each in parts[1:]):
        return None
    return value.value.id, place


@reads
def ignored_encoder(source: Source) -> Iterator[Pattern]:
    """`_, h = self.encoder(x)`, then `zeros_like(h)`: what the encoder returns is never used."""
    for body in source.module_classes.values():
        for function in body.body:
            if not isinstance(function, Function) or function.name not in ("forward", "encode"):
                continue
            for node in source.walk(function):
                if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
                    continue
                layer = of_self(node.value.func)
                layers = source.named(layer) if layer else ()
                if len(layers) != 1 or not source.makes_module(layers[0]):
                    continue
                names = [each.id for each in ast.walk(node.targets[0])
                         if isinstance(each, ast.Name)]  # fmt: skip
                if names and _is_only_measured(source, function, node, names):
                    yield source.pattern("ignored encoder", node, layer)


def _is_only_measured(
    source: Source, function: ast.AST, made: ast.Assign, names: list[str]
) -> bool:
    """Whether names are read for their shape alone, before they are bound again."""
    measured = False
    for name in set(names):
        again = [each for each in source.bindings(function, name) if _at(each) > _at(made)]
        following = {source.parent(each) for each in (made, *again[:1])}
        if following != {function}:
            return False
        own = set(source.walk(again[0])) if again else set()
        end = min(map(_at, again), default=(10**9, 0))
        for node in source.walk(function):
            if not isinstance(node, ast.Name) or node.id != name:
                continue
            is_between = _at(made) < _at(node) < end and node not in source.walk(made)
            if not isinstance(node.ctx, ast.Load) or not (is_between or node in own):
                continue
            if not _is_measure(source, node):
                return False
            measured = True
    return measured


def _at(node: ast.stmt | ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _is_measure(source: Source, node: ast.AST) -> bool:
    """Whether an expression only asks for the shape of a tensor: `zeros_like(h[0])`."""
    above = source.parent(node)
    while isinstance(above, ast.Subscript) and above.value is node:
        node, above = above, source.parent(above)
    if isinstance(above, ast.Attribute):
        return above.attr in _SHAPES
    return isinstance(above, ast.Call) and bool(_LIKE.match(called(above))) and above.args[:1] == [
        node
    ]  # fmt: skip


@reads
def state_of_padding(source: Source) -> Iterator[Pattern]:
    """`_, (h, _) = self.lstm(e)` of a batch padded on the right, whose lengths are not used."""
    text = source.code(source.tree)
    if not re.search(r"pad_sequence\(|\bpadding_value|padding_idx|<pad>|\bPAD\b", text):
        return
    if re.search(r"pad_left|left_pad|padding_side|\.flip\(|\[::-1\]", text):
        return
    for body in source.module_classes.values():
        for function in body.body:
            if not isinstance(function, Function) or function.name != "forward":
                continue
            read = {node.id for node in source.walk(function) if isinstance(node, ast.Name)}
            unused = [each.arg for each in function.args.args
                      if _LENGTHS.match(each.arg) and each.arg not in read]  # fmt: skip
            code = source.code(function)
            if not unused or re.search(r"mask|pack|gather", code):
                continue
            for name, (_, made) in _final(source, function).items():
                uses = [node for node in source.walk(function) if isinstance(node, ast.Name)
                        and node.id == name and isinstance(node.ctx, ast.Load)]  # fmt: skip
                if uses and not name.startswith("__"):
                    yield source.pattern("state after padding", made, name)
