"""Mirror images whose targets are not mirrored: boxes, a second image, or classes with a side."""

import ast
import re
from collections.abc import Iterator
from itertools import pairwise

from holter.scripts.reading.source.expressions import argument, resolved
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import (
    Function,
    Pattern,
    Source,
    called,
    dotted,
    statement_around,
)

_IMAGE = re.compile(r"^(img|image|x|imgs|images|frame|pics?|pictures?)\d*$", re.I)
_PLACES = re.compile(r"box|rect|keypoint|landmark|(^|_)(pts|points|kps?)$|mask|segm?", re.I)
_DRAWING = {"rand", "random", "uniform", "randint", "integers", "random_sample", "bernoulli"}
_FLIPS = {"flip", "fliplr", "flipud", "hflip", "vflip"}
_TRANSFORMS = {"RandomHorizontalFlip": "x", "RandomVerticalFlip": "y", "HorizontalFlip": "x",
               "VerticalFlip": "y"}  # fmt: skip
_SIDES = {"x": {"left", "right"}, "y": {"up", "down"}}
_DIGITS = {"MNIST", "SVHN", "EMNIST", "USPS", "QMNIST"}
_OTHERS = {"CIFAR10", "CIFAR100", "FashionMNIST", "ImageFolder", "ImageNet", "STL10", "CelebA"}
_LABEL = re.compile(r"label|target|cls|class|^y$|name|kind|swap", re.I)
_IMAGE_NAME = re.compile(r"^(img|image|x|imgs|images|frame)\d*$", re.I)
_SHAPED = re.compile(r"mask|seg|box|bbox|keypoint|landmark|heat", re.I)
_FLIPS_AND_TURNS = {"flip", "fliplr", "flipud", "hflip", "vflip", "rot90"}
_BOXES = re.compile(r"box|rect|keypoint|landmark|points?$", re.I)


@reads
def alone(source: Source) -> Iterator[Pattern]:
    """`imgs[flip] = imgs[flip].flip(-1)` where the function returns boxes that stay as they are."""
    for function in source.of(*Function.__args__):
        returned = {dotted(each) for node in source.walk(function) if isinstance(node, ast.Return)
                    and isinstance(node.value, ast.Tuple) for each in node.value.elts}  # fmt: skip
        flips = [node for node in source.walk(function) if isinstance(node, ast.Assign)
                 and source.scope(node) is function and axes(node.value)]  # fmt: skip
        yield from _masked(source, function, flips, returned)
        yield from _one_of_two(source, flips, returned)


def _masked(
    source: Source, function: Function, flips: list[ast.Assign], returned: set[str]
) -> Iterator[Pattern]:
    places = {name for name in returned if _PLACES.search(name)}
    for node in flips:
        target = node.targets[0]
        if not isinstance(target, ast.Subscript) or not isinstance(target.slice, ast.Name):
            continue
        image = dotted(target.value)
        drawn = [value for name, value, _ in source.assigned(function) if name == target.slice.id]
        is_random = any(called(each) in _DRAWING for value in drawn for each in source.walk(value))
        if not is_random or not _IMAGE.match(image) or image not in returned or not places:
            continue
        uses = [each for each in source.walk(function) if isinstance(each, ast.Name)
                and each.id == target.slice.id and isinstance(each.ctx, ast.Load)]  # fmt: skip
        statements = {statement_around(source, use) for use in uses}
        if statements == {node}:
            yield source.pattern("flipped alone", node, image)


def _one_of_two(source: Source, flips: list[ast.Assign], returned: set[str]) -> Iterator[Pattern]:
    """Yield a flip of one tensor where another flip of the function turns it with a second one."""
    together = [{dotted(each) for each in node.targets[0].elts} for node in flips
                if isinstance(node.targets[0], ast.Tuple)]  # fmt: skip
    for node in flips:
        name = dotted(node.targets[0])
        pairs = [pair for pair in together if name and name in pair and pair <= returned]
        branch = source.parent(node)
        is_random = isinstance(branch, ast.If) and any(
            called(each) in _DRAWING for each in source.walk(branch.test)
        )
        if not pairs or not is_random:
            continue
        assert isinstance(branch, ast.If)
        stored = {each.id for part in branch.body for each in source.walk(part)
                  if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}  # fmt: skip
        if stored == {name}:
            yield source.pattern("flipped alone", node, name)


def axes(value: ast.AST) -> set[str]:
    """Return along which axes an expression mirrors images: x, y, or ? where it does not say."""
    found = set()
    for node in ast.walk(value):
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple | ast.Slice):
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            for place, part in enumerate(parts):
                if (
                    isinstance(part, ast.Slice)
                    and part.step is not None
                    and (ast.unparse(part.step) == "-1" and part.lower is None)
                ):
                    found.add("x" if place == len(parts) - 1 and place else "y" if place else "?")
        if isinstance(node, ast.Call) and called(node) in _FLIPS:
            text = "".join(ast.unparse(each) for each in
                           [*node.args[-1:], *(k.value for k in node.keywords)])  # fmt: skip
            last = text.strip("()[], ")
            if called(node) in ("fliplr", "hflip"):
                found.add("x")
            elif called(node) in ("flipud", "vflip"):
                found.add("y")
            else:
                found.add({"-1": "x", "2": "x", "-2": "y"}.get(last, "?"))
    return found


@reads
def sided_classes(source: Source) -> Iterator[Pattern]:
    """A random horizontal flip of images whose classes are named left and right, or are digits."""
    names = [{each.value for each in source.walk(node) if isinstance(each, ast.Constant)
              and isinstance(each.value, str)} for node in
             source.of(ast.List, ast.Tuple, ast.Set, ast.Dict)]  # fmt: skip
    words = [
        {word for name in each for word in re.split(r"[^a-z]+", name.lower())}
        if _is_classes(source, node)
        else each
        for each, node in zip(names, source.of(ast.List, ast.Tuple, ast.Set, ast.Dict), strict=True)
    ]
    sided = {axis for axis, sides in _SIDES.items() if any(sides <= each for each in words)}
    made = {called(call) for call in source.of(ast.Call)}
    has_digits = bool(made & _DIGITS) and not made & _OTHERS
    if not sided and not has_digits:
        return
    for call in source.of(ast.Call):
        axis = _TRANSFORMS.get(called(call))
        if axis and (axis in sided or has_digits) and not _is_certain(call):
            yield source.pattern("flipped classes", call, _words(axis, sided))
    if sided or has_digits:
        yield from _turned(source, "x" if "x" in sided else "y" if sided else "", sided)
    values: list[tuple[ast.AST, ast.expr | None]] = [
        *((node, node.value) for node in source.of(ast.Assign)),
        *((node, node.value) for node in source.of(ast.Return)),
        *((node, node.body) for node in source.of(ast.IfExp)),
    ]
    for node, value in values:
        if value is None:
            continue
        branch = _random_branch(source, node)
        turned = axes(value) & (sided | ({"x", "y"} if has_digits else set()))
        if branch is not None and turned and not _is_relabelled(branch):
            yield source.pattern("flipped classes", node, _words(min(turned), sided))


def _turned(source: Source, axis: str, sided: set[str]) -> Iterator[Pattern]:
    """Yield `rot90(img, k)` by a random `k` that nothing else reads, as the label would."""
    for call in source.of(ast.Call):
        if called(call) != "rot90":
            continue
        times = argument(call, 0, "k")
        drawn = times
        if isinstance(times, ast.Name):
            scope = source.scope(call)
            drawn = resolved(source, scope, times)
            uses = [each for each in source.walk(scope) if isinstance(each, ast.Name)
                    and each.id == times.id and isinstance(each.ctx, ast.Load)]  # fmt: skip
            if any(call not in source.above(each) for each in uses):
                continue
        if drawn is not None and _is_drawn(drawn):
            yield source.pattern("flipped classes", call, _words(axis, sided))


def _is_classes(source: Source, node: ast.AST) -> bool:
    """Whether a list is named as that of the classes: `CLASSES = ["arrow_left", ...]`."""
    above = source.parent(node)
    name = dotted(above.targets[0]) if isinstance(above, ast.Assign) else ""
    return bool(re.search(r"class|label|categor|(^|_)names?$|gesture|sign|kinds", name, re.I))


def _is_certain(call: ast.Call) -> bool:
    return any(isinstance(each, ast.Constant) and each.value == 0 for each in
               [*call.args, *(keyword.value for keyword in call.keywords)])  # fmt: skip


def _words(axis: str, sided: set[str]) -> str:
    if axis in sided:
        return "left and right" if axis == "x" else "up and down"
    return "digits"


def _random_branch(source: Source, node: ast.AST) -> ast.AST | None:
    """Return the choice by a random number that a node is made in."""
    if isinstance(node, ast.IfExp):
        return node if _is_drawn(node.test) else None
    above = source.parent(node)
    return above if isinstance(above, ast.If) and _is_drawn(above.test) else None


def _is_drawn(test: ast.expr) -> bool:
    return any(called(each) in _DRAWING for each in ast.walk(test))


def _is_relabelled(branch: ast.AST) -> bool:
    """Whether a branch changes the label as well, or asks for it."""
    names = {node.id for node in ast.walk(branch) if isinstance(node, ast.Name)}
    names |= {node.attr for node in ast.walk(branch) if isinstance(node, ast.Attribute)}
    return any(_LABEL.search(name) for name in names)


@reads
def flipped_alone(source: Source) -> Iterator[Pattern]:
    """An augmentation that flips the image, and not the mask or the boxes that it returns."""
    for function in source.of(*Function.__args__):
        names = {node.id for node in source.walk(function) if isinstance(node, ast.Name)}
        shaped = {name for name in names if _SHAPED.search(name)}
        if not shaped or not any(_IMAGE_NAME.match(name) for name in names):
            continue
        for node in source.walk(function):
            if not isinstance(node, ast.If) or source.scope(node) is not function:
                continue
            if not any(_is_random(each) for each in source.walk(node.test)):
                continue
            moved = _flipped(node.body)
            if moved and all(_IMAGE_NAME.match(name) for name in moved):
                written = {each.id for part in node.body for each in source.walk(part)
                           if isinstance(each, ast.Name)}  # fmt: skip
                if not written & shaped:
                    yield source.pattern("flipped alone", node.body[0], ", ".join(sorted(moved)))


def _is_random(node: ast.AST) -> bool:
    return called(node) in ("rand", "random", "uniform", "randint", "integers", "random_sample")


def _flipped(body: list[ast.stmt]) -> set[str]:
    names = set()
    for statement in body:
        if not isinstance(statement, ast.Assign):
            continue
        for node in ast.walk(statement.value):
            is_reversed = isinstance(node, ast.Subscript) and ", ::-1" in ast.unparse(node)
            if called(node) in _FLIPS_AND_TURNS or is_reversed:
                names |= {each.id for target in statement.targets for each in ast.walk(target)
                          if isinstance(each, ast.Name)}  # fmt: skip
    return names


@reads
def mirrored_otherwise(source: Source) -> Iterator[Pattern]:
    """`image.flip(-1)` and `box[:, 1] = size - box[:, 1]`: the image is mirrored left to right."""
    if not _has_x_before_y(source):
        return
    for function in source.of(*Function.__args__):
        axes = {axis for node in source.walk(function) if (axis := _flipped_axis(node)) is not None}
        mirrored = [
            (column, node)
            for node in source.walk(function)
            if (column := _mirrored(node)) is not None
        ]
        columns = {column % 2 for column, _ in mirrored}
        # The last axis of an image is x, which boxes have in columns 0 and 2.
        if len(axes) == 1 and len(columns) == 1 and columns != axes:
            column, node = mirrored[0]
            yield source.pattern("mirrored otherwise", node, "xy"[column % 2])


def _has_x_before_y(source: Source) -> bool:
    """Whether the file takes boxes apart as x, y, and never as y, x."""
    orders = set()
    for node in source.of(ast.Tuple):
        names = [each.id for each in node.elts if isinstance(each, ast.Name)]
        for one, other in pairwise(names):
            if isinstance(node.ctx, ast.Store) and len(names) == len(node.elts) >= 4:
                if re.sub("x", "y", one) == other != one:
                    orders.add("xy")
                elif re.sub("y", "x", one) == other != one:
                    orders.add("yx")
    return orders == {"xy"}


def _flipped_axis(node: ast.AST) -> int | None:
    """Return 0 for a flip of an image from left to right, 1 from top to bottom."""
    if not isinstance(node, ast.Call) or called(node) != "flip":
        return None
    assert isinstance(node.func, ast.Attribute | ast.Name)
    given = list(node.args)
    if isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) != "torch":
        given = [node.func.value, *given]
    if len(given) != 2 or not isinstance(given[0], ast.Name) or not _IMAGE_NAME.match(given[0].id):
        return None
    return {"-1": 0, "-2": 1}.get(ast.unparse(given[1]).strip("()[],"))


def _mirrored(node: ast.AST) -> int | None:
    """Return the column of a statement such as `box[:, 0] = width - box[:, 0]`."""
    if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Subscript):
        return None
    target, value = node.targets[0], node.value
    if not isinstance(target.value, ast.Name) or not _BOXES.search(target.value.id):
        return None
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Sub):
        return None
    if ast.unparse(value.right) != ast.unparse(target) or not isinstance(target.slice, ast.Tuple):
        return None
    last = target.slice.elts[-1]
    column = last.value if isinstance(last, ast.Constant) else None
    return column if isinstance(column, int) and 0 <= column < 4 else None
