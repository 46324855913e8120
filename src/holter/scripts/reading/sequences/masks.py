"""Masks with the opposite of the meaning that is expected where they are used."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.sequences.mask_meaning import Masks, Meaning
from holter.scripts.reading.source.expressions import argument, resolved, tensor_of, whole
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Pattern, Source, called, dotted, parameters_of

_INFINITE = re.compile(r"^-[\w.(]*inf\b|^NEG(ATIVE)?_INF(INITY)?$", re.I)
_LEAST = -100.0  # as large as a score that gets no weight
_OF_TORCH = re.compile(r"^(MultiheadAttention|Transformer(Encoder|Decoder)?(Layer)?)$")
_PADDING_ARGUMENTS = {"key_padding_mask", "src_key_padding_mask", "tgt_key_padding_mask"}
_PADDING_ARGUMENTS |= {"memory_key_padding_mask"}
_ATTENTION_ARGUMENTS = {"attn_mask", "mask", "src_mask", "tgt_mask"}
_ARGUMENTS = _PADDING_ARGUMENTS | _ATTENTION_ARGUMENTS
# The arguments of torch's layers by place, where one of them is a mask.
_PLACES = {
    "MultiheadAttention": ("", "", "", "key_padding_mask", "", "attn_mask"),
    "TransformerEncoder": ("", "mask", "src_key_padding_mask"),
    "TransformerEncoderLayer": ("", "src_mask", "src_key_padding_mask"),
}
_FILLS = {"masked_fill", "masked_fill_"}
_PLAIN = "scaled_dot_product_attention"
_REVERSED = re.compile(r"revers|backward_(lm|model)|flip\(|anti_?causal|right_to_left", re.I)
_RESCUED = re.compile(r"nan_to_num|fill_diagonal_|isnan|is_causal=True")


@reads
def inverted(source: Source) -> Iterator[Pattern]:
    """Masks of real positions where what is True is hidden, or the reverse."""
    uses = [*_filled(source), *_passed(source)]
    if not uses:
        return
    masks = Masks(source)
    rescued = _RESCUED.search(source.code(source.tree))
    for node, mask, hides, is_infinite in uses:
        meaning = masks.meaning(mask, source.scope(node))
        if meaning is None:
            continue
        hidden = meaning if hides else meaning.opposite
        is_backwards = hidden is Meaning.BEFORE and not _REVERSED.search(source.code(source.tree))
        if hidden is Meaning.REAL or is_backwards:
            yield source.pattern("inverted mask", node, ast.unparse(mask))
        elif hidden is Meaning.NOT_BEFORE and is_infinite and not rescued:
            yield source.pattern("row without keys", node, ast.unparse(mask))


_Use = tuple[ast.AST, ast.expr, bool, bool]  # place, mask, hides what is True, with infinity


def _filled(source: Source) -> Iterator[_Use]:
    """Yield the masks by which scores get the value that a softmax turns into no weight."""
    for call in source.of(ast.Call):
        if called(call) in _FILLS and len(call.args) == 2 and _is_least(call.args[1]):
            if _has_softmax(source, call):
                yield call, call.args[0], True, _is_infinite(call.args[1])
        elif called(call) == "where" and len(call.args) == 3 and _has_softmax(source, call):
            mask, true, false = call.args
            if _is_least(true) != _is_least(false):
                filled = true if _is_least(true) else false
                yield call, mask, filled is true, _is_infinite(filled)
    for assign in source.of(ast.Assign):
        target = assign.targets[0]
        if not isinstance(target, ast.Subscript) or not _is_least(assign.value):
            continue
        if _has_softmax(source, assign):
            yield assign, target.slice, True, _is_infinite(assign.value)
    for product in source.of(ast.BinOp):
        if isinstance(product.op, ast.Mult) and _has_softmax(source, product):
            for mask, value in ((product.left, product.right), (product.right, product.left)):
                if _is_least(value):
                    yield product, mask, True, False  # infinity times 0 is no mask at all


def _passed(source: Source) -> Iterator[_Use]:
    """Yield the masks that attention layers of torch are given."""
    layers = _layers_of_torch(source)
    own = {name for scope in source.scopes for name in parameters_of(scope)}
    is_boolean = "bool" in source.code(source.tree)
    for call in source.of(ast.Call):
        name = called(call)
        if name == _PLAIN:
            given = [*(k.value for k in call.keywords if k.arg == "attn_mask"), *call.args[3:4]]
            yield from ((call, mask, False, is_boolean) for mask in given)
            continue
        kind = layers.get(name, "")
        pairs = [(each.arg or "", each.value) for each in call.keywords]
        if kind in _PLACES and not any(isinstance(each, ast.Starred) for each in call.args):
            pairs += zip(_PLACES[kind], call.args, strict=False)
        for parameter, mask in pairs:
            # `mask` may be an argument of anything.
            is_torch = kind or (parameter in _PADDING_ARGUMENTS and parameter not in own)
            if is_torch and parameter in _ARGUMENTS:
                yield call, mask, True, parameter in _ATTENTION_ARGUMENTS


def _layers_of_torch(source: Source) -> dict[str, str]:
    """Return the names and attributes that are attention layers of torch wherever assigned."""
    kinds: dict[str, set[str]] = {}
    for node in source.of(ast.Assign):
        is_layer = source.makes_module(node.value) and _OF_TORCH.match(called(node.value))
        for target in node.targets:
            name = dotted(target).rpartition(".")[2]
            kinds.setdefault(name, set()).add(called(node.value) if is_layer else "")
    return {name: every.pop() for name, every in kinds.items() if name and len(every) == 1}


def _has_softmax(source: Source, node: ast.AST) -> bool:
    """Whether the function around a node, or its class, has a softmax."""
    scope = source.scope(node)
    body = source.parent(scope)
    around = body if isinstance(body, ast.ClassDef) else scope
    return any("softmax" in called(each).lower() for each in source.walk(around))


def _is_infinite(node: ast.expr) -> bool:
    text = ast.unparse(node).replace("'", "").replace('"', "").replace(" ", "")
    return bool(_INFINITE.search(text.removeprefix("float(")))


def _is_least(node: ast.expr) -> bool:
    text = ast.unparse(node).replace("'", "").replace('"', "").replace(" ", "")
    if _is_infinite(node) or re.search(r"-[\w.(]*inf\b", text):
        return True
    if "finfo" in text and "min" in text:
        return True
    try:
        return float(text) <= _LEAST
    except ValueError:
        return False


@reads
def emptied(source: Source) -> Iterator[Pattern]:
    """`triu(full((T, T), -inf))`: without `diagonal=1`, the first position has no key at all."""
    for call in source.of(ast.Call):
        if called(call) != "triu" or _RESCUED.search(source.code(source.tree)):
            continue
        given, diagonal = tensor_of(call), argument(call, 0, "diagonal", "k")
        given = given if given is None else resolved(source, source.scope(call), given)
        is_whole = diagonal is None or whole(diagonal) == 0
        if given is None or not is_whole or not _is_filled_with_infinity(given):
            continue
        if re.search(r"softmax|attention|Transformer", source.code(source.tree), re.I):
            yield source.pattern("row without keys", call, ast.unparse(call))


def _is_filled_with_infinity(value: ast.expr) -> bool:
    """Whether an expression is `full((T, T), -inf)`, or ones times that."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
        sides = (value.left, value.right)
        return any(map(_is_infinite, sides)) and any(called(each) == "ones" for each in sides)
    return (
        isinstance(value, ast.Call)
        and called(value) in ("full", "full_like")
        and len(value.args) > 1
        and _is_infinite(value.args[1])
    )


@reads
def padding_alone(source: Source) -> Iterator[Pattern]:
    """`(loss * is_pad).sum() / is_pad.sum()`: a mean over the padding, of a loss or of states."""
    masks: Masks | None = None
    for node in source.of(ast.BinOp):
        if not isinstance(node.op, ast.Div):
            continue
        counted = _summed(node.right)
        total = _summed(node.left)
        if (
            counted is None
            or not isinstance(total, ast.BinOp)
            or not isinstance(total.op, ast.Mult)
        ):
            continue
        for factor in (total.left, total.right):
            if ast.unparse(_bare(factor)) != ast.unparse(_bare(counted)):
                continue
            masks = masks or Masks(source)
            if masks.meaning(factor, source.scope(node)) is Meaning.HIDDEN:
                yield source.pattern("padding alone", node, ast.unparse(_bare(factor)))


def _summed(node: ast.expr) -> ast.expr | None:
    """Return what an expression is the sum of: `(x * m).sum(1)`, `m.sum().clamp(min=1)`."""
    while isinstance(node, ast.Call):
        if called(node) == "sum":
            return tensor_of(node)
        if called(node) == "max" and len(node.args) == 2:
            node = next((each for each in node.args if called(each) == "sum"), node.args[0])
            continue
        if not isinstance(node.func, ast.Attribute):
            return None
        node = node.func.value
    return None


def _bare(node: ast.expr) -> ast.expr:
    """Return a mask without its conversions: `m.unsqueeze(-1).float()`."""
    while True:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        elif isinstance(node, ast.Subscript):
            node = node.value
        else:
            return node
