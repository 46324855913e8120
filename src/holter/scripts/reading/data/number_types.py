"""Numbers in a type that is too small or too coarse for them."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.expressions import number
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Pattern, Source, called, dotted

_LARGEST = {"uint8": 255, "int8": 127, "uint16": 65535, "int16": 32767, "byte": 255, "short": 32767}
_CASTS = {"astype", "to", "type", "array", "asarray", "tensor", "as_tensor", "zeros", "full"}
_INDEXING = re.compile(r"^(long|int|int64|int32|LongTensor)$")
# Classes of pixels and of masks have no place in a vocabulary.
_OTHERS = re.compile(r"mask|label|seg|img|image|pixel|target|frame|[<>]|==|!=", re.I)
_STAMP = 1e9  # seconds since 1970, from 2001 on
_LARGEST_STAMP = 4e9
_SINGLE = {"float32", "FloatTensor", "float16", "half"}
_CONVERSIONS = {"astype", "to", "type", "tensor", "as_tensor", "array", "asarray"}


@reads
def wrapped(source: Source) -> Iterator[Pattern]:
    """`ids.astype(np.uint8)` where the embedding has 300 rows: 256 becomes 0."""
    sizes = [_number(source, call.args[0]) for call in source.of(ast.Call)
             if called(call) in ("Embedding", "EmbeddingBag") and call.args]  # fmt: skip
    rows = max((size for size in sizes if size is not None), default=0)
    for call in source.of(ast.Call):
        kind = _type_of(call)
        if kind is None or rows - 1 <= _LARGEST[kind]:
            continue
        if _OTHERS.search(ast.unparse(call)) or not _becomes_index(source, call):
            continue
        yield source.pattern("wrapped ids", call, f"{kind} holds {_LARGEST[kind]} at most, and the"
                             f" embedding has {rows} rows")  # fmt: skip


def _type_of(call: ast.Call) -> str | None:
    """Return the small type that a call makes whole numbers of."""
    if called(call) in ("byte", "short") and isinstance(call.func, ast.Attribute):
        return called(call)
    if called(call) not in _CASTS:
        return None
    given = [*call.args, *(each.value for each in call.keywords if each.arg == "dtype")]
    for each in given:
        text = each.value if isinstance(each, ast.Constant) else dotted(each).rpartition(".")[2]
        if text in _LARGEST:
            return str(text)
    return None


def _becomes_index(source: Source, call: ast.Call) -> bool:
    """Whether the same expression makes the type of an index of it."""
    for above in source.above(call):
        if isinstance(above, ast.stmt):
            return False
        if isinstance(above, ast.Call) and (
            _INDEXING.match(called(above))
            or (called(above) in _CASTS and re.search(r"int64|long", ast.unparse(above)))
        ):
            return True
    return False


def _number(source: Source, node: ast.expr) -> int | None:
    """Return the whole number that constants of the module make, or None."""
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if isinstance(node, ast.Name):
        bound = sum(source.stores(scope, node.id) for scope in source.scopes)
        made = [value for name, value, _ in source.assigned(source.tree) if name == node.id]
        return _number(source, made[0]) if len(made) == 1 and bound == 1 else None
    if isinstance(node, ast.BinOp):
        left, right = _number(source, node.left), _number(source, node.right)
        if left is None or right is None:
            return None
        if isinstance(node.op, ast.Add):
            return left + right
        if isinstance(node.op, ast.Sub):
            return left - right
        if isinstance(node.op, ast.Mult):
            return left * right
    return None


@reads
def rounded_stamps(source: Source) -> Iterator[Pattern]:
    """`torch.tensor(stamp, dtype=torch.float32) - START`: float32 has steps of 128 s there."""
    if not any(_STAMP <= value <= _LARGEST_STAMP for value in _constants(source)):
        return
    for node in source.of(ast.BinOp):
        if isinstance(node.op, ast.Sub) and _casts_to_single(node.left):
            start = number(source, node.right)
            if start is not None and _STAMP <= start <= _LARGEST_STAMP:
                yield source.pattern("rounded stamps", node, ast.unparse(node.right))
    for scope in source.scopes:
        for name, value, statement in source.assigned(scope):
            if _casts_to_single(value) and _is_whole_cast(value, name):
                uses = [node for node in source.walk(scope) if getattr(node, "lineno", 0)
                        > statement.lineno]  # fmt: skip
                if any(called(node) == "diff" and isinstance(node, ast.Call) and node.args
                       and dotted(node.args[0]) == name for node in uses):  # fmt: skip
                    yield source.pattern("rounded stamps", statement, name)


def _constants(source: Source) -> Iterator[float]:
    for node in source.of(ast.Constant):
        if type(node.value) in (int, float):
            yield float(node.value)  # type: ignore[arg-type]


def _casts_to_single(node: ast.expr) -> bool:
    """Whether an expression converts something as it is to single precision."""
    if not isinstance(node, ast.Call):
        return False
    kinds = [*node.args, *(k.value for k in node.keywords if k.arg == "dtype")]
    is_single = any(dotted(each).rpartition(".")[2] in _SINGLE or
                    getattr(each, "value", "") in _SINGLE for each in kinds)  # fmt: skip
    if called(node) == "float" and isinstance(node.func, ast.Attribute):
        return isinstance(node.func.value, ast.Name)
    if called(node) not in _CONVERSIONS or not is_single:
        return False
    given = node.func.value if called(node) in ("astype", "to", "type") and isinstance(
        node.func, ast.Attribute) else node.args[0]  # fmt: skip
    return isinstance(given, ast.Name | ast.Attribute | ast.Subscript)


def _is_whole_cast(value: ast.expr, name: str) -> bool:
    """Whether a statement is `w = w.astype(np.float32)`: of a time, by its name or by itself."""
    names = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
    return name in names or bool(re.search(r"stamp|time|clock|when|unix", name, re.I))
