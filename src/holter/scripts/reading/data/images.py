"""Images whose sizes, values or masks are taken for something else."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.expressions import number, resolved
from holter.scripts.reading.source.origins import Frame, origins
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Function, Pattern, Source, called, dotted

_MASK = re.compile(r"(^|_)(ma?sks?|seg_?maps?|label_?maps?|segmentation|annotations?)\d*$", re.I)
_WIDTH = re.compile(r"^(w|width|img_w|image_width|im_w|W|img_width)$")
_HEIGHT = re.compile(r"^(h|height|img_h|image_height|im_h|H|img_height)$")
_SMOOTH = re.compile(r"bilinear|bicubic|linear|cubic|lanczos|area|antialias", re.I)
_POINTS = re.compile(r"box|pts|points|keypoints|kps|landmarks|coords|centers|xy|targets?", re.I)
_GEOMETRIC = {
    *("ToTensor", "Resize", "CenterCrop", "ColorJitter", "Grayscale", "Pad"),
    *("AutoAugment", "RandAugment", "TrivialAugmentWide"),
}
_PAIRS = (("x", "y"), ("col", "row"), ("column", "row"), ("cols", "rows"))
_LOWEST = 32  # a constant that is taken from pixels, not from labels
_KEEPING = {"roll", "flip", "copy", "clone", "pad", "ascontiguousarray", "transpose"}


@reads
def smoothed_masks(source: Source) -> Iterator[Pattern]:
    """`F.interpolate(mask, mode="bilinear")` or `TF.resize(mask, size)` of class numbers."""
    text = source.code(source.tree)
    if not re.search(r"CrossEntropyLoss|cross_entropy|IGNORE|n_?classes|num_classes", text, re.I):
        return
    for call in source.of(ast.Call):
        name = called(call)
        home = dotted(call.func).rpartition(".")[0]
        of = call.args[0] if call.args else None
        if name == "resize" and home.rpartition(".")[2] and _MASK.search(home.rpartition(".")[2]):
            of = call.func.value if isinstance(call.func, ast.Attribute) else None  # of PIL
        while isinstance(of, ast.Subscript | ast.Call):
            if isinstance(of, ast.Subscript):
                of = of.value
            else:
                of = of.func.value if isinstance(of.func, ast.Attribute) else None
        if of is None or not _MASK.search(dotted(of).rpartition(".")[2]):
            continue
        options = " ".join(
            ast.unparse(each) for each in [*call.args[1:], *(k.value for k in call.keywords)]
        )
        is_smooth = bool(_SMOOTH.search(options)) and "nearest" not in options.lower()
        if name in ("interpolate", "resize", "rotate", "warpAffine", "zoom") and (
            (name == "interpolate" and is_smooth and _is_of_classes(source, call))
            or (name == "resize" and is_smooth)
            or (
                (
                    name == "resize"
                    and home in ("cv2", "TF", "F", "VF")
                    and not re.search(r"near|order=0|interp", options + ast.unparse(call), re.I)
                )
                and (home == "cv2" or source.imported.get(home) == "torchvision")
            )
        ):
            yield source.pattern("smoothed mask", call, ast.unparse(of))


def _is_of_classes(source: Source, call: ast.Call) -> bool:
    """Whether what is made is used as class numbers: `.long()` after it."""
    for above in source.above(call):
        if called(above) in ("long", "int") or (
            called(above) == "to" and "long" in ast.unparse(above)
        ):
            return True
        if isinstance(above, ast.stmt):
            return False
    return False


@reads
def exchanged_sizes(source: Source) -> Iterator[Pattern]:
    """`w, h = img.shape[:2]`, or `h, w = picture.size`: rows come first in arrays."""
    for node in source.of(ast.Assign):
        target, value = node.targets[0], ast.unparse(node.value)
        if not isinstance(target, ast.Tuple):
            continue
        names = [dotted(each) for each in target.elts]
        is_shape = re.search(
            r"\.shape\[:2\]$|\.shape\[-2:\]$|\.shape\[2:\]$|\.size\(\)\[-2:\]$", value
        )
        if (
            len(names) == 3
            and re.search(r"\.shape$", value)
            and re.match(r"_|c|ch|channels", names[2])
        ):
            is_shape, names = re.search(".", value), names[:2]
        if len(names) != 2 or not is_shape:
            continue
        if (
            _WIDTH.match(names[0])
            and _HEIGHT.match(names[1])
            and not re.search(r"\.T\b|transpose|permute|swapaxes", value)
        ):
            if _is_consistent(source, node, names):
                continue
            yield source.pattern("exchanged sizes", node, names[0])


def _is_consistent(source: Source, node: ast.Assign, names: list[str]) -> bool:
    """Whether both sizes are only used together, where their order does not matter."""
    scope = source.scope(node)
    uses = [
        each
        for each in source.of(ast.Name)
        if each.id in names and isinstance(each.ctx, ast.Load) and source.scope(each) is scope
    ]
    return all(
        isinstance(above := source.parent(use), ast.BinOp)
        and isinstance(above.op, ast.Mult)
        and {dotted(above.left), dotted(above.right)} == set(names)
        for use in uses
    )


@reads
def scaled_by_other_side(source: Source) -> Iterator[Pattern]:
    """`boxes[:, 0] / height` and `boxes[:, 1] / width`."""
    found: dict[tuple[ast.AST, str], dict[str, tuple[ast.AST, str]]] = {}
    nodes: list[ast.BinOp | ast.AugAssign] = [*source.of(ast.BinOp), *source.of(ast.AugAssign)]
    for node in nodes:
        if not isinstance(node.op, ast.Div | ast.Mult):
            continue
        of, by = (
            (node.left, node.right) if isinstance(node, ast.BinOp) else (node.target, node.value)
        )
        side = dotted(by).rpartition(".")[2]
        kind = "w" if _WIDTH.match(side) else "h" if _HEIGHT.match(side) else ""
        if not kind or not isinstance(of, ast.Subscript) or not _POINTS.search(dotted(of.value)):
            continue
        part = ast.unparse(of.slice).strip("()").rpartition(", ")
        column = ast.unparse(of.slice.elts[-1]) if isinstance(of.slice, ast.Tuple) else part[2]
        axis = {
            "0": "x",
            "1": "y",
            "[0, 2]": "x",
            "[1, 3]": "y",
            "2": "x",
            "3": "y",
            "0::2": "x",
            "1::2": "y",
            "::2": "x",
        }.get(column, "")
        if axis:
            found.setdefault((source.scope(node), dotted(of.value)), {})[axis] = (node, kind)
    for (_, name), axes in found.items():
        if {axis: kind for axis, (_, kind) in axes.items()} == {"x": "h", "y": "w"}:
            yield source.pattern("scaled by other side", axes["x"][0], name)


@reads
def divided_twice(source: Source) -> Iterator[Pattern]:
    """`ToTensor()(img / 255)`, or `x = x / 255` twice on the way of the same name."""
    for scope in source.scopes:
        divided: dict[str, ast.stmt] = {}
        for name, value, node in source.assigned(scope):
            if (
                isinstance(value, ast.BinOp)
                and isinstance(value.op, ast.Div)
                and number(source, value.right) == 255
            ):
                inner = {dotted(each) for each in ast.walk(value.left)}
                if (
                    name in inner and name in divided and _same_block(source, divided[name], node)
                ) and not _changed_between(source, scope, name, divided[name], node):
                    yield source.pattern("divided twice", node, name)
                divided[name] = node
    for call in source.of(ast.Call):
        if called(call.func) != "ToTensor" and called(call) != "to_tensor":
            continue
        if (
            called(call) == "to_tensor"
            and source.imported.get(dotted(call.func).partition(".")[0]) != "torchvision"
        ):
            continue
        given = resolved(source, source.scope(call), call.args[0]) if call.args else None
        later = source.parent(call)
        if (
            given is not None
            and isinstance(later, ast.BinOp)
            and isinstance(later.op, ast.Div)
            and later.left is call
            and number(source, later.right) == 255
        ):
            yield source.pattern("divided twice", later, ast.unparse(call.args[0]))


def _same_block(source: Source, one: ast.stmt, other: ast.stmt) -> bool:
    return source.parent(one) is source.parent(other) and one.lineno < other.lineno


def _changed_between(
    source: Source, scope: ast.AST, name: str, one: ast.stmt, other: ast.stmt
) -> bool:
    """Whether a name gets something else in between, such as another image."""
    return any(
        one.lineno < node.lineno < other.lineno
        and name not in {dotted(each) for each in ast.walk(node.value or node)}
        for node in source.bindings(scope, name)
    )


@reads
def bytes_after_scaling(source: Source) -> Iterator[Pattern]:
    """`ToTensor()` and `Normalize((129.3, ...), (68.2, ...))`: the image is in [0, 1] by then."""
    for call in source.of(ast.Call):
        if called(call) != "Normalize" or len(call.args) < 2:
            continue
        if source.imported.get(dotted(call.func).partition(".")[0], "torchvision") != "torchvision":
            continue
        around = source.parent(call)
        steps = around.elts if isinstance(around, ast.List | ast.Tuple) else []
        before = steps[: steps.index(call)] if call in steps else []
        if any(called(each) not in _GEOMETRIC and not re.match("Random", called(each))
               for each in before):  # fmt: skip
            continue  # a step of its own may multiply by 255
        means = _numbers(source, call, call.args[0])
        if means and min(means) > 2 and any(called(each) == "ToTensor" for each in before):
            yield source.pattern("constants of bytes", call, ast.unparse(call.args[0]))


def _numbers(source: Source, call: ast.Call, node: ast.expr) -> list[float]:
    if isinstance(node, ast.Name):
        values = list(origins(source, node, Frame(source.scope(call))))
        node = values[0].node if len(values) == 1 else node
    parts = node.elts if isinstance(node, ast.Tuple | ast.List) else []
    found = [number(source, each) for each in parts]
    return [each for each in found if each is not None] if None not in found else []


@reads
def exchanged(source: Source) -> Iterator[Pattern]:
    """`mask[b, x, y] = 1` and `boxes[b, :, y, x] = ...` in one block."""
    for block in _blocks(source):
        written: dict[str, tuple[tuple[str, str], ast.stmt]] = {}
        for statement in block:
            if not isinstance(statement, ast.Assign):
                continue
            for target in statement.targets:
                pair = _pair(target)
                if pair is None or not isinstance(target, ast.Subscript):
                    continue
                name = ast.unparse(target.value)
                known = [(other, each) for other, each in written.items() if other != name]
                written.setdefault(name, (pair, statement))
                for other, (before, first) in known:
                    if before == pair[::-1]:
                        wrong = first if _is_x_first(before) else statement
                        about = name if wrong is first else other
                        yield source.pattern("exchanged indices", wrong, about)
                        return


def _blocks(source: Source) -> Iterator[list[ast.stmt]]:
    for node in source.of(ast.For, ast.While, *Function.__args__):
        yield node.body


def _pair(target: ast.expr) -> tuple[str, str] | None:
    """Return the last two indices of a place, if these are a column and a row."""
    if not isinstance(target, ast.Subscript) or not isinstance(target.slice, ast.Tuple):
        return None
    last = target.slice.elts[-2:]
    names = [each.id for each in last if isinstance(each, ast.Name)]
    if len(names) != len(last) or len(names) != 2:
        return None
    one, other = names
    return (one, other) if _differ(one, other) or _differ(other, one) else None


def _differ(column: str, row: str) -> bool:
    """Whether two names are the same but for x and y, or column and row."""
    return any(
        column != row and re.sub(rf"{x}(?=\d*$|_)|^{x}", y, column) == row for x, y in _PAIRS
    )


def _is_x_first(pair: tuple[str, str]) -> bool:
    return _differ(*pair)


@reads
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
