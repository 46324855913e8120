"""Values that a mask fills in, and triangles of masks."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.expressions import argument, resolved, tensor_of, whole
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Pattern, Source, called, dotted

_FILLS = {"masked_fill", "masked_fill_"}
_SOFTMAX = {"softmax", "log_softmax"}
_LEAST = {"min", "amin", "argmin"}
_MASK = re.compile(r"mask|valid|keep|(^|_)adj|same|negatives?$|positives?$", re.I)
_DISTANCES = re.compile(r"dist|norm\(|\.abs\(|square|\bd2\b", re.I)
_ATTENTION = re.compile(r"softmax|scaled_dot_product_attention|attn|attention|MultiheadAttention")
_HIDING = re.compile(r"masked_fill|attn_mask|-float\('inf'\)|float\('-inf'\)|-(torch|math|np)\.inf")
# Keys have one position more than queries: a first token is put before them.
_ONE_MORE = re.compile(r"\+ 1\b.*tri[lu]|tri[lu].*\+ 1\b")


@reads
def not_neutral(source: Source) -> Iterator[Pattern]:
    """`scores.masked_fill(mask, 0).softmax(-1)`: e ** 0 is 1, so hidden positions have weight."""
    for call in source.of(ast.Call):
        name = called(call)
        is_least = name in _LEAST and argument(call, 0, "dim", "axis") is not None
        given = tensor_of(call) if is_least or name in _SOFTMAX else None
        if given is None:
            continue
        hidden, values = _zeroed(_latest(source, given))
        if values is None:
            continue
        if is_least and _DISTANCES.search(
            ast.unparse(values) + ast.unparse(_latest(source, values))
        ):
            yield source.pattern("zero before minimum", call, hidden)
        elif name in _SOFTMAX and not _is_masked_again(source, call, hidden):
            yield source.pattern("zero before softmax", call, hidden)


def _latest(source: Source, value: ast.expr) -> ast.expr:
    """Return what a name was assigned last before it is read, if that is certain."""
    if not isinstance(value, ast.Name):
        return value
    scope, around = source.scope(value), {*source.above(value)}
    made = [each for each in source.assigned(scope) if each[0] == value.id]
    before = [each for each in made if each[2].lineno < value.lineno]
    if not before or len(made) != source.stores(scope, value.id):
        return value
    _, latest, statement = max(before, key=lambda each: each[2].lineno)
    return latest if source.parent(statement) in around else value


def _zeroed(value: ast.expr) -> tuple[str, ast.expr | None]:
    """Return which elements a mask sets to 0, as it can be written, and the tensor."""
    if isinstance(value, ast.Call) and called(value) in _FILLS and len(value.args) == 2:
        if isinstance(value.func, ast.Attribute) and _is_zero(value.args[1]):
            return ast.unparse(value.args[0]), value.func.value
    elif isinstance(value, ast.Call) and called(value) == "where" and len(value.args) == 3:
        if _is_zero(value.args[2]):
            return f"~({ast.unparse(value.args[0])})", value.args[1]
    elif isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
        for mask, other in ((value.right, value.left), (value.left, value.right)):
            name = mask.func.value if isinstance(mask, ast.Call) and called(mask) == "float" and (
                isinstance(mask.func, ast.Attribute)) else mask  # fmt: skip
            if _MASK.search(dotted(name).rpartition(".")[2]):
                return f"{ast.unparse(name)} == 0", other
    return "", None


def _is_zero(value: ast.expr) -> bool:
    return (isinstance(value, ast.Constant) and value.value == 0) or called(value) == "zeros_like"


def _is_masked_again(source: Source, call: ast.Call, hidden: str) -> bool:
    """Whether the same mask is used after the softmax, which is then normalised again."""
    names = set(re.findall(r"[A-Za-z_]\w*", hidden))
    return any(
        isinstance(node, ast.Name | ast.Attribute)
        and dotted(node).rpartition(".")[2] in names
        and node.lineno >= call.lineno
        and node not in source.walk(call)
        and call not in source.above(node)
        for node in source.walk(source.scope(call))
    )


@reads
def off_diagonal(source: Source) -> Iterator[Pattern]:
    """`ones(T, T).tril(1)` as the causal mask: each position sees the next one."""
    for call in source.of(ast.Call):
        if called(call) not in ("tril", "triu"):
            continue
        offset = whole(argument(call, 0, "diagonal", "k"))
        if offset != {"tril": 1, "triu": 2}[called(call)]:
            continue
        given = tensor_of(call)
        given = given if given is None else resolved(source, source.scope(call), given)
        if given is None or called(given) not in ("ones", "ones_like", "full"):
            continue
        statement = next((each for each in source.above(call) if isinstance(each, ast.stmt)), call)
        is_band = len(re.findall(r"\btri[lu]\(", ast.unparse(statement))) > 1
        text = source.code(source.tree)
        if is_band or not _ATTENTION.search(text) or _ONE_MORE.search(text):
            continue
        if called(call) == "tril" or _HIDING.search(text):
            yield source.pattern("off diagonal", call, called(call))
