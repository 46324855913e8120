"""Masks with the opposite of the meaning that is expected where they are used."""

import ast
import re
from collections.abc import Iterator
from enum import Enum

from holter.scripts.reading.source import Pattern, Source, called, dotted, parameters_of

# The number that fills a sequence up; not `is_pad`, `padded` or `pad_mask`.
_PADDING = re.compile(
    r"^(?!is_|not_|no_|n_|num_)(\w+_)?pad(ding)?(_?(id|idx|index|token|token_id|value|symbol))?$",
    re.I,
)
_MINUS_INFINITY = re.compile(r"-[\w.(]*inf\b|^NEG(ATIVE)?_INF(INITY)?$", re.I)
_OF_TORCH = re.compile(r"^(MultiheadAttention|Transformer(Encoder|Decoder)?(Layer)?)$")
_PADDING_ARGUMENTS = {"key_padding_mask", "src_key_padding_mask", "tgt_key_padding_mask"}
_PADDING_ARGUMENTS |= {"memory_key_padding_mask"}
_ATTENTION_ARGUMENTS = {"attn_mask", "mask", "src_mask", "tgt_mask"}
_ARGUMENTS = _PADDING_ARGUMENTS | _ATTENTION_ARGUMENTS
_FILLS = {"masked_fill", "masked_fill_"}
_SAME = {"unsqueeze", "view", "expand", "bool", "to", "reshape", "squeeze", "repeat", "expand_as"}
_SAME |= {"cuda", "clone", "detach", "contiguous"}


class Meaning(Enum):
    """What True means in a mask."""

    REAL = "the positions to keep"
    HIDDEN = "the positions to hide"

    @property
    def opposite(self) -> "Meaning":
        """The other one."""
        return Meaning.HIDDEN if self is Meaning.REAL else Meaning.REAL


def inverted(source: Source) -> Iterator[Pattern]:
    """Masks of real positions where torch hides what is True, or the reverse."""
    everywhere = _meanings(source)
    layers = _layers_of_torch(source)
    for node in source.of(ast.Call):
        name = called(node)
        if name not in _FILLS and not any(each.arg in _ARGUMENTS for each in node.keywords):
            continue
        names = _known_in(source, source.scope(node), everywhere)
        if name in _FILLS and len(node.args) == 2:
            if (
                _is_minus_infinity(node.args[1])
                and _meaning(node.args[0], names) is Meaning.REAL
                and _has_softmax(source.scope(node))
            ):
                yield source.pattern("inverted mask", node, ast.unparse(node.args[0]))
            continue
        for keyword in node.keywords:
            meaning = _meaning(keyword.value, names)
            wanted = Meaning.HIDDEN
            if keyword.arg in _ATTENTION_ARGUMENTS:
                is_plain = name == "scaled_dot_product_attention"
                wanted = Meaning.REAL if is_plain else Meaning.HIDDEN
                if not is_plain and name not in layers:
                    continue  # `mask` may be an argument of anything
            elif name not in layers or keyword.arg not in _PADDING_ARGUMENTS:
                continue
            if meaning is wanted.opposite:
                yield source.pattern("inverted mask", node, ast.unparse(keyword.value))


def _layers_of_torch(source: Source) -> set[str]:
    """Return the names and attributes that are attention layers of torch wherever assigned."""
    layers: set[str] = set()
    others: set[str] = set()
    for node in source.of(ast.Assign):
        names = {dotted(target).rpartition(".")[2] for target in node.targets}
        is_layer = source.makes_module(node.value) and _OF_TORCH.match(called(node.value))
        (layers if is_layer else others).update(names)
    return layers - others - {""}


def _has_softmax(scope: ast.AST) -> bool:
    return any("softmax" in called(node).lower() for node in ast.walk(scope))


def _known_in(source: Source, scope: ast.AST, everywhere: dict[str, Meaning]) -> dict[str, Meaning]:
    """Return the names whose meaning holds in a scope.

    A parameter has the meaning that its name has elsewhere, unless a call passes another mask.
    """
    taken = set(parameters_of(scope))
    known = {}
    for name, meaning in everywhere.items():
        assigned = sum(other == name for other, *_ in source.assigned(scope))
        bound = source.stores(scope, name)
        is_handed = name in taken and bound == 1 and not _is_changed_in_calls(source, scope, name)
        if is_handed or (assigned and assigned == bound) or (name not in taken and not bound):
            known[name] = meaning
    return known


def _is_changed_in_calls(source: Source, scope: ast.AST, name: str) -> bool:
    """Whether a call may pass another mask than the one of this name to a parameter of the name."""
    place = parameters_of(scope).index(name)
    place -= isinstance(source.parent(scope), ast.ClassDef)
    function = getattr(scope, "name", "")
    for call in source.of(ast.Call):
        if called(call) in _FILLS:
            continue
        passed = [each.value for each in call.keywords if each.arg == name]
        if called(call) == function:
            passed += call.args[place : place + 1]
        if any(dotted(value) != name for value in passed):
            return True
        if any(not dotted(value) and _mentions(value, name) for value in call.args):
            return True  # `attention(q, k, ~mask)`
    return False


def _mentions(value: ast.expr, name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(value))


def _meanings(source: Source) -> dict[str, Meaning]:
    """Return what names mean that have one meaning wherever they are assigned."""
    found: dict[str, set[Meaning | None]] = {}
    for _ in range(2):
        known = {name: next(iter(all_)) for name, all_ in found.items() if len(all_) == 1}
        names = {name: meaning for name, meaning in known.items() if meaning is not None}
        found = {}
        for scope in source.scopes:
            for name, value, _ in source.assigned(scope):
                found.setdefault(name, set()).add(_meaning(value, names))
    return {
        name: meaning
        for name, every in found.items()
        if len(every) == 1 and (meaning := next(iter(every))) is not None
    }


def _meaning(node: ast.expr, names: dict[str, Meaning]) -> Meaning | None:
    """Return what True means in an expression, or None."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Subscript):
        return _meaning(node.value, names)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert | ast.Not):
        inner = _meaning(node.operand, names)
        return None if inner is None else inner.opposite
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return _compared(node, names)
    if isinstance(node, ast.Call):
        if called(node) == "logical_not" and node.args:
            inner = _meaning(node.args[0], names)
            return None if inner is None else inner.opposite
        if called(node) in _SAME and isinstance(node.func, ast.Attribute):
            return _meaning(node.func.value, names)
        if called(node) in ("tril", "triu"):
            return _triangle(node)
    return None


def _compared(node: ast.Compare, names: dict[str, Meaning]) -> Meaning | None:
    (operation,), (right,) = node.ops, node.comparators
    if isinstance(operation, ast.NotEq | ast.Eq):
        equal = isinstance(operation, ast.Eq)
        if any(_PADDING.search(dotted(side).rpartition(".")[2]) for side in (node.left, right)):
            return Meaning.HIDDEN if equal else Meaning.REAL
        inner = _meaning(node.left, names)
        if inner is not None and isinstance(right, ast.Constant) and right.value in (0, 1):
            return inner if equal == bool(right.value) else inner.opposite
        return None
    if _is_positions(node.left) and "len" in ast.unparse(right).lower():
        if isinstance(operation, ast.Lt):
            return Meaning.REAL
        if isinstance(operation, ast.GtE):
            return Meaning.HIDDEN
    return None


def _is_positions(node: ast.expr) -> bool:
    return any(called(each) == "arange" for each in ast.walk(node))


def _triangle(node: ast.Call) -> Meaning | None:
    """Return the meaning of a triangle of ones: the past, or what lies in the future."""
    function = node.func
    arguments = list(node.args)
    if isinstance(function, ast.Attribute) and dotted(function.value) != "torch":
        arguments = [function.value, *arguments]
    if not arguments or called(arguments[0]) not in ("ones", "ones_like"):
        return None
    diagonal: ast.expr | None = arguments[1] if len(arguments) > 1 else None
    for keyword in node.keywords:
        if keyword.arg == "diagonal":
            diagonal = keyword.value
    offset = 0 if diagonal is None else getattr(diagonal, "value", None)
    if called(node) == "tril" and offset == 0:
        return Meaning.REAL
    if called(node) == "triu" and offset == 1:
        return Meaning.HIDDEN
    return None


def _is_minus_infinity(node: ast.expr) -> bool:
    text = ast.unparse(node).replace("'", "").replace('"', "").replace(" ", "")
    if _MINUS_INFINITY.search(text) or ("finfo" in text and "min" in text):
        return True
    try:
        return bool(float(text) <= -1e4)
    except ValueError:
        return False
