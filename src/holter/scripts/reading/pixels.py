"""Images whose sizes, values or masks are taken for something else."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source import Pattern, Source, called, dotted
from holter.scripts.reading.values import number, resolved

_MASK = re.compile(r"(^|_)(ma?sks?|seg_?maps?|label_?maps?|segmentation|annotations?)\d*$", re.I)
_WIDTH = re.compile(r"^(w|width|img_w|image_width|im_w|W|img_width)$")
_HEIGHT = re.compile(r"^(h|height|img_h|image_height|im_h|H|img_height)$")
_SMOOTH = re.compile(r"bilinear|bicubic|linear|cubic|lanczos|area|antialias", re.I)
_POINTS = re.compile(r"box|pts|points|keypoints|kps|landmarks|coords|centers|xy|targets?", re.I)


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
