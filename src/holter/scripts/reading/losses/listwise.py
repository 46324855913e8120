"""Cross entropies of two distributions: their axes, masks and signs."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.expressions import axis_of, tensor_of
from holter.scripts.reading.source.objective import objectives
from holter.scripts.reading.source.origins import Frame, origins
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Pattern, Source, called, dotted, parameters_of

_INFINITE = re.compile(r"-\s*(float\('inf'\)|math\.inf|np\.inf|torch\.inf|inf\b)|float\('-inf'\)")
_HIDES = {"masked_fill", "masked_fill_", "where", "nan_to_num", "nansum", "masked_select", "clamp"}
_SAFE = re.compile(r"padding_value=|\binf\b.*pad_sequence", re.I)


@reads
def products(source: Source) -> Iterator[Pattern]:
    """`(softmax(y) * log_softmax(scores)).sum(1)` with other axes, or a mask in one of the two."""
    for node in source.of(ast.BinOp):
        if not isinstance(node.op, ast.Mult):
            continue
        for one, other in ((node.left, node.right), (node.right, node.left)):
            target, is_late = _softmax(source, one, "softmax")
            logs, is_filled = _softmax(source, other, "log_softmax")
            if logs is None:
                continue
            if target is not None:
                yield from _of_pair(source, node, target, logs)
            hides = is_filled or is_late or _is_hidden(source, node)
            if not hides and _fill(source, logs) == "infinite":
                yield source.pattern("infinite times zero", node, ast.unparse(other)[:40])


def _of_pair(
    source: Source, node: ast.BinOp, target: ast.Call, logs: ast.Call
) -> Iterator[Pattern]:
    axes = [axis_of(each, 0) for each in (target, logs)]
    if None not in axes and axes[0] != axes[1] and -1 not in axes:
        yield source.pattern("softmax of other axes", node, ast.unparse(logs)[:60])
        return
    if set(axes) == {-1, 0}:
        yield source.pattern("softmax of other axes", node, ast.unparse(logs)[:60])
        return
    fills = [_fill(source, each) for each in (target, logs)]
    given = [tensor_of(each) for each in (target, logs)]
    open_side = given[fills.index("")] if "" in fills else None
    names = parameters_of(source.scope(node))
    is_plain = isinstance(open_side, ast.Name) and open_side.id in names and (
        source.stores(source.scope(node), open_side.id) == 1
    )  # fmt: skip
    if any(fills) and is_plain and not _SAFE.search(source.code(source.tree)):
        yield source.pattern("mask on one side", node, dotted(open_side or node))


def _softmax(source: Source, node: ast.expr, name: str) -> tuple[ast.Call | None, bool]:
    """Return the softmax behind a factor, and whether a mask is laid over it later."""
    is_hidden = False
    for _ in range(6):
        if isinstance(node, ast.Name):
            found = list(origins(source, node, Frame(source.scope(node))))
            if len(found) != 1:
                return None, is_hidden
            node = found[0].node
        elif isinstance(node, ast.Call) and called(node) == name:
            return node, is_hidden
        elif isinstance(node, ast.Call) and called(node) in (*_HIDES, "detach", "float"):
            is_hidden = is_hidden or called(node) in _HIDES
            inner = tensor_of(node)
            if called(node) == "where" and len(node.args) > 1:
                inner = node.args[1]
            if inner is None:
                return None, is_hidden
            node = inner
        else:
            return None, is_hidden
    return None, is_hidden


def _fill(source: Source, call: ast.Call) -> str:
    """Return how the input of a softmax is masked: "infinite", "finite", or ""."""
    given: ast.expr | None = tensor_of(call)
    if isinstance(given, ast.Name):
        found = list(origins(source, given, Frame(source.scope(given))))
        given = found[0].node if len(found) == 1 else None
    for each in ast.walk(given) if given is not None else ():
        if called(each) in ("masked_fill", "where"):
            return "infinite" if _INFINITE.search(ast.unparse(each)) else "finite"
    return ""


def _is_hidden(source: Source, node: ast.AST) -> bool:
    """Whether a product is masked, or read at some places only, before it is summed."""
    for above in source.above(node):
        if called(above) in _HIDES or isinstance(above, ast.Subscript):
            return True
        if isinstance(above, ast.Assign):
            name = dotted(above.targets[0])
            return any(
                (called(each) in _HIDES or isinstance(each, ast.Subscript))
                and any(dotted(part) == name for part in ast.walk(each))
                for each in source.walk(source.scope(node))
                if each is not above
            )
        if isinstance(above, ast.stmt):
            return False
    return False


@reads
def rising(source: Source) -> Iterator[Pattern]:
    """A loss of `(target * log_softmax(scores)).sum(1).mean()` without a minus."""
    for terms in objectives(source):
        for term in terms:
            node = term.node
            if (
                term.sign <= 0
                or not isinstance(node, ast.BinOp)
                or not isinstance(node.op, ast.Mult)
            ):
                continue
            for one, other in ((node.left, node.right), (node.right, node.left)):
                target, _ = _softmax(source, one, "softmax")
                logs, _ = _softmax(source, other, "log_softmax")
                if target is None or logs is None:
                    continue
                if not _is_same(tensor_of(target) or target, tensor_of(logs) or logs):
                    yield source.pattern("reversed likelihood", node, ast.unparse(other)[:40])


def _is_same(one: ast.expr, other: ast.expr) -> bool:
    """Whether two distributions may be of the same scores, as in an entropy."""
    if isinstance(one, ast.Call) and isinstance(other, ast.Call):
        functions = [dotted(each.func) for each in (one, other)]
        if all("." not in each for each in functions) and functions[0] != functions[1]:
            return False
    names = [
        {each.id for each in ast.walk(part) if isinstance(each, ast.Name)} for part in (one, other)
    ]
    shared = {name for name in names[0] & names[1] if "mask" not in name}
    return bool(shared - {"F", "torch", "float", "tau", "T", "temperature"})
