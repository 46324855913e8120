"""Whole numbers in a type that is too small for them."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source import Pattern, Source, called, dotted

_LARGEST = {"uint8": 255, "int8": 127, "uint16": 65535, "int16": 32767, "byte": 255, "short": 32767}
_CASTS = {"astype", "to", "type", "array", "asarray", "tensor", "as_tensor", "zeros", "full"}
_INDEXING = re.compile(r"^(long|int|int64|int32|LongTensor)$")
# Classes of pixels and of masks have no place in a vocabulary.
_OTHERS = re.compile(r"mask|label|seg|img|image|pixel|target|frame|[<>]|==|!=", re.I)


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
