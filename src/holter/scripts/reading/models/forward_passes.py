"""Forward passes that create layers, or read one step, layer or column for another."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.expressions import number
from holter.scripts.reading.source.layouts import RECURRENT
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.slices import only_value
from holter.scripts.reading.source.tree import Function, Pattern, Source, called, dotted, of_self

_CREATED = re.compile(r"^(Lazy)?(Linear|Bilinear|Conv|LSTM|GRU|RNN|Embedding|MultiheadAttention"
                      r"|Transformer|BatchNorm|(Alpha)?Dropout)")  # fmt: skip
# Weights that are given, random on purpose, or none.
_GIVEN = re.compile(
    r"\.weight\b|\.data\b|load_state_dict|\.eval\(\)|\.train\(|no_grad|affine=False"
)
_AT_RANDOM = re.compile(r"aug|rand|noise|perturb", re.I)
_REVERSED = re.compile(r"flip|\[::-1\]|reverse|bidirectional")
_POSITIONS = re.compile(r"(^|_)(pos|position|positions|positional|pe|wpe)(_|$)", re.I)
_TO_TIME = re.compile(r"transpose\(0, 1\)|transpose\(1, 0\)|permute\(1, 0|swapaxes\(0, 1\)")
_ATTENDING = {"TransformerEncoderLayer", "TransformerDecoderLayer", "Transformer"}
_ATTENDING |= {"MultiheadAttention"}


def _passes(source: Source) -> Iterator[tuple[ast.ClassDef, Function]]:
    """Yield the forward passes of the modules of a file, and the methods that they call."""
    for body in source.module_classes.values():
        methods = {each.name: each for each in body.body if isinstance(each, Function)}
        forward = methods.pop("forward", None)
        if forward is None:
            continue
        yield body, forward
        helpers = {
            of_self(call.func) for call in source.walk(forward) if isinstance(call, ast.Call)
        }
        yield from ((body, each) for name, each in methods.items() if name in helpers)


@reads
def created(source: Source) -> Iterator[Pattern]:
    """`nn.Linear(8, 4)(x)` in `forward`: new weights in each call, which nothing trains."""
    for body, function in _passes(source):
        for call in source.walk(function):
            if not isinstance(call, ast.Call) or not call.args:
                continue
            layer: ast.expr | None = call.func
            if isinstance(layer, ast.Name):
                layer, home = only_value(source, function, layer.id)
                layer = layer if home is function else None
            if layer is None or not _is_layer_of_torch(layer):
                continue
            given = _GIVEN.search(source.code(function)) or _AT_RANDOM.search(body.name)
            if not given and not _is_in_training(source, call):
                is_dropout = "Dropout" in called(layer)
                kind = "dropout in forward" if is_dropout else "layer in forward"
                yield source.pattern(kind, call, called(layer))


def _is_layer_of_torch(value: ast.expr) -> bool:
    """Whether an expression makes a layer of torch that has weights, or a mode."""
    if not isinstance(value, ast.Call):
        return False
    head, _, last = dotted(value.func).rpartition(".")
    return head in ("nn", "torch.nn") and bool(_CREATED.match(last))


def _is_in_training(source: Source, node: ast.AST) -> bool:
    """Whether a condition on the mode is around a node."""
    return any(
        isinstance(each, ast.If | ast.IfExp) and "train" in ast.unparse(each.test)
        for each in source.above(node)
    )


@reads
def first_layer(source: Source) -> Iterator[Pattern]:
    """`_, h = self.gru(x)` of two layers and `h[0]`, or `out, _ = self.gru(x)` and `out[:, 0]`."""
    for body, function in _passes(source):
        layers = _recurrent(source, body)
        if not layers or _REVERSED.search(source.code(body)):
            continue
        outputs, states = _results(source, function, layers)
        first = {name for name, layer in outputs.items() if _is_batch_first(layers[layer])}
        for node in source.walk(function):
            if not isinstance(node, ast.Subscript) or not isinstance(node.ctx, ast.Load):
                continue
            name, index = dotted(node.value), ast.unparse(node.slice).strip("()")
            if _reads(source, function, name) != 1:
                continue  # a pass that reads several places chooses this one on purpose
            if index in ("0", "0, :, :") and name in states:
                depth = number(source, _option(layers[states[name]], "num_layers", 2))
                if depth is not None and depth > 1:
                    yield source.pattern("first layer", node, states[name])
            elif index in (":, 0", ":, 0, :") and name in first:
                yield source.pattern("first step", node, outputs[name])


def _recurrent(source: Source, body: ast.ClassDef) -> dict[str, ast.Call]:
    """Return the recurrent layers of torch that a class keeps, by attribute."""
    found = {
        of_self(target): node.value
        for node in source.walk(body)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        if called(node.value) in RECURRENT and source.makes_module(node.value)
        for target in node.targets
    }
    found.pop("", None)
    return found


def _results(
    source: Source, function: ast.AST, layers: dict[str, ast.Call]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the names that outputs and final states get, and of which layer they are."""
    outputs: dict[str, str] = {}
    states: dict[str, str] = {}
    for node in source.walk(function):
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
            continue
        layer, target = of_self(node.value.func), node.targets[0]
        if layer not in layers or not isinstance(target, ast.Tuple) or len(target.elts) != 2:
            continue
        out, state = target.elts
        if isinstance(state, ast.Tuple) and state.elts:
            state = state.elts[0]
        for name, known in ((dotted(out), outputs), (dotted(state), states)):
            if source.stores(function, name) == 1:
                known[name] = layer
    return outputs, states


def _reads(source: Source, function: ast.AST, name: str) -> int:
    return sum(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
        for node in source.walk(function)
    )


def _option(call: ast.Call, name: str, place: int) -> ast.expr | None:
    given = [each.value for each in call.keywords if each.arg == name]
    given += call.args[place : place + 1]
    return given[0] if given else None


def _is_batch_first(call: ast.Call) -> bool:
    return any(
        each.arg == "batch_first" and isinstance(each.value, ast.Constant) and each.value.value
        for each in call.keywords
    )


@reads
def position_by_batch(source: Source) -> Iterator[Pattern]:
    """`x + self.pe[: x.size(0)]` beside layers with `batch_first=True`."""
    layers = [call for call in source.of(ast.Call)
              if called(call) in _ATTENDING and source.makes_module(call)
              and dotted(call.func) not in source.module_classes]  # fmt: skip
    if not layers or not all(_is_batch_first(call) for call in layers):
        return
    if _TO_TIME.search(source.code(source.tree)):
        return
    for _, function in _passes(source):
        for node in source.walk(function):
            if not isinstance(node, ast.Subscript) or not _POSITIONS.search(of_self(node.value)):
                continue
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            uppers = [part.upper for part in parts if isinstance(part, ast.Slice) and part.upper]
            if any(_is_batch_size(source, function, upper) for upper in uppers):
                yield source.pattern("position of batch", node, of_self(node.value))


def _is_batch_size(source: Source, function: Function, value: ast.expr) -> bool:
    """Whether a number is the first size of what a pass is given: `x.size(0)`, `B` of its shape."""
    given = "|".join(re.escape(each.arg) for each in function.args.args[1:]) or "(?!)"
    text = ast.unparse(value)
    if re.fullmatch(rf"({given})\.(size\(0\)|shape\[0\])|len\(({given})\)", text):
        return True
    return isinstance(value, ast.Name) and any(
        isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Tuple)
        and dotted(node.targets[0].elts[0]) == value.id
        and re.fullmatch(rf"({given})\.(size\(\)|shape)(\[:\d\])?", ast.unparse(node.value))
        and source.stores(function, value.id) == 1
        for node in source.walk(function)
    )


@reads
def same_column(source: Source) -> Iterator[Pattern]:
    """`[table(c[:, 0]) for table in self.tables]`: every embedding is given one column."""
    tables = {
        of_self(target)
        for node in source.of(ast.Assign)
        if called(node.value) == "ModuleList" and "Embedding(" in ast.unparse(node.value)
        if any(isinstance(each, ast.comprehension) for each in source.walk(node.value))
        for target in node.targets
    } - {""}  # fmt: skip
    for _, function in _passes(source) if tables else ():
        loops = [
            each for each in source.walk(function) if isinstance(each, ast.comprehension | ast.For)
        ]
        drawn = {
            name.id
            for loop in loops
            if tables & {of_self(each) for each in source.walk(loop.iter)}
            for name in source.walk(loop.target)
            if isinstance(name, ast.Name)
        }
        for node in source.walk(function):
            if not isinstance(node, ast.Call) or dotted(node.func) not in drawn:
                continue
            column = node.args[0] if len(node.args) == 1 else node
            if isinstance(column, ast.Subscript) and re.fullmatch(
                r"\(?(:|\.\.\.), -?\d+\)?", ast.unparse(column.slice)
            ):
                yield source.pattern("same column", node, ast.unparse(column))
