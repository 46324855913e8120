"""Ranges: generators whose images are on another scale than the real ones, or than a file needs."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.expressions import number, tensor_of
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Pattern, Source, called, dotted

_CRITIC = re.compile(r"discriminator|critic|(^|_)(net_?)?D$|(^|_)disc(_|$)|netD", re.I)
_GENERATOR = re.compile(r"^(net_?)?g(en\w*)?$|generator|(^|_)gen(_|$)|netG|^G$|decoder", re.I)
_KEPT = {"view", "reshape", "squeeze", "unsqueeze", "flatten", "Unflatten", "cpu", "detach", "to"}
_LAST = {"Tanh": "tanh", "tanh": "tanh", "Sigmoid": "sigmoid", "sigmoid": "sigmoid"}
_SAVING = {"save_image", "make_grid"}


@reads
def other_range(source: Source) -> Iterator[Pattern]:
    """`nn.Sigmoid()` at the end of a generator where `Normalize(0.5, 0.5)` gives [-1, 1]."""
    found = [(body, *end) for body in _generators(source) if (end := _end(source, body))]
    scale = _scale(source)
    if len(found) != 1 or not scale or not _is_judged(source):
        return
    _, node, kind = found[0]
    if (kind, scale) in (("sigmoid", "signed"), ("tanh", "unit")) and not _is_mapped(source):
        spans = {"signed": "[-1, 1]", "unit": "[0, 1]"}
        yield source.pattern("range of generator", node, spans[scale])


def _generators(source: Source) -> Iterator[ast.ClassDef]:
    for name, body in source.module_classes.items():
        made = {dotted(each).rpartition(".")[2] for assign in source.of(ast.Assign)
                if any(called(part) == name for part in source.walk(assign.value))
                for each in assign.targets}  # fmt: skip
        is_generator = _GENERATOR.search(name) or any(map(_GENERATOR.search, made))
        if is_generator and not _CRITIC.search(name):
            yield body


def _end(source: Source, body: ast.ClassDef) -> tuple[ast.AST, str] | None:
    """Return the last activation of a generator, if it is the end of what `forward` returns."""
    forward = next((each for each in body.body if isinstance(each, ast.FunctionDef)
                    and each.name == "forward"), None)  # fmt: skip
    returns = [each for each in source.walk(forward)
               if isinstance(each, ast.Return)] if forward is not None else []  # fmt: skip
    if len(returns) != 1 or returns[0].value is None:
        return None
    node = returns[0].value
    for _ in range(8):
        if isinstance(node, ast.Name):
            values = [value for name, value, _ in source.assigned(source.scope(node))
                      if name == node.id]  # fmt: skip
            if not values:
                return None
            node = values[-1]
        elif isinstance(node, ast.Call) and called(node) in _KEPT:
            node = tensor_of(node) or node.func
        elif isinstance(node, ast.Call) and called(node) in _LAST:
            return node, _LAST[called(node)]
        else:
            break
    name = dotted(node.func) if isinstance(node, ast.Call) else ""
    if not name.startswith("self."):
        return None
    for assign in source.walk(body):
        if isinstance(assign, ast.Assign) and dotted(assign.targets[0]) == name:
            layers = assign.value
            inside = (
                [part for part in layers.args if not isinstance(part, ast.Starred)]
                if (isinstance(layers, ast.Call) and called(layers) == "Sequential")
                else [layers]
            )
            inside = [part for part in inside if called(part) not in _KEPT]
            if inside and called(inside[-1]) in _LAST:
                return inside[-1], _LAST[called(inside[-1])]
    return None


def _scale(source: Source) -> str:
    """Return "signed" for real images in [-1, 1], "unit" for [0, 1], or "" if that is not known."""
    scaled = [call for call in source.of(ast.Call) if called(call) in ("Normalize", "normalize")
              and dotted(call.func) != "F.normalize"]  # fmt: skip
    text = source.code(source.tree)
    if re.search(
        r"127\.5|\* 2(\.0)? - 1|2(\.0)? \* \w+ - 1|- 0\.5\) (/ 0\.5|\* 2)"
        r"|Lambda|mul_?\(2|sub_?\(0?\.5|rescale|denorm",
        text,
    ):
        return ""
    if scaled:
        halves = [all(_is_half(source, each) for each in call.args[:2]) and len(call.args) > 1
                  for call in scaled]  # fmt: skip
        return "signed" if all(halves) else ""
    is_plain = any(called(call) == "ToTensor" for call in source.of(ast.Call))
    return "unit" if is_plain and "/ 0.5" not in text and "std" not in text else ""


def _is_half(source: Source, node: ast.expr) -> bool:
    """Whether a mean or a deviation is 0.5 for all channels: `(0.5,)`, `[0.5] * 3`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        node = node.left
    if isinstance(node, ast.Tuple | ast.List):
        return bool(node.elts) and all(number(source, each) == 0.5 for each in node.elts)
    if isinstance(node, ast.ListComp):
        return number(source, node.elt) == 0.5
    return number(source, node) == 0.5


def _is_judged(source: Source) -> bool:
    """Whether a critic compares real and generated images."""
    return any(_CRITIC.search(name) for name in source.module_classes) or any(
        _CRITIC.search(dotted(each)) for assign in source.of(ast.Assign)
        for each in assign.targets if source.makes_module(assign.value)
    )  # fmt: skip


def _is_mapped(source: Source) -> bool:
    """Whether the script maps one range to the other before a critic sees an image."""
    for node in source.of(ast.BinOp):
        sides = (node.left, node.right)
        shown = any(called(each) in _SAVING for each in source.above(node))
        if not shown and any(_GENERATOR.search(called(each)) for each in sides):
            return True
    for call in source.of(ast.Call):
        if _CRITIC.search(called(call)) and any(
            isinstance(each, ast.BinOp) for given in call.args for each in source.walk(given)
        ):
            return True
    return False


@reads
def unscaled_images(source: Source) -> Iterator[Pattern]:
    """`save_image(generator(z), ...)` of a generator that ends in tanh: half of it is black."""
    ends = [end[1] for body in _generators(source) if (end := _end(source, body))]
    if ends != ["tanh"] or _scale(source) != "signed":
        return
    makers = {body.name for body in _generators(source)}
    networks = {dotted(each).rpartition(".")[2] for assign in source.of(ast.Assign)
                for each in assign.targets
                if any(called(part) in makers or called(part) == "deepcopy"
                       for part in source.walk(assign.value))}  # fmt: skip
    for call in source.of(ast.Call):
        if called(call) not in _SAVING or not call.args:
            continue
        options = {each.arg for each in call.keywords}
        if options & {"normalize", "value_range", "range", None}:
            continue
        shown, scope = call.args[0], source.scope(call)
        for _ in range(6):
            if isinstance(shown, ast.Name):
                values = [value for name, value, _ in source.assigned(scope) if name == shown.id]
                if len(values) != 1:
                    break
                shown = values[0]
            elif isinstance(shown, ast.Call) and called(shown) in _KEPT:
                shown = tensor_of(shown) or shown.func
            elif isinstance(shown, ast.Subscript) and isinstance(shown.slice, ast.Slice):
                shown = shown.value
            else:
                break
        if isinstance(shown, ast.Call) and called(shown) in networks:
            yield source.pattern("unscaled images", call, ast.unparse(shown))
