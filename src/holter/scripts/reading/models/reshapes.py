"""Reshapes that merge or cut axes which are not adjacent."""

import ast
import re
from collections.abc import Iterator
from math import prod

from holter.scripts.reading.source.expressions import resolved, whole
from holter.scripts.reading.source.layouts import (
    RECURRENT,
    RESHAPING,
    Layout,
    is_batch_size,
    layout,
    sizes_of,
)
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import (
    Function,
    Pattern,
    Source,
    called,
    dotted,
    names_in,
    of_self,
)

_TURNING = {"transpose", "permute", "swapaxes", "movedim", "rearrange", "t", "mT", "T", "einsum"}
_PARTS = {"chunk", "split", "unbind", "tensor_split"}
_CROSS_ENTROPY = re.compile(r"cross_entropy|nll_loss|criterion|loss_fn|loss_func", re.I)


@reads
def exchanged_by_reshape(source: Source) -> Iterator[Pattern]:
    """`B, T, C = x.shape` and then `q.view(B, heads, T, C // heads)`: T is not at its place."""
    for call in source.of(ast.Call):
        if called(call) not in RESHAPING or not isinstance(call.func, ast.Attribute):
            continue
        given = _sizes(call)
        if len(given) < 2:
            continue
        order = _order_of_sizes(source, call, given)
        places = [order.index(each) for each in given if each in order]
        if len(places) < 2 or len(set(places)) < len(places):
            continue
        is_mixed = places != sorted(places)
        # (B, heads, T, ...): T has come after a size that is not its own.
        is_late = (
            len(order) > 2
            and given[:1] == order[:1]
            and order[1] in given
            and given.index(order[1]) > 1
            and not given[1].isdigit()
        )
        if (is_mixed or is_late) and _has_kept_axes(call):
            yield source.pattern("reshaped axes", call, ast.unparse(call.func.value))


def _sizes(call: ast.Call) -> list[str]:
    parts = call.args
    if len(parts) == 1 and isinstance(parts[0], ast.Tuple | ast.List):
        parts = parts[0].elts
    return [ast.unparse(each) for each in parts]


def _order_of_sizes(source: Source, call: ast.Call, given: list[str]) -> list[str]:
    """Return the sizes of a tensor in their order: `B, T, C = x.shape`, or `x.size(0)`, ..."""
    assert isinstance(call.func, ast.Attribute)
    owners = {
        ast.unparse(node) for node in source.walk(call.func.value) if isinstance(node, ast.Name)
    }
    for owner in owners:
        sizes = [f"{owner}.shape[{axis}]" for axis in range(5)]
        if sum(each in sizes for each in given) > 1:
            return sizes
        sizes = [f"{owner}.size({axis})" for axis in range(5)]
        if sum(each in sizes for each in given) > 1:
            return sizes
    scope = source.scope(call)
    found = []
    for node in source.walk(scope):
        if not isinstance(node, ast.Assign) or source.scope(node) is not scope:
            continue
        target, value = node.targets[0], node.value
        is_shape = (isinstance(value, ast.Attribute) and value.attr == "shape") or (
            called(value) == "size" and isinstance(value, ast.Call) and not value.args
        )
        if isinstance(target, ast.Tuple) and is_shape and node.lineno < call.lineno:
            found.append((target, value))
    if len(found) != 1:
        return []
    target, value = found[0]
    shaped = value.func if isinstance(value, ast.Call) else value
    assert isinstance(shaped, ast.Attribute)
    of_what = shaped.value
    names = [ast.unparse(each) for each in target.elts]
    if len(set(names)) < len(names) or any(source.stores(scope, each) > 1 for each in names):
        return []
    return names if _comes_from(source, scope, call.func.value, ast.unparse(of_what)) else []


def _comes_from(source: Source, scope: ast.AST, value: ast.expr, owner: str) -> bool:
    """Whether a tensor is `owner`, or what layers without another order of axes made of it."""
    for _ in range(6):
        if ast.unparse(value) == owner:
            return source.stores(scope, owner) <= 1
        if isinstance(value, ast.Name):
            found = _element_of(scope, value.id)
            if found is None:
                return False
            value = found
        elif isinstance(value, ast.Call) and called(value) in _PARTS:
            assert isinstance(value.func, ast.Attribute)
            value = value.func.value
        elif isinstance(value, ast.Call) and _is_linear(source, value) and value.args:
            value = value.args[0]
        else:
            return False
    return False


def _element_of(scope: ast.AST, name: str) -> ast.expr | None:
    """Return what a name stands for, or what it is a part of; None if that is not plain."""
    found: list[ast.expr] = []
    for node in ast.walk(scope):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name) and target.id == name:
                    found.append(node.value)
                elif isinstance(target, ast.Tuple) and any(dotted(e) == name for e in target.elts):
                    found.append(_part(target, node.value, name))
        elif isinstance(node, ast.For | ast.comprehension) and dotted(node.target) == name:
            found.append(node.iter)
    rebound = [each for each in found if name in names_in(each)]
    found = [each for each in found if each not in rebound]
    if len(found) != 1:
        return None
    (value,) = found
    return value.elts[0] if isinstance(value, ast.Tuple | ast.List) and value.elts else value


def _part(target: ast.Tuple, value: ast.expr, name: str) -> ast.expr:
    if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts):
        return value.elts[[dotted(each) for each in target.elts].index(name)]
    if isinstance(value, ast.ListComp | ast.GeneratorExp):
        return value.generators[0].iter
    return value


def _is_linear(source: Source, call: ast.Call) -> bool:
    name = of_self(call.func)
    values = [node.value for node in source.of(ast.Assign)
              for target in node.targets if name and of_self(target) == name]  # fmt: skip
    return bool(values) and all(called(each) in ("Linear", "Dropout", "LayerNorm")
                                for each in values)  # fmt: skip


def _has_kept_axes(call: ast.Call) -> bool:
    """Whether nothing in the expression, or in the names that it is made of, turns axes."""
    assert isinstance(call.func, ast.Attribute)
    return not any(
        called(node) in _TURNING or (isinstance(node, ast.Attribute) and node.attr in ("T", "mT"))
        for node in ast.walk(call.func.value)
    )


@reads
def classes_by_reshape(source: Source) -> Iterator[Pattern]:
    """`cross_entropy(logits.view(B, C, -1), y)` of scores whose classes are the last axis."""
    for call in source.of(ast.Call):
        if not _CROSS_ENTROPY.search(called(call)) or len(call.args) < 2:
            continue
        scope = source.scope(call)
        given = resolved(source, scope, call.args[0])
        if called(given) not in RESHAPING or not isinstance(given, ast.Call):
            continue
        if not isinstance(given.func, ast.Attribute):
            continue
        sizes, logits = _sizes(given), given.func.value
        last = _last_layer(source, scope, logits)
        if len(sizes) == 3 and sizes[2] == "-1" and sizes[0] != "-1" and last is not None:
            if called(last) == "Linear" and _is_width(last):
                yield source.pattern("reshaped classes", given, ast.unparse(logits))
        elif len(sizes) == 2 and sizes[0] == "-1" and last is not None:
            is_picture = re.match(r"Conv(Transpose)?[23]d", called(last))
            if is_picture:
                yield source.pattern("reshaped classes", given, ast.unparse(logits))


def _is_width(layer: ast.Call) -> bool:
    """Whether a layer has as many outputs as there are classes: not classes times something."""
    width = [*layer.args[1:2], *(k.value for k in layer.keywords if k.arg == "out_features")]
    return bool(width) and not isinstance(width[0], ast.BinOp) and (whole(width[0]) != 1)


def _last_layer(source: Source, scope: ast.AST, logits: ast.expr) -> ast.Call | None:
    """Return the layer that makes the scores that a model returned, if that is plain to see."""
    value = _element_of(scope, logits.id) if isinstance(logits, ast.Name) else logits
    if isinstance(value, ast.Call):
        is_method = isinstance(value.func, ast.Attribute) and not of_self(value.func)
        if is_method or called(value) in source.defined:
            return None  # `model(x).permute(...)`
        body = _class_of(source, called(value)) or _only_model(source)
    else:
        body = _only_model(source) if value is None else None
    if body is None:
        return None
    forward = [each for each in body.body if isinstance(each, Function) and each.name == "forward"]
    returns = [node for each in forward for node in source.walk(each)
               if isinstance(node, ast.Return)]  # fmt: skip
    layers = {_layer_of(body, forward[0], node.value) for node in returns if node.value}
    return layers.pop() if len(layers) == 1 else None


def _class_of(source: Source, instance: str) -> ast.ClassDef | None:
    made = {called(value) for each in source.scopes for name, value, _ in source.assigned(each)
            if name == instance}  # fmt: skip
    return source.module_classes.get(made.pop()) if len(made) == 1 else None


def _only_model(source: Source) -> ast.ClassDef | None:
    """Return the module class that no other module class of the file is built of."""
    inner = {called(node) for body in source.module_classes.values() for node in source.walk(body)}
    outer = [body for name, body in source.module_classes.items() if name not in inner]
    return outer[0] if len(outer) == 1 else None


def _layer_of(body: ast.ClassDef, forward: ast.AST, value: ast.expr) -> ast.Call | None:
    for _ in range(5):
        if isinstance(value, ast.Tuple) and value.elts:
            value = value.elts[0]
        if isinstance(value, ast.Name):
            found = _element_of(forward, value.id)
            if found is None:
                return None
            value = found
            continue
        if not isinstance(value, ast.Call):
            return None
        name = of_self(value.func)
        if not name:
            return None
        built = [node.value for node in ast.walk(body) if isinstance(node, ast.Assign)
                 and any(of_self(target) == name for target in node.targets)]  # fmt: skip
        if len(built) != 1 or not isinstance(built[0], ast.Call):
            return None
        layer = built[0]
        if called(layer) == "Sequential" and layer.args:
            layer = layer.args[-1] if isinstance(layer.args[-1], ast.Call) else layer
        if called(layer) == "Dropout" and value.args:
            value = value.args[0]
            continue
        return layer
    return None


@reads
def merged_heads(source: Source) -> Iterator[Pattern]:
    """`(att @ v).reshape(B, T, C)` of (B, heads, T, size): heads are merged with positions."""
    for call in source.of(ast.Call):
        if not isinstance(call.func, ast.Attribute):
            continue
        sizes = sizes_of(call) if called(call) in RESHAPING else []
        is_flattened = called(call) == "flatten" and [whole(each) for each in call.args] in (
            [2], [-2], [2, 3], [-2, -1])  # fmt: skip
        if len(sizes) != 3 and not is_flattened:
            continue
        scope = source.scope(call)
        known = layout(source, scope, call.func.value)
        if known is None or len(known) != 4:
            continue
        if is_flattened:
            mixed = _is_heads(source, known[1]) and not _is_heads(source, known[2])
        else:
            mixed = _is_mixed(source, known, sizes)
        if mixed and not _is_sized_alike(known):
            yield source.pattern("merged heads", call, ast.unparse(call.func.value))


def _is_mixed(source: Source, known: Layout, sizes: list[str]) -> bool:
    """Whether the second axis stays behind, and the third one takes its place."""
    if sizes[0] != known[0]:
        return False
    if sizes[1] in known[2:] and sizes[1] != "-1" and sizes[1] != known[1]:
        return True
    if sizes[1] not in ("-1", known[2]) or known[1] == "-1":
        return False
    # (B, heads, T, size) as (B, -1, heads * size)
    width = _factors(sizes[2])
    return prod((known[1] in width, known[3] in width)) == 1 or (
        _quotient(source, known[3]) == (_expanded(source, sizes[2]), _expanded(source, known[1]))
    )


def _factors(size: str) -> set[str]:
    parts = {each.strip(" ()") for each in size.split("*")}
    return parts if "/" not in size else set()


def _quotient(source: Source, size: str) -> tuple[str, str]:
    """Return the two sides of `dim // heads`, which a size may stand for."""
    top, _, bottom = _expanded(source, size).partition(" // ")
    return _expanded(source, top), _expanded(source, bottom)


def _expanded(source: Source, size: str) -> str:
    """Return what a size stands for, if it is an attribute that is set once."""
    for _ in range(2):
        name = size.rpartition(".")[2]
        values = source.named(name) if name.isidentifier() else ()
        if len(values) != 1 or not isinstance(values[0], ast.BinOp | ast.Name):
            return name or size
        text = ast.unparse(values[0])
        if text == size:
            return size
        size = text
    return size


def _is_heads(source: Source, size: str) -> bool:
    return bool(re.search(r"head", _expanded(source, size) + size, re.I)) and not re.search(
        r"dim|size|head_d|d_head|//", size, re.I
    )


def _is_sized_alike(known: Layout) -> bool:
    return len(set(known)) < len(known)


@reads
def states_by_view(source: Source) -> Iterator[Pattern]:
    """`_, h = self.gru(x)` and `h.view(B, -1)`: (layers, batch, size) is cut across samples."""
    for function in source.of(*Function.__args__):
        states = dict(_final_states(source, function))
        for call in source.walk(function) if states else ():
            if not isinstance(call, ast.Call) or called(call) not in RESHAPING:
                continue
            if not isinstance(call.func, ast.Attribute) or dotted(call.func.value) not in states:
                continue
            sizes = sizes_of(call)
            name = dotted(call.func.value)
            if len(sizes) != 2 or source.stores(function, name) != 1:
                continue
            is_batch = is_batch_size(sizes[0]) and not is_batch_size(sizes[1])
            is_doubled = sizes[0] == "-1" and re.search(r"\b2\b|num_layers|directions", sizes[1])
            if is_batch or is_doubled:
                yield source.pattern("state by view", call, name)


def _final_states(source: Source, function: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield names of final states that have more than one layer or direction, and their layer."""
    for node in source.walk(function):
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
            continue
        layer, target = of_self(node.value.func), node.targets[0]
        made = source.named(layer) if layer else ()
        if len(made) != 1 or called(made[0]) not in RECURRENT or not _is_deep(source, made[0]):
            continue
        if isinstance(target, ast.Tuple) and len(target.elts) == 2:
            state = target.elts[1]
            state = state.elts[0] if isinstance(state, ast.Tuple) and state.elts else state
            if isinstance(state, ast.Name):
                yield state.id, layer


def _is_deep(source: Source, layer: ast.expr) -> bool:
    assert isinstance(layer, ast.Call)
    options = {each.arg: each.value for each in layer.keywords}
    both = options.get("bidirectional")
    if isinstance(both, ast.Constant) and both.value is True:
        return True
    depth = options.get("num_layers", layer.args[2] if len(layer.args) > 2 else None)
    count = whole(None if depth is None else resolved(source, source.scope(layer), depth))
    return count is not None and count > 1
