"""Features of a model's own front: statistics over the batch, and masks in every mode."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source import Function, Pattern, Source, called, dotted, of_self
from holter.scripts.reading.values import tensor_of

_MASKING = {"FrequencyMasking", "TimeMasking", "SpecAugment", "RandomErasing"}
_HELD_OUT = re.compile(r"(^|_)(val|valid|validation|dev|test|testing|eval)(_|$|\d)", re.I)
_AUGMENTS = re.compile(r"^(augment\w*|aug|do_aug\w*|use_aug\w*|random_\w+|jitter|noise_aug)$", re.I)
_REDUCED = re.compile(r"loss|decorrel|barlow|vicreg|whiten|cross_?corr", re.I)


def batch_scaled(source: Source) -> Iterator[Pattern]:
    """`(x - x.mean()) / (x.std() + 1e-5)` in a forward pass: scaled by the rest of the batch."""
    for name, body in source.module_classes.items():
        if _REDUCED.search(source.code(body)) or not _is_part(source, name):
            continue
        for function in body.body:
            if not isinstance(function, Function) or function.name != "forward":
                continue
            text = source.code(function)
            if re.search(r"F\.mse|entropy|\.backward|advantage|reward", text):
                continue
            for node in source.walk(function):
                if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Div):
                    continue
                given = _centred(node.left)
                if given and _is_spread(node.right, given):
                    yield source.pattern("scaled by batch", node, given)


def _is_part(source: Source, name: str) -> bool:
    """Whether a module belongs to a model, or is the model: none that prepares one sample."""
    for call in source.of(ast.Call):
        if called(call) != name:
            continue
        scope = source.scope(call)
        around = source.parent(scope)
        if isinstance(around, ast.ClassDef) and around.name in source.module_classes:
            return True
        above = source.parent(call)
        while isinstance(above, ast.Call | ast.Attribute):
            above = source.parent(above)
        if isinstance(above, ast.Assign):
            kept = {dotted(each).rpartition(".")[2] for each in above.targets}
            if kept & source.models:
                return True
    return False


def _centred(node: ast.expr) -> str:
    """Return `x` of `x - x.mean()`, or ""."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Sub):
        return ""
    given, mean = ast.unparse(node.left), node.right
    return given if _is_whole(mean, "mean", given) else ""


def _is_whole(node: ast.expr, kind: str, given: str) -> bool:
    """Whether an expression is `x.mean()` of all elements, or over the first axis."""
    if called(node) != kind or not isinstance(node, ast.Call):
        return False
    of = tensor_of(node)
    extra = [*node.args[1 if isinstance(node.func, ast.Attribute)
             and dotted(node.func.value) == "torch" else 0 :],
             *(each.value for each in node.keywords if each.arg in ("dim", "axis"))]  # fmt: skip
    return of is not None and ast.unparse(of) == given and not extra


def _is_spread(node: ast.expr, given: str) -> bool:
    """Whether an expression is `x.std() + eps`, or the root of `x.var() + eps`."""
    while True:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            node = node.right if isinstance(node.left, ast.Constant) else node.left
        elif called(node) in ("clamp", "clamp_min", "sqrt") and isinstance(node, ast.Call):
            inner = tensor_of(node)
            if inner is None:
                return False
            node = inner
        else:
            return _is_whole(node, "std", given) or _is_whole(node, "var", given)


def masked_always(source: Source) -> Iterator[Pattern]:
    """`x = self.mask(x)` of `TimeMasking` in a forward pass, also in evaluation."""
    for name, body in source.module_classes.items():
        if "self.training" in source.code(body) or not _is_part(source, name):
            continue
        if re.search(r"augment|train(ing)?=", source.code(body)):
            continue
        layers = {
            of_self(target)
            for node in source.walk(body) if isinstance(node, ast.Assign)
            for target in node.targets
            if any(called(each) in _MASKING for each in ast.walk(node.value))
        } - {""}  # fmt: skip
        for function in body.body:
            if not isinstance(function, Function) or function.name != "forward":
                continue
            for call in source.walk(function):
                if not isinstance(call, ast.Call) or of_self(call.func) not in layers:
                    continue
                is_chosen = any(isinstance(each, ast.If | ast.IfExp) for each in source.above(call))
                if not is_chosen:
                    yield source.pattern("masked in every mode", call, of_self(call.func))


def augmented_held_out(source: Source) -> Iterator[Pattern]:
    """`val_set = Clips("validation", augment=True)`: figures of a changing validation set."""
    for call in source.of(ast.Call):
        given = [each for each in call.keywords if each.arg and _AUGMENTS.match(each.arg)]
        chosen = [each for each in given if getattr(each.value, "value", None) is True]
        if not chosen or not _is_own_data(source, call):
            continue
        others = [each for each in source.of(ast.Call) if called(each) == called(call)]
        if _part(source, call) and len(others) > 1:
            yield source.pattern("augmented held-out", call, chosen[0].arg or "")


def _is_own_data(source: Source, call: ast.Call) -> bool:
    """Whether a call builds a data set of the file."""
    return any(
        body.name == called(call)
        and any(getattr(each, "name", "") == "__getitem__" for each in body.body)
        for body in source.of(ast.ClassDef)
    )


def _part(source: Source, call: ast.Call) -> bool:
    """Whether a data set is of validation or test data: by its argument or its name."""
    words = [each.value for each in call.args
             if isinstance(each, ast.Constant) and isinstance(each.value, str)]  # fmt: skip
    words += [each.value.value for each in call.keywords if isinstance(each.value, ast.Constant)
              and isinstance(each.value.value, str) and each.arg in ("split", "subset", "part",
                                                                     "mode", "phase")]  # fmt: skip
    if words:
        return any(_HELD_OUT.search(word) for word in words) and not any(
            "train" in word for word in words
        )
    statement = next((each for each in source.above(call) if isinstance(each, ast.stmt)), None)
    if not isinstance(statement, ast.Assign) or isinstance(statement.targets[0], ast.Tuple):
        return False
    name = dotted(statement.targets[0]).rpartition(".")[2]
    return bool(_HELD_OUT.search(name)) and not re.search(r"tta|aug|train|robust|noisy", name)
