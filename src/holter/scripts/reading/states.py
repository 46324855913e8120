"""States of recurrent layers and of encoders: which are joined, ignored, or run over padding."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source import Function, Pattern, Source, called, dotted, of_self
from holter.scripts.reading.values import number, whole

_RECURRENT = {"LSTM", "GRU", "RNN"}
_JOINS = {"cat", "concat", "concatenate", "hstack", "stack"}
_LIKE = re.compile(r"^(zeros|ones|empty|rand|randn|full)_like$|^new_(zeros|ones|empty|full)$")
_SHAPES = {"shape", "size", "device", "dtype", "new_zeros", "new_ones", "new_empty", "new_full",
           "dim", "ndim", "numel"}  # fmt: skip
_LENGTHS = re.compile(r"^(\w+_)?(len|lens|length|lengths|seq_?lens?)(_\w+)?$", re.I)


class _States(dict[str, tuple[str, ast.Assign]]):
    """Names of final states in a function, with their layer and where they are made."""


def _final(source: Source, function: ast.AST) -> _States:
    found = _States()
    for node in source.walk(function):
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
            continue
        layer, target = of_self(node.value.func), node.targets[0]
        made = source.named(layer) if layer else ()
        if len(made) != 1 or called(made[0]) not in _RECURRENT:
            continue
        if isinstance(target, ast.Tuple) and len(target.elts) == 2:
            state = target.elts[1]
            state = state.elts[0] if isinstance(state, ast.Tuple) and state.elts else state
            if isinstance(state, ast.Name):
                found[state.id] = (layer, node)
    return found


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


def same_part_twice(source: Source) -> Iterator[Pattern]:
    """`torch.cat([x, x], 1)` in a forward pass that computes a skip connection and drops it."""
    for body in source.module_classes.values():
        for function in body.body:
            if not isinstance(function, Function) or function.name != "forward":
                continue
            read = [node.id for node in source.walk(function) if isinstance(node, ast.Name)
                    and isinstance(node.ctx, ast.Load)]  # fmt: skip
            for call in source.walk(function):
                if not isinstance(call, ast.Call) or called(call) not in _JOINS or not call.args:
                    continue
                parts = call.args[0]
                if not isinstance(parts, ast.Tuple | ast.List) or len(parts.elts) != 2:
                    continue
                first, second = parts.elts
                if not isinstance(first, ast.Name) or ast.unparse(first) != ast.unparse(second):
                    continue
                lost = [name for name, value, _ in source.assigned(function)
                        if isinstance(value, ast.Call) and name not in read]  # fmt: skip
                joins = [other.args[0] for other in source.walk(function)
                         if isinstance(other, ast.Call) and called(other) in _JOINS
                         and other.args and other is not call]  # fmt: skip
                skips = [each for each in joins if isinstance(each, ast.Tuple | ast.List)
                         and len({ast.unparse(part) for part in each.elts}) == 2]  # fmt: skip
                if lost or (skips and first.id in map(dotted, [
                    part for each in skips for part in ast.walk(each)
                ])) or _is_upsampled(source, function, first):  # fmt: skip
                    yield source.pattern("same part twice", call, first.id)


def _is_upsampled(source: Source, function: Function, name: ast.Name) -> bool:
    """Whether a name is a map that was made larger, to which a skip connection belongs."""
    return any(
        other == name.id
        and (called(value) == "interpolate" or re.search(r"(^|_)up", of_self(
            getattr(value, "func", value))))
        for other, value, _ in source.assigned(function)
    )  # fmt: skip


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
