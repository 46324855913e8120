"""What True means in a mask: a position to keep, or one to hide."""

import ast
import re
from collections.abc import Iterator, Mapping
from enum import Enum
from functools import cache

from holter.scripts.reading.source.expressions import argument, resolved, tensor_of, whole
from holter.scripts.reading.source.origins import passed
from holter.scripts.reading.source.tree import Source, called, dotted, of_self, parameters_of

# The number that fills a sequence up; not `is_pad`, `padded` or `pad_mask`.
_PADDING = re.compile(
    r"^(?!is_|not_|no_|n_|num_)(\w+_)?pad(ding)?(_?(id|idx|index|token|token_id|value|symbol))?$",
    re.I,
)
_PADDING_WORD = re.compile(r"^\W*pad(ding)?\W*$", re.I)  # `"<pad>"` of a vocabulary
_LENGTH = re.compile(r"len|(^|_)(n|num|sizes?|counts?)(_|$)", re.I)
_SAME = {"unsqueeze", "view", "expand", "bool", "to", "reshape", "squeeze", "repeat", "expand_as"}
_SAME |= {"cuda", "clone", "detach", "contiguous", "from_numpy", "as_tensor", "float", "byte"}
_SAME |= {"logical_not_", "type_as", "int", "long", "astype"}
_NEGATING = {"logical_not", "bitwise_not"}
_COMPARING = {"ne": ast.NotEq, "eq": ast.Eq, "not_equal": ast.NotEq, "gt": ast.Gt}
_DEEPEST = 4


class Meaning(Enum):
    """What True means in a mask."""

    REAL = "the positions to keep"
    HIDDEN = "the positions to hide"
    BEFORE = "the positions before this one, without itself"
    NOT_BEFORE = "this position and those after it"

    @property
    def opposite(self) -> "Meaning":
        """The one of the negated mask."""
        return _OPPOSITE[self]


_OPPOSITE = {
    Meaning.REAL: Meaning.HIDDEN,
    Meaning.HIDDEN: Meaning.REAL,
    Meaning.BEFORE: Meaning.NOT_BEFORE,
    Meaning.NOT_BEFORE: Meaning.BEFORE,
}


class Masks:
    """What the names of a file mean that are masks wherever they are assigned."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._pads = frozenset(_numbers_of_padding(source))
        self._everywhere: dict[str, Meaning] = {}
        for _ in range(3):  # a name may be given to another that comes before it
            self._everywhere = self._meanings()
        self._known = cache(self._known_in)

    def meaning(self, node: ast.expr, scope: ast.AST) -> Meaning | None:
        """Return what True means in an expression of a scope, or None."""
        return self._meaning(node, self._known(scope))

    def _meanings(self) -> dict[str, Meaning]:
        found: dict[str, set[Meaning | None]] = {}
        for name, value in _given(self._source):
            found.setdefault(name, set()).add(self._meaning(value, self._everywhere))
        for name, filled in _filled(self._source):
            found[name] = {filled} if found.get(name) == {None} else {None}
        return {
            name: meaning
            for name, every in found.items()
            if len(every) == 1 and (meaning := next(iter(every))) is not None
        }

    def _known_in(self, scope: ast.AST) -> dict[str, Meaning]:
        """Return the names whose meaning holds in a scope.

        A parameter has the meaning of what the calls of the file give it; if none is seen, the one
        that its name has elsewhere.
        """
        source, taken = self._source, parameters_of(scope)
        known = {}
        for name, meaning in self._everywhere.items():
            assigned = sum(other == name for other, *_ in source.assigned(scope))
            bound = source.stores(scope, name)
            if (assigned and assigned == bound) or (name not in taken and not bound):
                known[name] = meaning
        for name in taken:
            if source.stores(scope, name) != 1:
                continue
            given = {self._meaning(each, self._everywhere) for each in passed(source, scope, name)}
            if not given and name in self._everywhere and not _is_wrapped(source, name):
                given = {self._everywhere[name]}
            if len(given) == 1 and (meant := next(iter(given))) is not None:
                known[name] = meant
        return known

    def _meaning(
        self, node: ast.expr, names: Mapping[str, Meaning], depth: int = 0
    ) -> Meaning | None:
        if depth > _DEEPEST:
            return None
        if isinstance(node, ast.Name | ast.Attribute):
            return names.get(node.id if isinstance(node, ast.Name) else dotted(node))
        if isinstance(node, ast.Subscript):
            return self._meaning(node.value, names, depth)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert | ast.Not):
            return _negated(self._meaning(node.operand, names, depth))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            is_one = isinstance(node.left, ast.Constant) and node.left.value == 1
            return _negated(self._meaning(node.right, names, depth)) if is_one else None
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            return self._compared(node.left, type(node.ops[0]), node.comparators[0], names)
        return self._of_call(node, names, depth) if isinstance(node, ast.Call) else None

    def _of_call(self, node: ast.Call, names: Mapping[str, Meaning], depth: int) -> Meaning | None:
        name, given = called(node), tensor_of(node)
        if name in ("tril", "triu"):
            return triangle(self._source, node)
        if name in _NEGATING and given is not None:
            return _negated(self._meaning(given, names, depth))
        if name in _COMPARING and given is not None:
            other = argument(node, 0, "other")
            return None if other is None else self._compared(given, _COMPARING[name], other, names)
        if name in _SAME and given is not None:
            return self._meaning(given, names, depth)
        values = [
            each.value
            for function in self._source.of(ast.FunctionDef)
            if function.name == name
            for each in self._source.of(ast.Return)
            if self._source.scope(each) is function
        ]
        if len(values) == 1 and values[0] is not None:
            return self._meaning(values[0], names, depth + 1)
        return None

    def _compared(
        self,
        left: ast.expr,
        operation: type[ast.cmpop],
        right: ast.expr,
        names: Mapping[str, Meaning],
    ) -> Meaning | None:
        if operation in (ast.NotEq, ast.Eq, ast.Gt):
            equal = operation is ast.Eq
            inner = self._meaning(left, names)
            if inner is not None and isinstance(right, ast.Constant) and right.value in (0, 1):
                is_kept = equal == bool(right.value)
                return inner if is_kept or operation is ast.Gt else inner.opposite
            if operation is ast.Gt:
                is_least = whole(right) == 0 and 0 in self._pads and _is_tokens(left)
                return Meaning.REAL if is_least else None
            sides = (left, right)
            if any(_PADDING.search(dotted(side).rpartition(".")[2]) for side in sides) or (
                whole(right) in self._pads and _is_tokens(left)
            ):
                return Meaning.HIDDEN if equal else Meaning.REAL
            return None
        if _is_positions(left) and _is_length(right):
            return {ast.Lt: Meaning.REAL, ast.GtE: Meaning.HIDDEN}.get(operation)
        if _is_positions(right) and _is_length(left):
            return {ast.Gt: Meaning.REAL, ast.LtE: Meaning.HIDDEN}.get(operation)
        return None


def _negated(meaning: Meaning | None) -> Meaning | None:
    return None if meaning is None else meaning.opposite


def _is_tokens(node: ast.expr) -> bool:
    """Whether a side of a comparison can be ids: a name, or a part of one, no result of a call."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return bool(dotted(node))


def _is_length(node: ast.expr) -> bool:
    """Whether an expression is a number of elements; `T - lengths` is where padded ones begin."""
    is_rest = any(
        isinstance(each, ast.BinOp) and not isinstance(each.right, ast.Constant)
        for each in ast.walk(node)
    )
    return not is_rest and bool(_LENGTH.search(ast.unparse(node)))


def _is_positions(node: ast.expr) -> bool:
    return any(called(each) == "arange" for each in ast.walk(node))


def _numbers_of_padding(source: Source) -> Iterator[int]:
    """Yield the ids of padding: `padding_idx=0` of an embedding, `"<pad>": 0` of a vocabulary."""
    for call in source.of(ast.Call):
        for keyword in call.keywords:
            if keyword.arg in ("padding_idx", "padding_value"):
                value = whole(resolved(source, source.scope(call), keyword.value))
                is_ids = keyword.arg == "padding_idx" or "Embedding" in source.code(source.tree)
                if value is not None and is_ids:
                    yield value
    for table in source.of(ast.Dict):
        for key, value_ in zip(table.keys, table.values, strict=True):
            text = getattr(key, "value", "")
            number = whole(value_)
            if isinstance(text, str) and _PADDING_WORD.match(text) and number is not None:
                yield number


def _given(source: Source) -> Iterator[tuple[str, ast.expr]]:
    """Yield names and attributes of `self`, with each value that they are given."""
    for scope in source.scopes:
        yield from ((name, value) for name, value, _ in source.assigned(scope))
    for node in source.of(ast.Assign):
        yield from ((dotted(each), node.value) for each in node.targets if of_self(each))
    for call in source.of(ast.Call):
        if called(call) == "register_buffer" and len(call.args) > 1:
            name = getattr(call.args[0], "value", "")
            yield f"self.{name}", call.args[1]


def _filled(source: Source) -> Iterator[tuple[str, Meaning]]:
    """Yield `m[i, : len(s)] = 1` of a mask of zeros, and `m[i, : len(s)] = 0` of one of ones."""
    for scope in source.scopes:
        for name, value, _ in source.assigned(scope):
            if called(value) not in ("zeros", "zeros_like", "ones", "ones_like"):
                continue
            if not re.search(r"mask|pad|valid|keep", name, re.I):
                continue
            begins = called(value).startswith("ones")
            for node in source.of(ast.Assign):
                target = node.targets[0]
                if not isinstance(target, ast.Subscript) or dotted(target.value) != name:
                    continue
                is_begin = _is_begin_of_row(target.slice)
                put = getattr(node.value, "value", None)
                if source.scope(node) is scope and is_begin and put == (not begins):
                    yield name, Meaning.HIDDEN if begins else Meaning.REAL


def _is_begin_of_row(index: ast.expr) -> bool:
    """Whether an index is such as `i, : len(s)`: as many as this row has, not `:, : kept`."""
    if not isinstance(index, ast.Tuple) or len(index.elts) != 2:
        return False
    row, part = index.elts
    is_begin = isinstance(part, ast.Slice) and part.lower is None and part.upper is not None
    return is_begin and isinstance(row, ast.Name)


def triangle(source: Source, node: ast.Call) -> Meaning | None:
    """Return the meaning of a triangle of ones: the past, or what lies in the future."""
    given = tensor_of(node)
    given = given if given is None else resolved(source, source.scope(node), given)
    if given is None or called(given) not in ("ones", "ones_like"):
        return None
    diagonal = argument(node, 0, "diagonal", "k")
    offset = 0 if diagonal is None else whole(diagonal)
    return {
        ("tril", 0): Meaning.REAL,
        ("triu", 1): Meaning.HIDDEN,
        ("tril", -1): Meaning.BEFORE,
        ("triu", 0): Meaning.NOT_BEFORE,
    }.get((called(node), offset if offset is not None else 99))


def _is_wrapped(source: Source, name: str) -> bool:
    """Whether a call may pass another mask than the one of this name: `attention(q, k, ~mask)`."""
    return any(
        not dotted(value) and any(
            isinstance(node, ast.Name) and node.id == name for node in ast.walk(value)
        )
        for call in source.of(ast.Call)
        if called(call) not in ("masked_fill", "masked_fill_")
        for value in (*call.args, *(each.value for each in call.keywords if each.arg == name))
    ) or any(
        each.arg == name and dotted(each.value) != name
        for call in source.of(ast.Call) for each in call.keywords
    )  # fmt: skip


def behind_conversions(mask: ast.expr) -> ast.expr:
    """Return what a mask is computed from: `m` of `~m.bool()[:, None]` and of `m == 0`."""
    while True:
        if isinstance(mask, ast.Call) and isinstance(mask.func, ast.Attribute):
            mask = mask.func.value
        elif isinstance(mask, ast.Subscript):
            mask = mask.value
        elif isinstance(mask, ast.UnaryOp):
            mask = mask.operand
        elif isinstance(mask, ast.Compare):
            mask = mask.left
        else:
            return mask
