"""Parameter groups of an optimizer: which of them decay."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.expressions import number
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Pattern, Source, called, dotted

_EXEMPT = re.compile(r"bias|norm|\bln\b|\.ln|bn\b|no_?decay|skip_list|embed", re.I)
_DECAY = re.compile(r"^(wd|weight_?decay|decay|l2)$", re.I)


@reads
def inverted_decay(source: Source) -> Iterator[Pattern]:
    """`wd = 0.01 if name.endswith("bias") else 0.0`: only biases and norms decay."""
    for node in source.of(ast.IfExp):
        polarity = _is_of_exempt(source, node.test)
        if polarity is None or not _is_of_decay(source, node):
            continue
        body, other = (_is_zero(source, each) for each in (node.body, node.orelse))
        if body is None or other is None or body == other:
            continue
        if body is not polarity:
            yield source.pattern("inverted decay", node, ast.unparse(node.test)[:60])
    for group in source.of(ast.Dict):
        options = {getattr(key, "value", ""): value
                   for key, value in zip(group.keys, group.values, strict=True)}  # fmt: skip
        members, decay = options.get("params"), options.get("weight_decay")
        zero = None if decay is None else _is_zero(source, decay)
        if members is None or zero is None:
            continue
        exempt = _members(source, members)
        if exempt is not None and exempt is not zero and _has_opposite(source, group):
            yield source.pattern("inverted decay", group, ast.unparse(members)[:60])


def _is_zero(source: Source, value: ast.expr) -> bool | None:
    """Whether a decay is 0; None if it is not known to be a decay."""
    if isinstance(value, ast.Constant) and type(value.value) in (int, float):
        return value.value == 0
    if not dotted(value):
        return None
    known = number(source, value)
    return False if known is None else known == 0


def _is_of_decay(source: Source, node: ast.IfExp) -> bool:
    above = source.parent(node)
    if isinstance(above, ast.Assign):
        return bool(_DECAY.match(dotted(above.targets[0]).rpartition(".")[2]))
    if isinstance(above, ast.keyword):
        return above.arg == "weight_decay"
    if isinstance(above, ast.Dict):
        pairs = zip(above.keys, above.values, strict=True)
        return [getattr(key, "value", "") for key, value in pairs if value is node] == [
            "weight_decay"
        ]
    return False


def _is_of_exempt(source: Source, test: ast.expr) -> bool | None:
    """Whether a condition is true for biases and norms, or false for them; None if for neither."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = _is_of_exempt(source, test.operand)
        return None if inner is None else not inner
    if isinstance(test, ast.BoolOp):
        parts = {_is_of_exempt(source, each) for each in test.values}
        return parts.pop() if len(parts) == 1 else None
    if called(test) == "any" and isinstance(test, ast.Call) and test.args:
        inside = test.args[0]
        if isinstance(inside, ast.GeneratorExp | ast.ListComp):
            listed = ast.unparse(inside.generators[0].iter)
            words = [ast.unparse(each) for each in source.named(listed.rpartition(".")[2])]
            about = " ".join([listed, *words])
            found = _is_of_exempt(source, inside.elt)
            is_in = isinstance(inside.elt, ast.Compare) and isinstance(inside.elt.ops[0], ast.In)
            return True if found or (is_in and _EXEMPT.search(about)) else None
    if called(test) in ("endswith", "startswith") and isinstance(test, ast.Call) and test.args:
        return True if re.search(r"bias|norm|ln|bn", ast.unparse(test.args[0]), re.I) else None
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return _compared(test)
    return None


def _compared(test: ast.Compare) -> bool | None:
    left, right, operation = test.left, test.comparators[0], test.ops[0]
    if isinstance(operation, ast.In | ast.NotIn):
        if not _EXEMPT.search(ast.unparse(left)) and not re.search(
            r"no_decay|skip", ast.unparse(right)
        ):
            return None
        return isinstance(operation, ast.In)
    is_rank = re.search(r"\.(ndim|dim\(\))$|^len\([\w.]+\.(shape|size\(\))\)$", ast.unparse(left))
    bound = getattr(right, "value", None)
    if not is_rank or bound not in (1, 2):
        return None
    below = {(ast.Lt, 2), (ast.LtE, 1), (ast.Eq, 1)}
    if (type(operation), bound) in below:
        return True
    above = {(ast.GtE, 2), (ast.Gt, 1), (ast.NotEq, 1)}
    return False if (type(operation), bound) in above else None


def _members(source: Source, value: ast.expr) -> bool | None:
    """Whether a list is of biases and norms, by the condition of its comprehension."""
    if isinstance(value, ast.Name):
        known = source.named(value.id)
        if len(known) != 1:
            return None
        value = known[0]
    if not isinstance(value, ast.ListComp | ast.GeneratorExp) or len(value.generators) != 1:
        return None
    tests = value.generators[0].ifs
    found = {_is_of_exempt(source, each) for each in tests} - {None}
    return found.pop() if len(found) == 1 and len(tests) == 1 else None


def _has_opposite(source: Source, group: ast.Dict) -> bool:
    """Whether the list around a group has one that decays, and one that does not."""
    above = source.parent(group)
    if not isinstance(above, ast.List | ast.Tuple):
        return False
    decays = {
        _is_zero(source, value)
        for each in above.elts
        if isinstance(each, ast.Dict)
        for key, value in zip(each.keys, each.values, strict=True)
        if getattr(key, "value", "") == "weight_decay"
    }
    return decays == {True, False}
