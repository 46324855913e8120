"""Layers in plain lists, and parameters that are no parameters any more."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source import Function, Pattern, Source, called, dotted, of_self

_CONTAINERS = {"ModuleList", "ModuleDict", "Sequential", "add_module", "register_module"}
_CONTAINERS |= {"ParameterList", "ParameterDict", "setattr", "register_parameter"}
_WITH_PARAMETERS = re.compile(
    r"^(Lazy)?(Linear|Bilinear|Conv|BatchNorm|SyncBatchNorm|LayerNorm|GroupNorm|RMSNorm|Embedding"
    r"|LSTM|GRU|RNN|MultiheadAttention|Transformer|PReLU|Parameter$)"
)
# Calls that return a plain tensor, where the value has not that type or place already.
_MOVES = {"to", "cuda", "double", "half", "clone", "detach", "view", "reshape"}
_NN = ("nn.", "torch.nn.")
_READERS = {"parameters", "named_parameters"}


def unregistered(source: Source) -> Iterator[Pattern]:
    """`self.layers = [nn.Linear(...), ...]` and `self.w = nn.Parameter(...).to(device)`."""
    handed = _handed_out(source)
    for body in source.module_classes.values():
        known = _registered(body) | handed
        for node in ast.walk(body):
            if not isinstance(node, ast.Assign):
                continue
            for target in node.targets:
                name = of_self(target)
                if not name:
                    continue
                if moves := _moves(node.value):
                    to_device = moves <= {"to", "cuda"} and "dtype" not in ast.unparse(node.value)
                    kind = "parameter to device" if to_device else "moved parameter"
                    yield source.pattern(kind, node, name)
                elif name not in known and _holds_layers(source, node.value):
                    yield source.pattern("unregistered", node, name)
        for name, call in _appended(source, body):
            if name not in known:
                yield source.pattern("unregistered", call, name)


def _registered(body: ast.ClassDef) -> set[str]:
    """Return the attributes that the class gives to a container, or to an optimizer."""
    names = set()
    for node in ast.walk(body):
        if isinstance(node, ast.Call) and called(node) in _CONTAINERS:
            names |= {of_self(each) for each in ast.walk(node) if isinstance(each, ast.Attribute)}
        # `for name, layer in self.layers: self.add_module(name, layer)`
        if isinstance(node, ast.For) and any(called(n) in _CONTAINERS for n in ast.walk(node)):
            names |= {of_self(each) for each in ast.walk(node.iter)}
        # A method of its own hands them out: `def parameters(self)`.
        if isinstance(node, Function) and node.name in _READERS:
            names |= {of_self(each) for each in ast.walk(node) if isinstance(each, ast.Attribute)}
    return names - {""}


def _handed_out(source: Source) -> set[str]:
    """Return attributes whose parameters are asked for: `for x in net.layers: x.parameters()`."""
    names: set[str] = set()
    for node in ast.walk(source.tree):
        places: list[ast.AST] = []
        if isinstance(node, ast.GeneratorExp | ast.ListComp | ast.SetComp | ast.DictComp):
            places = [each.iter for each in node.generators]
        elif isinstance(node, ast.For):
            places = [node.iter]
        elif called(node) in _READERS:
            places = [node]
        if places and any(called(each) in _READERS for each in ast.walk(node)):
            names |= {
                each.attr
                for place in places
                for each in ast.walk(place)
                if isinstance(each, ast.Attribute)
            }
    return names


def _holds_layers(source: Source, value: ast.expr) -> bool:
    if isinstance(value, ast.List | ast.Tuple | ast.Set):
        parts = list(value.elts) if len(value.elts) > 1 else []  # `[teacher]` hides it on purpose
    elif isinstance(value, ast.Dict):
        parts = list(value.values)
    elif isinstance(value, ast.ListComp | ast.SetComp):
        parts = [value.elt]
    elif isinstance(value, ast.DictComp):
        parts = [value.value]
    else:
        return False
    return any(_is_layer(source, part) for part in parts)


def _is_layer(source: Source, value: ast.expr) -> bool:
    if isinstance(value, ast.Call) and called(value) == "Sequential":
        return any(_is_layer(source, part) for part in value.args)
    if not source.makes_module(value):
        return called(value) == "Parameter"
    assert isinstance(value, ast.Call)
    return _has_parameters(source, dotted(value.func), ())


def _has_parameters(source: Source, name: str, above: tuple[str, ...]) -> bool:
    """Whether a class of `nn`, or a module class of this file, makes parameters."""
    body = source.module_classes.get(name)
    if body is None:
        return bool(_WITH_PARAMETERS.match(name.rpartition(".")[2]))
    return name not in above and any(
        _has_parameters(source, dotted(node.func), (*above, name))
        for node in ast.walk(body)
        if isinstance(node, ast.Call)
        and (dotted(node.func) in source.module_classes or dotted(node.func).startswith(_NN))
    )


def _appended(source: Source, body: ast.ClassDef) -> Iterator[tuple[str, ast.Call]]:
    """Yield calls such as `self.layers.append(nn.Linear(...))` of what began as a list."""
    lists = {
        of_self(target)
        for node in ast.walk(body)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.List) and not node.value.elts
        for target in node.targets
    } - {""}
    for node in ast.walk(body):
        if isinstance(node, ast.Call) and called(node) == "append" and node.args:
            owner = of_self(node.func.value) if isinstance(node.func, ast.Attribute) else ""
            if owner in lists and _is_layer(source, node.args[0]):
                yield owner, node


def _moves(value: ast.expr) -> set[str]:
    """Return the calls after `nn.Parameter(...)` that may return a plain tensor."""
    moves: set[str] = set()
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        if value.func.attr == "Parameter":
            return moves
        if value.func.attr not in _MOVES:
            return set()
        moves.add(value.func.attr)
        value = value.func.value
    return moves if called(value) == "Parameter" else set()
