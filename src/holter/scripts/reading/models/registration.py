"""Layers in plain lists, and parameters that are no parameters any more."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Function, Pattern, Source, called, dotted, of_self

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
_HANDING_OUT = re.compile(r"param|trainable", re.I)


@reads
def unregistered(source: Source) -> Iterator[Pattern]:
    """`self.layers = [nn.Linear(...), ...]` and `self.w = nn.Parameter(...).to(device)`."""
    handed = _handed_out(source)
    for body in source.module_classes.values():
        known = _registered(source, body) | handed
        for node in source.walk(body):
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


def _registered(source: Source, body: ast.ClassDef) -> set[str]:
    """Return the attributes that the class gives to a container, or to an optimizer."""
    names = set()
    for node in source.walk(body):
        if isinstance(node, ast.Call) and called(node) in _CONTAINERS:
            names |= {
                of_self(each) for each in source.walk(node) if isinstance(each, ast.Attribute)
            }
        # `for name, layer in self.layers: self.add_module(name, layer)`
        if isinstance(node, ast.For) and any(called(n) in _CONTAINERS for n in source.walk(node)):
            names |= {of_self(each) for each in source.walk(node.iter)}
        # A method of its own hands them out: `def parameters(self)`.
        if isinstance(node, Function) and _HANDING_OUT.search(node.name):
            names |= {
                of_self(each) for each in source.walk(node) if isinstance(each, ast.Attribute)
            }
    return names - {""}


def _handed_out(source: Source) -> set[str]:
    """Return attributes whose parameters are asked for: `for x in net.layers: x.parameters()`."""
    names: set[str] = set()
    for call in source.of(ast.Call):
        if called(call) not in _READERS:
            continue
        places: list[ast.AST] = [call]
        for above in source.above(call):
            if isinstance(above, ast.GeneratorExp | ast.ListComp | ast.SetComp | ast.DictComp):
                places += [each.iter for each in above.generators]
            elif isinstance(above, ast.For):
                places.append(above.iter)
        names |= {
            each.attr
            for place in places
            for each in source.walk(place)
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
        for node in source.walk(body)
        if isinstance(node, ast.Call)
        and (dotted(node.func) in source.module_classes or dotted(node.func).startswith(_NN))
    )


def _appended(source: Source, body: ast.ClassDef) -> Iterator[tuple[str, ast.Call]]:
    """Yield calls such as `self.layers.append(nn.Linear(...))` of what began as a list."""
    lists = {
        of_self(target)
        for node in source.walk(body)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.List) and not node.value.elts
        for target in node.targets
    } - {""}
    for node in source.walk(body):
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


@reads
def plain_tensor(source: Source) -> Iterator[Pattern]:
    """`self.pe = torch.zeros(...)` in a module that is moved to a device: it stays behind."""
    text = source.code(source.tree)
    if not re.search(r"cuda", text) or "_apply(" in text:
        return
    for body in source.module_classes.values():
        start = next((each for each in body.body if getattr(each, "name", "") == "__init__"), None)
        if start is None or not _is_moved(source, body.name):
            continue
        own = source.code(body)
        for node in source.walk(start):
            if not isinstance(node, ast.Assign) or not of_self(node.targets[0]):
                continue
            name = of_self(node.targets[0])
            value = node.value
            if isinstance(value, ast.Name):
                made = [each for other, each, _ in source.assigned(start) if other == value.id]
                value = made[0] if len(made) == 1 else value
            if not _is_new_tensor(value) or "device" in ast.unparse(value):
                continue
            uses = len(re.findall(rf"self\.{name}\b", own))
            is_moved = re.search(rf"\.{name}(\[[^\]]*\])?\.(to|cuda|tolist|item|numpy)\(|"
                                 rf"\.{name}\.data|\.{name} = \S*\.{name}", text)  # fmt: skip
            stores = [each for each in source.of(ast.Assign) for target in each.targets
                      if of_self(target) == name]  # fmt: skip
            if (
                uses > 1
                and not is_moved
                and len(stores) == 1
                and _is_in_forward(source, body, name)
            ):
                yield source.pattern("plain tensor", node, name)


def _is_moved(source: Source, name: str) -> bool:
    """Whether a model of a class goes to a device: `Net().to(device)`, `model.cuda()`."""
    holders = {dotted(target).rpartition(".")[2] for assign in source.of(ast.Assign)
               if called(assign.value) == name for target in assign.targets}  # fmt: skip
    for call in source.of(ast.Call):
        if called(call) not in ("to", "cuda") or not isinstance(call.func, ast.Attribute):
            continue
        if called(call.func.value) == name or dotted(call.func.value).rpartition(".")[2] in holders:
            return True
    return False


def _is_new_tensor(value: ast.expr) -> bool:
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        if dotted(value.func.value) == "torch":
            return value.func.attr in ("zeros", "ones", "arange", "tril", "triu", "linspace",
                                       "cumprod", "eye", "full", "exp", "randn")  # fmt: skip
        value = value.func.value
    return False


def _is_in_forward(source: Source, body: ast.ClassDef, name: str) -> bool:
    """Whether the forward pass computes with a tensor, and not only looks at its shape."""
    forward = next((each for each in body.body if getattr(each, "name", "") == "forward"), None)
    return forward is not None and any(
        of_self(node) == name and not isinstance(source.parent(node), ast.Attribute)
        for node in source.walk(forward)
    )
