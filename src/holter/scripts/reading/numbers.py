"""Numbers in a type, or after a division, that leaves nothing of them."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source import Function, Pattern, Source, called, dotted
from holter.scripts.reading.values import number

_STAMP = 1e9  # seconds since 1970, from 2001 on
_LARGEST_STAMP = 4e9
_SINGLE = {"float32", "FloatTensor", "float16", "half"}
_CASTS = {"astype", "to", "type", "tensor", "as_tensor", "array", "asarray"}
_SENTINEL = re.compile(r"^-?9{3,7}(\.0)?$")
_GAPS = re.compile(r"missing|gap|unknown|absent|(^|_)na(n|ns)?($|_)|lost|drop", re.I)
_STEP = re.compile(r"^(global_)?(step|it|iter|iteration|update|batch_idx)$", re.I)
_TOTAL = re.compile(r"^(total|(total|max|num|n)_?(steps|iters|iterations|updates))$", re.I)
_SEEKING = {"isnan", "nan_to_num", "nanmean", "nanmedian", "fillna", "isna", "isnull", "dropna"}
_LOWEST = 32  # a constant that is taken from pixels, not from labels


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
    if called(node) not in _CASTS or not is_single:
        return False
    given = node.func.value if called(node) in ("astype", "to", "type") and isinstance(
        node.func, ast.Attribute) else node.args[0]  # fmt: skip
    return isinstance(given, ast.Name | ast.Attribute | ast.Subscript)


def _is_whole_cast(value: ast.expr, name: str) -> bool:
    """Whether a statement is `w = w.astype(np.float32)`: of a time, by its name or by itself."""
    names = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
    return name in names or bool(re.search(r"stamp|time|clock|when|unix", name, re.I))


def wrapped_pixels(source: Source) -> Iterator[Pattern]:
    """`image - 128` of bytes: everything below 128 becomes large."""
    small = _small_names(source)
    if not small:
        return
    for node in source.of(ast.BinOp):
        left, right = node.left, node.right
        if isinstance(node.op, ast.Sub) and _is_small(source, left, small):
            value = number(source, right) if isinstance(right, ast.Constant | ast.Name) else None
            is_whole = value is not None and value == int(value) and _LOWEST <= value <= 255
            if is_whole and not (isinstance(right, ast.Constant) and type(right.value) is float):
                yield source.pattern("wrapped bytes", node, ast.unparse(left))
        elif isinstance(node.op, ast.Add) and _is_cast(left) != _is_cast(right):
            other = right if _is_cast(left) else left
            if isinstance(other, ast.Name) and "noise" in ast.unparse(node).lower():
                yield source.pattern("wrapped bytes", node, ast.unparse(other))


def _is_cast(node: ast.expr) -> bool:
    return called(node) in ("astype", "to", "type") and "uint8" in ast.unparse(node).rpartition(
        called(node))[2]  # fmt: skip


def _makes_bytes(node: ast.expr) -> bool:
    if _is_cast(node) or called(node) == "byte":
        return True
    return isinstance(node, ast.Call) and any(
        keyword.arg == "dtype" and "uint8" in ast.unparse(keyword.value)
        for keyword in node.keywords
    )


def _small_names(source: Source) -> set[str]:
    """Return names and attributes that are arrays of bytes wherever they are assigned."""
    small: set[str] = set()
    for _ in range(4):
        found: dict[str, set[bool]] = {}
        for node in source.of(ast.Assign):
            for target in node.targets:
                name = _key(source, target)
                if name:
                    of_bytes = _makes_bytes(node.value) or _is_small(source, node.value, small)
                    keeps = called(node.value) in _KEEPING and any(
                        _key(source, each) == name for each in source.walk(node.value)
                    )
                    found.setdefault(name, set()).add(of_bytes or keeps)
        for function in source.of(*Function.__args__):
            values = [each.value for each in source.walk(function) if isinstance(each, ast.Return)
                      and source.scope(each) is function]  # fmt: skip
            if values:
                found[function.name] = {
                    each is not None and (_makes_bytes(each) or _is_small(source, each, small))
                    for each in values
                }
        small = {name for name, kinds in found.items() if kinds == {True}}
    return small


_KEEPING = {"roll", "flip", "copy", "clone", "pad", "ascontiguousarray", "transpose"}


def _key(source: Source, node: ast.AST) -> str:
    """Return a name with its scope, an attribute as it is written, or ""."""
    if not isinstance(node, ast.Name):
        return dotted(node)
    scope = source.scope(node)
    is_own = scope is not source.tree and source.stores(scope, node.id)
    return f"{node.id} of {id(scope)}" if is_own else node.id


def _is_small(source: Source, node: ast.expr, small: set[str]) -> bool:
    """Whether an expression is bytes: a known name, a part of it, or a whole multiple."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return (
            _is_small(source, node.left, small)
            and isinstance(node.right, ast.Constant)
            and (type(node.right.value) is int)
        )
    if isinstance(node, ast.Call):
        if called(node) == "stack" and node.args and isinstance(node.args[0], ast.ListComp):
            return _is_small(source, node.args[0].elt, small)
        return isinstance(node.func, ast.Name) and node.func.id in small
    while isinstance(node, ast.Subscript):
        node = node.value
    return _key(source, node) in small


def zero_share(source: Source) -> Iterator[Pattern]:
    """`t // T` of `t = randint(0, T)`, or `step // total_steps`: 0 throughout."""
    ranges = set(_ranges(source))
    for node in source.of(ast.BinOp):
        if not isinstance(node.op, ast.FloorDiv):
            continue
        what, by = dotted(node.left).rpartition(".")[2], ast.unparse(node.right)
        last = dotted(node.right).rpartition(".")[2]
        is_progress = _STEP.match(what) and _TOTAL.match(last)
        if not what or not ((what, by) in ranges or is_progress):
            continue
        if not _is_index(source, node):
            yield source.pattern("rounded share", node, ast.unparse(node))


def _ranges(source: Source) -> Iterator[tuple[str, str]]:
    """Yield names whose values are below a bound, with the bound, wherever they are bound."""
    found: dict[str, set[str]] = {}
    for node in source.of(ast.Assign):
        target, value = node.targets[0], node.value
        name, bound = dotted(target), ""
        if called(value) == "randint" and isinstance(value, ast.Call):
            numbers = [each for each in value.args if not isinstance(each, ast.Tuple)]
            bound = ast.unparse(numbers[1 if len(numbers) > 1 else 0]) if numbers else ""
        if name:
            found.setdefault(name, set()).add(bound)
    for name, bounds in found.items():
        yield from ((name, bound) for bound in bounds if bound)


def _is_index(source: Source, node: ast.AST) -> bool:
    """Whether a quotient is a place, a number of turns, or compared: not a share."""
    for above in source.above(node):
        if isinstance(above, ast.Subscript | ast.Compare | ast.FormattedValue):
            return True
        if isinstance(above, ast.Call) and called(above) in ("range", "print", "embedding"):
            return True
        if isinstance(above, ast.stmt):
            return False
    return False


def kept_sentinels(source: Source) -> Iterator[Pattern]:
    """`x[missing] = -999` in a file that looks for NaN, and never for -999."""
    compared = {_text(side) for node in source.of(ast.Compare)
                for side in (node.left, *node.comparators)}  # fmt: skip
    handled = {_text(each) for call in source.of(ast.Call)
               for each in (*call.args, *(keyword.value for keyword in call.keywords))}  # fmt: skip
    seeks_nan = any(called(call) in _SEEKING for call in source.of(ast.Call))
    for node in source.of(ast.Assign):
        text = _text(node.value)
        if not _SENTINEL.match(text) or not isinstance(node.targets[0], ast.Subscript):
            continue
        index = ast.unparse(node.targets[0].slice)
        is_gap = _GAPS.search(index) or re.search(r"\b(rand|random|uniform)\(", index)
        size = abs(float(text))
        is_sought = any(_magnitude(each) >= 0.5 * size for each in compared)
        is_sought = is_sought or any(_magnitude(each) == size for each in handled)
        if seeks_nan and is_gap and not is_sought:
            yield source.pattern("kept sentinel", node, text)


def _text(node: ast.expr) -> str:
    return ast.unparse(node) if isinstance(node, ast.Constant | ast.UnaryOp) else ""


def _magnitude(text: str) -> float:
    try:
        return abs(float(text))
    except ValueError:
        return 0.0
