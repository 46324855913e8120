"""Augmentation that is drawn once, or is applied to held-out data."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.provenance import is_part_of_model
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Function, Pattern, Source, called, dotted, of_self

_FLAG = re.compile(r"^(self\.)?(is_?)?(train|training|augment|aug|do_augment)$")
_MASKING = {"FrequencyMasking", "TimeMasking", "SpecAugment", "RandomErasing"}
_HELD_OUT = re.compile(r"(^|_)(val|valid|validation|dev|test|testing|eval)(_|$|\d)", re.I)
_AUGMENTS = re.compile(r"^(augment\w*|aug|do_aug\w*|use_aug\w*|random_\w+|jitter|noise_aug)$", re.I)


@reads
def augmented_once(source: Source) -> Iterator[Pattern]:
    """`self.items = [transform(c) for c in crops]` in `__init__`: one draw for all epochs."""
    for body in source.of(ast.ClassDef):
        methods = {each.name: each for each in body.body if isinstance(each, Function)}
        init, item = methods.get("__init__"), methods.get("__getitem__")
        if init is None or item is None or not _is_random_class(source, body):
            continue
        for node in source.of(ast.Assign):
            if source.scope(node) is not init or not isinstance(node.value, ast.ListComp):
                continue
            target = node.targets[0]
            made = node.value.elt
            name = dotted(getattr(made, "func", made)).rpartition(".")[2]
            kept = dotted(target)
            if not kept.startswith("self.") or not re.match(r"transform|augment|aug$|tfm", name):
                continue
            if re.search(r"transform|augment|aug\(|tfm", source.code(item)):
                continue
            if kept in source.code(item):
                yield source.pattern("augmented once", node, name)


def _is_random_class(source: Source, body: ast.ClassDef) -> bool:
    """Whether a data set is made with a transform that draws random numbers."""
    for call in source.of(ast.Call):
        if called(call) != body.name:
            continue
        for given in [*call.args, *(each.value for each in call.keywords)]:
            for value in (given, *source.named(dotted(given))):
                text = source.code(value)
                if re.search(r"Random|Jitter|Erasing|AutoAugment|TrivialAug|Dropout", text):
                    return True
            functions = [each for each in source.of(ast.FunctionDef) if each.name == dotted(given)]
            if functions and re.search(r"rand|uniform|normal\(", source.code(functions[0])):
                return True
    return False


@reads
def augmented_evaluation(source: Source) -> Iterator[Pattern]:
    """`if train: steps = [CenterCrop(160)]` and random crops otherwise: the sides are exchanged."""
    for node in source.of(ast.If, ast.IfExp):
        assert isinstance(node, ast.If | ast.IfExp)
        test, is_negated = node.test, False
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test, is_negated = test.operand, True
        if not _FLAG.match(dotted(test)):
            continue
        if isinstance(node, ast.IfExp):
            then, other = _random(source, node.body), _random(source, node.orelse)
        else:
            then, other = _branches(source, node)
        if then is None or other is None or then == other:
            continue
        if then is is_negated:
            yield source.pattern("augmented evaluation", node.test, ast.unparse(node.test))


def _branches(source: Source, node: ast.If) -> tuple[bool | None, bool | None]:
    """Return whether the branch and its alternative are random transforms."""
    if len(node.body) != 1:
        return None, None
    only = node.body[0]
    if isinstance(only, ast.Return):
        rest = node.orelse
        if not rest:
            above = source.parent(node)
            block = getattr(above, "body", [])
            rest = block[block.index(node) + 1 :] if node in block else []
        last = rest[0] if rest else None
        value = last.value if isinstance(last, ast.Return) else None
        return (_random(source, only.value), _random(source, value))
    if not isinstance(only, ast.Assign) or len(only.targets) != 1:
        return None, None
    name = dotted(only.targets[0])
    if node.orelse:
        other = node.orelse[0]
        same = isinstance(other, ast.Assign) and dotted(other.targets[0]) == name
        value = other.value if isinstance(other, ast.Assign) and same else None
    else:  # the value that it has otherwise was assigned before
        above = source.parent(node)
        block = getattr(above, "body", [])
        before = block[: block.index(node)] if node in block else []
        made = [each.value for each in before if isinstance(each, ast.Assign)
                and dotted(each.targets[0]) == name]  # fmt: skip
        value = made[-1] if made else None
    return _random(source, only.value), _random(source, value)


def _random(source: Source, node: ast.expr | None) -> bool | None:
    """Whether transforms are random, or fixed ones; None for what is not known."""
    if node is None:
        return None
    names = [called(each) for each in source.walk(node) if isinstance(each, ast.Call)]
    if any(re.search(r"^Random(?!Sampler)|Jitter|AutoAugment|TrivialAugment|RandAugment", name)
           for name in names):  # fmt: skip
        return True
    is_fixed = any(re.search(r"^(CenterCrop|Resize|ToTensor|Compose|Normalize)$", name)
                   for name in names)  # fmt: skip
    return False if is_fixed and not any(isinstance(each, ast.Starred)
                                         for each in source.walk(node)) else None  # fmt: skip


@reads
def masked_always(source: Source) -> Iterator[Pattern]:
    """`x = self.mask(x)` of `TimeMasking` in a forward pass, also in evaluation."""
    for name, body in source.module_classes.items():
        if "self.training" in source.code(body) or not is_part_of_model(source, name):
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


@reads
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
