"""Layers that take the first axis for time, and are given batches whose first axis is samples."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.expressions import axis_of, whole
from holter.scripts.reading.source.layouts import RECURRENT
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Function, Pattern, Source, called, dotted, of_self

_ATTENDING = {"TransformerEncoderLayer", "TransformerDecoderLayer", "MultiheadAttention"}
_PLACE = {"LSTM": 4, "GRU": 4, "RNN": 5}  # of `batch_first` among the arguments
_STACKS = {"TransformerEncoder", "TransformerDecoder"}
_TURNS = {"transpose", "swapaxes", "swapdims", "transpose_"}
_OTHER_TURNS = {"t", "movedim", "moveaxis", "rearrange", "einsum"}
_SHAPES = {"view", "reshape", "unsqueeze", "squeeze", "stack", "unbind", "flatten", "expand"}
_DRAWN = {"randperm", "permutation", "randint", "shuffle"}
_JOINING = re.compile(r"collate", re.I)
_PACKING = {"pack_padded_sequence", "pack_sequence"}
_TURNED = re.compile(
    r"transpose|permute|swapaxes|swapdims|movedim|moveaxis|rearrange|einsum|\.m?T\b|\.t\(|unsqueeze\(1"
)
_TRANSPOSING = {"transpose", "permute", "swapaxes", "swapdims", "movedim", "moveaxis", "rearrange",
            "einsum", "t", "mT", "T"}  # fmt: skip


@reads
def batch_as_time(source: Source) -> Iterator[Pattern]:
    """`nn.GRU(d, h)` without `batch_first` in a file whose batches have their samples first."""
    layers = [(body, *each) for body in source.module_classes.values()
              for each in _layers(source, body)]  # fmt: skip
    is_turned = not layers or _turns(source, source.tree)
    by_loader = not is_turned and _has_sample_batches(source)
    for body, name, node, is_wide in layers:
        forward = next((each for each in body.body if isinstance(each, Function)
                        and each.name == "forward"), None)  # fmt: skip
        if forward is None:
            continue
        calls = [call for call in source.walk(body) if isinstance(call, ast.Call)
                 and of_self(call.func) == name and call.args]  # fmt: skip
        if not calls or any(_is_packed(source, call) for call in calls):
            continue
        if not is_wide and _takes_last(source, body, name):
            yield source.pattern("batch as time", node, name)
            continue
        if is_turned or any(_is_shaped(source, call) for call in calls):
            continue
        if all(_is_packed_by_sample(source, call) for call in calls):
            continue  # a packed sequence has its own layout
        if by_loader or any(_is_batch_first(source, body, call) for call in calls):
            kind = "batch attended" if is_wide else "batch as time"
            yield source.pattern(kind, node, name)


def _takes_last(source: Source, body: ast.ClassDef, name: str) -> bool:
    """Whether a class takes `out[:, -1]` of a layer for its last step, and turns no axes."""
    if _TURNED.search(source.code(body)):
        return False
    stored = [node.id for node in source.walk(body) if isinstance(node, ast.Name)
              and isinstance(node.ctx, ast.Store)]  # fmt: skip
    outputs = set()
    for node in source.walk(body):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            target = node.targets[0]
            first = target.elts[0] if isinstance(target, ast.Tuple) and target.elts else target
            if of_self(node.value.func) == name and isinstance(first, ast.Name):
                outputs |= {first.id} if stored.count(first.id) == 1 else set()
    return any(
        isinstance(node, ast.Subscript)
        and dotted(node.value) in outputs
        and isinstance(node.slice, ast.Tuple)
        and ast.unparse(node.slice).strip("()") in (":, -1", ":, -1, :")
        for node in source.walk(body)
    )


def _is_packed(source: Source, call: ast.Call) -> bool:
    """Whether a layer is given a packed sequence, which carries its own layout."""
    given = _behind(source, source.scope(call), call.args[0])
    return any(called(node) in _PACKING for node in given)


def _layers(source: Source, body: ast.ClassDef) -> Iterator[tuple[str, ast.AST, bool]]:
    """Yield attributes that are such layers: name, where they are built, whether they attend."""
    local: dict[str, ast.Call] = {}
    attributes: dict[str, list[ast.expr]] = {}
    for node in source.walk(body):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name) and isinstance(node.value, ast.Call):
                    local[target.id] = node.value
                if name := of_self(target):
                    attributes.setdefault(name, []).append(node.value)
    for name, values in attributes.items():
        if len(values) != 1 or not isinstance(values[0], ast.Call):
            continue
        value = values[0]
        if called(value) in _STACKS and value.args:
            inner = value.args[0]
            found = local.get(inner.id) if isinstance(inner, ast.Name) else inner
            if not isinstance(found, ast.Call):
                continue
            value = found
        if dotted(value.func) in source.module_classes or not source.makes_module(value):
            continue
        kind = called(value)
        given = {keyword.arg for keyword in value.keywords}
        is_set = bool(given & {"batch_first", None}) or len(value.args) > _PLACE.get(kind, 6)
        if kind in RECURRENT | _ATTENDING and not is_set:
            yield name, value, kind in _ATTENDING


def _turns(source: Source, tree: ast.AST) -> bool:
    """Whether anything exchanges the first axis with another, outside of a matrix product."""
    for node in source.walk(tree):
        is_turned = isinstance(node, ast.Attribute) and node.attr in ("T", "mT", "H")
        if not (is_turned or isinstance(node, ast.Call)) or _is_multiplied(source, node):
            continue
        if is_turned:
            return True
        assert isinstance(node, ast.Call)
        name = called(node)
        axes = [whole(each) for each in (*node.args, *(k.value for k in node.keywords))]
        if name in _OTHER_TURNS or (name in _TURNS and 0 in axes):
            return True
        if name in ("permute", "transpose") and len(axes) > 2 and axes[0] not in (0, None):
            return True
        if name == "permute" and (None in axes[:1] or len(axes) < 2):
            return True
        if name == "pad_sequence" and not any(k.arg == "batch_first" for k in node.keywords):
            return len(node.args) < 2
        if (
            name == "stack"
            and axis_of(node, 0) == 1
            and _JOINING.search(getattr(source.scope(node), "name", ""))
        ):
            return True
    return False


def _is_multiplied(source: Source, node: ast.AST) -> bool:
    above = source.parent(node)
    while isinstance(above, ast.Attribute | ast.Call) and called(above) not in ("matmul", "mm"):
        above = source.parent(above)
    return (isinstance(above, ast.BinOp) and isinstance(above.op, ast.MatMult)) or (
        called(above) in ("matmul", "mm") if above is not None else False
    )


def _is_shaped(source: Source, call: ast.Call) -> bool:
    """Whether a layer is given something whose axes were made in place, or a single step."""
    given = call.args[0]
    names = {node.id for node in source.walk(given) if isinstance(node, ast.Name)}
    scope = source.scope(call)
    parts = [given, *(value for name, value, _ in source.assigned(scope) if name in names)]
    return any(
        (called(node) in _SHAPES and not _keeps_samples(node)) or (isinstance(node, ast.Subscript)
        and not isinstance(node.slice, ast.Tuple) and whole(node.slice) is not None)
        for part in parts
        for node in source.walk(part)
    )  # fmt: skip


def _is_packed_by_sample(source: Source, call: ast.Call) -> bool:
    """Whether a layer is given what `pack_padded_sequence(x, lengths, batch_first=True)` made."""
    packing = [each for each in _behind(source, source.scope(call), call.args[0])
               if called(each) == "pack_padded_sequence"]  # fmt: skip
    return bool(packing) and all(
        len(getattr(each, "args", ())) > 2
        or any(k.arg == "batch_first" for k in getattr(each, "keywords", ()))
        for each in packing
    )


def _keeps_samples(node: ast.AST) -> bool:
    """Whether a call adds or removes the last axis only: `unsqueeze(-1)`, `stack(x, -1)`."""
    if called(node) in ("unsqueeze", "squeeze", "stack") and isinstance(node, ast.Call):
        axis = axis_of(node)
        return axis is not None and (axis < 0 or axis > 1)
    return False


def _has_sample_batches(source: Source) -> bool:
    """Whether the file makes batches of samples: by a plain loader, padding, or drawn rows."""
    for call in source.of(ast.Call):
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        if called(call) == "pad_sequence":
            first = given.get("batch_first")
            if isinstance(first, ast.Constant) and first.value is True:
                return True
        if called(call) == "DataLoader" and not given.keys() & {"collate_fn", None}:
            size = given.get("batch_size", call.args[1] if len(call.args) > 1 else None)
            shuffle = given.get("shuffle")
            is_mixed = isinstance(shuffle, ast.Constant) and shuffle.value is True
            if size is not None and whole(size) != 1 and (is_mixed or "sampler" in given):
                return True
    return False


def _is_batch_first(source: Source, body: ast.ClassDef, call: ast.Call) -> bool:
    """Whether the class itself treats the axes of the output or input as (samples, time)."""
    scope = source.scope(call)
    is_convolved = "Conv1d" in source.code(body)
    for node in _behind(source, scope, call.args[0]):
        # From (samples, channels, time) to (samples, time, channels).
        is_transposed = called(node) == "transpose" and is_convolved
        if is_transposed and {whole(each) for each in getattr(node, "args", ())} == {1, 2}:
            return True
    instances = {name for each in source.scopes for name, value, _ in source.assigned(each)
                 if called(value) == body.name}  # fmt: skip
    for use in source.of(ast.Call):
        if dotted(use.func).rpartition(".")[2] not in instances | {"model", "net"} or not use.args:
            continue
        if _is_of_rows(source, use.args[0]):
            return True
    return False


def _behind(source: Source, scope: ast.AST, given: ast.expr) -> list[ast.AST]:
    names = {node.id for node in source.walk(given) if isinstance(node, ast.Name)}
    parts = [given, *(value for name, value, _ in source.assigned(scope) if name in names)]
    return [node for part in parts for node in source.walk(part)]


def _is_of_rows(source: Source, given: ast.expr) -> bool:
    """Whether a model is given `x[idx]` of drawn rows, or `data[:, i : i + steps]`."""
    scope = source.scope(given)
    if isinstance(given, ast.Name):
        values = [value for name, value, _ in source.assigned(scope) if name == given.id]
        return bool(values) and all(
            isinstance(each, ast.Subscript) and _is_of_rows(source, each) for each in values
        )
    if not isinstance(given, ast.Subscript):
        return False
    index = given.slice
    if isinstance(index, ast.Tuple):
        first, *others = index.elts
        is_all = isinstance(first, ast.Slice) and first.lower is None and first.upper is None
        return (
            is_all
            and len(others) == 1
            and isinstance(others[0], ast.Slice)
            and (others[0].lower is not None and others[0].upper is not None)
        )
    if isinstance(index, ast.Name):
        drawn = [value for name, value, _ in source.assigned(scope) if name == index.id]
        names = {each.id for value in drawn for each in source.walk(value)
                 if isinstance(each, ast.Name)}  # fmt: skip
        drawn += [value for each in source.scopes for name, value, _ in source.assigned(each)
                  if name in names]  # fmt: skip
        return any(called(each) in _DRAWN for value in drawn for each in source.walk(value))
    return False


@reads
def unpacked_time_first(source: Source) -> Iterator[Pattern]:
    """Packed with `batch_first=True`, unpacked without, and viewed as (batch, time, ...)."""
    for function in source.of(*Function.__args__):
        calls = [each for each in source.walk(function) if isinstance(each, ast.Call)]
        packing = [each for each in calls if called(each) == "pack_padded_sequence"]
        unpacking = [each for each in calls if called(each) == "pad_packed_sequence"]
        if not packing or len(unpacking) != 1 or not all(map(_packs_batch_first, packing)):
            continue
        last = unpacking[0]
        if _packs_batch_first(last) or len(last.args) > 1:
            continue
        text = source.code(function)
        if any(called(each) in _TRANSPOSING for each in calls) or re.search(
            r"\[-1\]|\.m?T\b|dim=0|axis=0|(mean|sum|max|amax)\(0|- 1, |unsqueeze", text
        ):
            continue
        yield source.pattern("time first", last, "pad_packed_sequence")


def _packs_batch_first(call: ast.Call) -> bool:
    given = [each.value for each in call.keywords if each.arg == "batch_first"]
    given += call.args[2:3] if called(call) == "pack_padded_sequence" else call.args[1:2]
    return bool(given) and not (isinstance(given[0], ast.Constant) and given[0].value is False)
