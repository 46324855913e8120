"""Borders of groups, counts of parts, degrees at both ends, and channels that are joined twice."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source import Function, Pattern, Source, called, dotted
from holter.scripts.reading.values import axis_of, number, resolved, tensor_of

_WHERE = {"flatnonzero", "where", "nonzero", "argwhere"}
_SHAPES = {"size", "shape", "numel", "len"}
_TRAINING = re.compile(
    r"(self\.)?(is_)?(train|training)|(self\.)?(split|mode|phase) == '(train|training)'"
)
_OVERLAP = re.compile(r"dice|iou|jaccard|tversky", re.I)


def early_cuts(source: Source) -> Iterator[Pattern]:
    """`np.split(x, np.flatnonzero(np.diff(ids)))`: each group ends one row too early."""
    for call in source.of(ast.Call):
        if called(call) not in ("split", "tensor_split") or len(call.args) < 2:
            continue
        cuts = resolved(source, source.scope(call), call.args[1])
        if isinstance(cuts, ast.Subscript):
            cuts = cuts.value
        if called(cuts) in _WHERE and isinstance(cuts, ast.Call) and cuts.args:
            inner = resolved(source, source.scope(call), cuts.args[0])
            if isinstance(inner, ast.Compare):
                inner = inner.left if called(inner.left) == "diff" else inner
            text = ast.unparse(inner)
            is_change = isinstance(inner, ast.Compare) and re.fullmatch(
                r"(\w+)\[1:\] != \1\[:-1\]|(\w+)\[:-1\] != \2\[1:\]", text
            )
            prepends = "prepend" in text or "append" in text
            if (called(inner) == "diff" and not prepends) or is_change:
                yield source.pattern("cut too early", call, ast.unparse(cuts)[:50])


def share_of_all(source: Source) -> Iterator[Pattern]:
    """`(pred == y[mask]).sum() / n` where `n` counts every row."""
    for node in source.of(ast.BinOp):
        if not isinstance(node.op, ast.Div):
            continue
        count = node.left
        while isinstance(count, ast.Call) and called(count) in ("item", "float", "int"):
            count = count.func.value if isinstance(count.func, ast.Attribute) else count.args[0]
        if called(count) != "sum" or not isinstance(count, ast.Call):
            continue
        compare = tensor_of(count)
        if not isinstance(compare, ast.Compare) or not isinstance(compare.ops[0], ast.Eq):
            continue
        chosen = [each for each in (compare.left, compare.comparators[0])
                  if isinstance(each, ast.Subscript) and re.search(
                      "mask|idx|index", ast.unparse(each.slice))]  # fmt: skip
        if not chosen:
            continue
        mask, whole = ast.unparse(chosen[0].slice), dotted(chosen[0].value)
        total = resolved(source, source.scope(node), node.right)
        text = ast.unparse(total)
        is_count = any(word in text for word in _SHAPES)
        if is_count and mask not in text and (whole in text or _is_of_nodes(source, total)):
            yield source.pattern("share of all rows", node, ast.unparse(node.right))


def _is_of_nodes(source: Source, total: ast.expr) -> bool:
    """Whether a number is the length of a table of the module, which masks are made for."""
    if called(total) != "len" or not isinstance(total, ast.Call) or not total.args:
        return False
    name = dotted(total.args[0])
    numbers = {dotted(node.targets[0]) for node in source.of(ast.Assign) if node.value is total}
    return bool(name) and any(
        called(call) in ("zeros", "full") and call.args and dotted(call.args[0]) in numbers
        and "bool" in ast.unparse(call)
        for call in source.of(ast.Call)
    )  # fmt: skip


def inverse_at_both_ends(source: Source) -> Iterator[Pattern]:
    """`inv = deg.pow(-1)` and `inv[row] * inv[col]`: D^-1 A D^-1, not D^-1/2 A D^-1/2."""
    for node in source.of(ast.BinOp):
        if not isinstance(node.op, ast.Mult):
            continue
        sides = (node.left, node.right)
        if not all(isinstance(each, ast.Subscript) for each in sides):
            continue
        left, right = (each for each in sides if isinstance(each, ast.Subscript))
        name = dotted(left.value)
        if not name or name != dotted(right.value):
            continue
        if ast.unparse(left.slice) == ast.unparse(right.slice):
            continue
        value = resolved(source, source.scope(node), left.value)
        if _is_inverse(source, value):
            yield source.pattern("inverse at both ends", node, name)


def _is_inverse(source: Source, value: ast.expr) -> bool:
    """Whether a value is 1 over a degree: `deg.pow(-1)`, `deg ** -1`, `1.0 / deg`."""
    base: ast.expr | None = None
    if isinstance(value, ast.Call) and called(value) in ("pow", "power"):
        power = value.args[-1] if value.args else None
        base = tensor_of(value) if number(source, power) == -1 else None
    elif isinstance(value, ast.BinOp) and isinstance(value.op, ast.Pow):
        base = value.left if number(source, value.right) == -1 else None
    elif isinstance(value, ast.BinOp) and isinstance(value.op, ast.Div):
        base = value.right if number(source, value.left) == 1 else None
    elif called(value) == "reciprocal" and isinstance(value, ast.Call):
        base = tensor_of(value)
    text = ast.unparse(base) if base is not None else ""
    return bool(re.search(r"deg", text, re.I)) and "sqrt" not in text


def joined_twice(source: Source) -> Iterator[Pattern]:
    """`b = self.up(c)` and `torch.cat([b, b], 1)`, where `b` was the skip connection before."""
    for call in source.of(ast.Call):
        function = source.scope(call)
        if called(call) not in ("cat", "concat") or axis_of(call) not in (1, -1, -3):
            continue
        parts = tensor_of(call)
        if not isinstance(parts, ast.List | ast.Tuple) or len(parts.elts) != 2:
            continue
        first, second = parts.elts
        if not isinstance(first, ast.Name) or dotted(second) != first.id:
            continue
        if isinstance(function, Function) and function.name == "forward":
            before = [each for each in source.bindings(function, first.id)
                      if each.lineno < call.lineno]  # fmt: skip
            if before and re.search(r"up|dec", ast.unparse(before[-1]), re.I):
                yield source.pattern("joined twice", call, first.id)


def counted_ignored(source: Source) -> Iterator[Pattern]:
    """A Dice term over every pixel, beside `cross_entropy(..., ignore_index=255)`."""
    ignored: set[str] = set()
    for call in source.of(ast.Call):
        if called(call) in ("cross_entropy", "CrossEntropyLoss"):
            ignored |= {ast.unparse(each.value) for each in call.keywords
                        if each.arg == "ignore_index"}  # fmt: skip
    if len(ignored) != 1:
        return
    mark = ignored.pop()
    for function in source.of(ast.FunctionDef):
        text = source.code(function)
        if not _OVERLAP.search(function.name) or re.search(r"valid|mask|ignore|keep", text, re.I):
            continue
        is_soft = re.search(r"softmax\(|sigmoid\(", text) and re.search(r"sum\(", text)
        used = [call for call in source.of(ast.Call) if called(call) == function.name]
        summed = [call for call in used if any(
            isinstance(above, ast.BinOp) and "cross_entropy" in ast.unparse(above)
            for above in source.above(call))]  # fmt: skip
        if is_soft and mark not in text and summed and "[" not in ast.unparse(summed[0]):
            yield source.pattern("ignored in overlap", function, mark)


def colliding_codes(source: Source) -> Iterator[Pattern]:
    """`{v: i for i, v in enumerate(values)}` and `.map(codes).fillna(0)`: 0 is the first value."""
    for table in source.of(ast.DictComp):
        loop = table.generators[0]
        over = loop.iter
        if called(over) != "enumerate" or not isinstance(over, ast.Call) or len(over.args) != 1:
            continue
        if over.keywords or not isinstance(loop.target, ast.Tuple):
            continue
        if dotted(table.value) != dotted(loop.target.elts[0]):
            continue
        if not re.search(r"unique\(|set\(", ast.unparse(over)) or "+" in ast.unparse(over):
            continue
        statement = next(
            (each for each in source.above(table) if isinstance(each, ast.Assign)), None
        )
        name = dotted(statement.targets[0]) if statement is not None else ""
        for call in source.of(ast.Call):
            if called(call) != "fillna" or not isinstance(call.func, ast.Attribute):
                continue
            inner = call.func.value
            is_zero = call.args and getattr(call.args[0], "value", None) == 0
            if called(inner) == "map" and isinstance(inner, ast.Call) and is_zero and inner.args:
                given = inner.args[0]
                base = given.value if isinstance(given, ast.Subscript) else given
                if name and dotted(base) == name:
                    yield source.pattern("code of the first", call, name)


def scaled_in_training(source: Source) -> Iterator[Pattern]:
    """`if self.train: x = normalize(x, MEAN, STD)`: held-out samples keep another scale."""
    for branch in source.of(ast.If):
        if branch.orelse or not _TRAINING.fullmatch(ast.unparse(branch.test)):
            continue
        scales = [
            call
            for part in branch.body
            for call in source.walk(part)
            if called(call) in ("normalize", "normalise", "standardize", "standardise")
        ]
        function = source.scope(branch)
        every = [call for call in source.walk(function) if called(call) == called(scales[0])] if (
            scales) else []  # fmt: skip
        in_sample = getattr(function, "name", "") in ("__getitem__", "__call__", "transform")
        if in_sample and scales and len(every) == len(scales) and isinstance(scales[0], ast.Call):
            yield source.pattern("scaled in training alone", branch, called(scales[0]))
