"""Random flips in a branch: of an image without its mask, or of points without their sides."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.data.flips import axes
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Function, Pattern, Source, called, dotted

_IMAGE = re.compile(r"^(img|image|x|imgs|images|frame|pics?|pictures?|inputs?)\d*$", re.I)
_MASK = re.compile(
    r"(^|_)(ma?sks?|seg|segm|segmentation|label_?map|heat_?maps?|depth)\d*($|_)", re.I
)
_BOXES = re.compile(r"(^|_)(boxe?s?|bboxe?s?|rects?)($|_)", re.I)
_POINTS = re.compile(r"(^|_)(pts|points?|kps?|kpts?|keypoints?|landmarks?|joints?)($|_)", re.I)
_DRAWING = {"rand", "random", "uniform", "randint", "integers", "random_sample", "bernoulli"}
_TURNED = {
    "rot90",
    "flip",
    "fliplr",
    "flipud",
    "hflip",
    "vflip",
    "rotate",
    "affine",
    "crop",
    "transpose",
    "rot",
    "resized_crop",
}
_ORDER = re.compile(r"flip|swap|mirror|(^|_)lr(_|$)|left_right|partner|pairs", re.I)


@reads
def image_alone(source: Source) -> Iterator[Pattern]:
    """`if rand() < 0.5: img = img[:, ::-1]` of a function that returns a mask as well."""
    for branch in source.of(ast.If):
        function = source.scope(branch)
        if not isinstance(function, Function) or not _is_drawn(source, branch.test):
            continue
        flips = [node for node in branch.body if isinstance(node, ast.Assign) and axes(node.value)]
        images = {
            dotted(node.targets[0]) for node in flips if _IMAGE.match(dotted(node.targets[0]))
        }
        targets = _targets(source, function)
        if not images or not targets or branch.orelse:
            continue
        text = " ".join(source.code(each) for each in branch.body)
        test = ast.unparse(branch.test)
        if any(re.search(rf"\b{re.escape(each)}\b", text + test) for each in targets):
            continue
        if any(
            name in _names(node)
            for name in _drawn_names(branch.test)
            for node in source.of(ast.If)
            if node is not branch and source.scope(node) is function
        ):
            continue  # another branch asks for the same draw
        if _turns(source, function, targets) or _is_flipped_elsewhere(source, function, targets):
            yield source.pattern("flipped alone", flips[0], min(images))


def _is_drawn(source: Source, test: ast.expr) -> bool:
    if any(called(each) in _DRAWING for each in ast.walk(test)):
        return True
    names = _drawn_names(test)
    return any(
        name in names and any(called(each) in _DRAWING for each in ast.walk(value))
        for name, value, _ in source.assigned(source.scope(test))
    )


def _drawn_names(test: ast.expr) -> set[str]:
    return {each.id for each in ast.walk(test) if isinstance(each, ast.Name)} - {
        "random",
        "np",
        "torch",
        "rng",
        "self",
        "float",
    }


def _names(node: ast.If) -> set[str]:
    return {each.id for each in ast.walk(node.test) if isinstance(each, ast.Name)}


def _targets(source: Source, function: Function) -> set[str]:
    """Return the masks, boxes and points that a function returns beside an image."""
    found: set[str] = set()
    for node in source.of(ast.Return):
        if source.scope(node) is function and isinstance(node.value, ast.Tuple):
            for part in node.value.elts[1:]:
                found |= {each.id for each in ast.walk(part) if isinstance(each, ast.Name)}
    return {
        each for each in found if _MASK.search(each) or _BOXES.search(each) or _POINTS.search(each)
    }


def _turns(source: Source, function: Function, targets: set[str]) -> bool:
    """Whether the function flips or turns the targets with the image at another place."""
    for node in source.of(ast.Assign):
        if source.scope(node) is not function:
            continue
        stored = {
            each.id
            for target in node.targets
            for each in ast.walk(target)
            if isinstance(each, ast.Name)
        }
        turned = axes(node.value) or any(called(each) in _TURNED for each in ast.walk(node.value))
        if stored & targets and turned:
            return True
    return False


def _is_flipped_elsewhere(source: Source, function: Function, targets: set[str]) -> bool:
    """Whether a function turns no target at all, so that nothing undoes the flip: masks alone."""
    stored = [
        node
        for node in source.of(ast.Name)
        if isinstance(node.ctx, ast.Store) and source.scope(node) is function and node.id in targets
    ]
    drawn = any(
        re.search(r"rand|zeros|ones|bernoulli|choice|full\(", source.code(value))
        for name, value, _ in source.assigned(function)
        if name in targets
    )
    if drawn:
        return False  # a mask of patches or positions has no geometry
    helpers = [
        call
        for call in source.of(ast.Call)
        if source.scope(call) is function
        and called(call) in source.defined
        and targets & {dotted(each) for each in call.args}
    ]
    return bool(stored) and not helpers and all(_MASK.search(each) for each in targets)


@reads
def sides_kept(source: Source) -> Iterator[Pattern]:
    """`pts[:, 0] = width - pts[:, 0]` where left and right points keep their places."""
    orders = _orders(source)
    used = {node.id for node in source.of(ast.Name) if isinstance(node.ctx, ast.Load)}
    used |= {node.attr for node in source.of(ast.Attribute) if isinstance(node.ctx, ast.Load)}
    unused = {name for name in orders if name not in used}
    if not unused and (orders or not _has_sides(source)):
        return
    for node in source.of(ast.Assign):
        name = _mirrored(node)
        branch = source.parent(node)
        if not name or not isinstance(branch, ast.If) or not _is_drawn(source, branch.test):
            continue
        images = [each for each in branch.body if isinstance(each, ast.Assign) and axes(each.value)]
        if images and not _is_reordered(source, node, name):
            yield source.pattern("sides kept", node, name)


def _orders(source: Source) -> set[str]:
    """Return the constants that are an order of points after a flip: `SWAP = [1, 0, 2]`."""
    return {
        dotted(node.targets[0])
        for node in source.of(ast.Assign)
        if _ORDER.search(dotted(node.targets[0]))
        and isinstance(node.value, ast.List | ast.Tuple)
        and len(node.value.elts) > 1
        and not isinstance(node.targets[0], ast.Tuple)
    }


def _has_sides(source: Source) -> bool:
    """Whether a list of points names both sides: `left_hand` and `right_hand`."""
    lists: list[list[ast.expr | None]] = [[*node.elts] for node in source.of(ast.List)]
    lists += [[*node.elts] for node in source.of(ast.Tuple)]
    lists += [[*node.keys] for node in source.of(ast.Dict)]
    for names in lists:
        words = [
            each.value.lower()
            for each in names
            if isinstance(each, ast.Constant) and isinstance(each.value, str)
        ]
        text = " ".join(words)
        if re.search(r"\bleft|left\b|\bl_", text) and re.search(r"\bright|right\b|\br_", text):
            return True
    return False


def _mirrored(node: ast.Assign) -> str:
    """Return the points that `pts[:, 0] = width - 1 - pts[:, 0]` mirrors, or ""."""
    target, value = node.targets[0], node.value
    if not isinstance(target, ast.Subscript) or not isinstance(value, ast.BinOp):
        return ""
    if not isinstance(value.op, ast.Sub) or ast.unparse(value.right) != ast.unparse(target):
        return ""
    name = dotted(target.value)
    part = ast.unparse(target.slice)
    return name if _POINTS.search(name) and re.search(r"(^|, )\(?0\)?$", part.strip("()")) else ""


def _is_reordered(source: Source, node: ast.Assign, name: str) -> bool:
    """Whether the points are taken in another order somewhere in the function."""
    scope = source.scope(node)
    for other in source.of(ast.Assign):
        if source.scope(other) is not scope or other is node:
            continue
        if name not in {dotted(each) for target in other.targets for each in ast.walk(target)}:
            continue
        for part in ast.walk(other.value):
            if (
                isinstance(part, ast.Subscript)
                and name in {dotted(each) for each in ast.walk(part.value)}
                and not isinstance(part.slice, ast.Slice)
                and dotted(part) != name
                and not (
                    isinstance(part.slice, ast.Name) and part.slice.id in ("i", "idx", "index")
                )
            ):
                return True
            if called(part) in ("index_select", "take", "gather", "swap", "swap_sides"):
                return True
    return any(
        called(call) in source.defined
        and name in {dotted(each) for each in call.args}
        and re.search(r"swap|flip|mirror|order", called(call))
        for call in source.of(ast.Call)
        if source.scope(call) is scope
    )
