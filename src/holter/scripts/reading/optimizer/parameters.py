"""Which parameters an optimizer holds, and which of them are trained."""

import ast
import re
from collections.abc import Iterator, Sequence

from holter.scripts.reading.source.loops import LOOPS, blocks, optimizers, owner_of
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Pattern, Source, called, dotted

_NO_MODEL = re.compile(r"target|ema|teacher|old|frozen|ref|prior|copy|avg|best|vgg|lpips", re.I)
_NEW = re.compile(r"head|new|lora|adapter|train")
_GIVEN = {"parameters", "named_parameters"}


def _owners(source: Source, call: ast.Call) -> set[str] | None:
    """Return the models whose parameters a call is given; None if that is not known."""
    nodes: list[ast.AST] = []
    waiting: list[ast.expr] = [*call.args[:1], *(each.value for each in call.keywords
                                                if each.arg == "params")]  # fmt: skip
    for _ in range(4):
        following: list[ast.expr] = []
        for value in waiting:
            inside = source.walk(value)
            nodes += inside
            called_ = {each.func for each in inside if isinstance(each, ast.Call)}
            for each in inside:
                if isinstance(each, ast.Name) and each.id not in source.models and (
                    isinstance(each.ctx, ast.Load) and each not in called_
                ):  # fmt: skip
                    following += source.named(each.id)
        waiting = following
    found = {dotted(each.func.value) for each in nodes if isinstance(each, ast.Call)
             and called(each) in _GIVEN and isinstance(each.func, ast.Attribute)}  # fmt: skip
    return found if found and "" not in found else None


def _is_trained(source: Source, name: str, *, is_shown: bool = False) -> bool:
    """Whether a file sets a model to training, and never freezes it or loads it."""
    last = name.rpartition(".")[2]
    trains = is_shown
    for call in source.of(ast.Call):
        if not isinstance(call.func, ast.Attribute):
            continue
        owner = dotted(call.func.value).rpartition(".")[2]
        if owner != last:
            continue
        if called(call) in ("requires_grad_", "load_state_dict") and not _is_at_end(source, call):
            return False
        if called(call) in ("train", "zero_grad", "parameters"):
            trains = True
    frozen = any(
        called(each.iter) in _GIVEN and (held := owner_of(each.iter)) is not None
        and dotted(held).rpartition(".")[2] == last
        and "requires_grad" in ast.unparse(each)
        for each in source.of(ast.For)
    )  # fmt: skip
    return trains and not frozen


def _is_at_end(source: Source, call: ast.Call) -> bool:
    """Whether a statement switches the gradient on and off around a step, or loads the best."""
    return called(call) == "requires_grad_" and any(
        called(other) == "requires_grad_" and ast.unparse(other.func) == ast.unparse(call.func)
        and other is not call for other in source.of(ast.Call)
    )  # fmt: skip


@reads
def left_out(source: Source) -> Iterator[Pattern]:
    """Gradients of two models are clipped, and the optimizer holds the parameters of one."""
    calls = list(optimizers(source))
    if len(calls) != 1 or any(called(each) == "add_param_group" for each in source.of(ast.Call)):
        return
    held = _owners(source, calls[0])
    if held is None:
        return
    last = {each.rpartition(".")[2] for each in held}
    for call in source.of(ast.Call):
        if called(call) not in ("clip_grad_norm_", "clip_grad_value_"):
            continue
        owners = _owners(source, call)
        missing = {each for each in owners or () if each.rpartition(".")[2] not in last}
        if owners is None or not missing or len(owners) == len(missing):
            continue
        for name in sorted(missing):
            if not _NO_MODEL.search(name) and _is_trained(source, name):
                yield source.pattern("model without optimizer", calls[0], name)


@reads
def late_parts(source: Source) -> Iterator[Pattern]:
    """`model.fc = nn.Linear(...)` after the optimizer was given the parameters of `model`."""
    if any(called(each) == "add_param_group" for each in source.of(ast.Call)):
        return
    for block in blocks(source):
        given: dict[str, str] = {}
        for statement in block:
            if not isinstance(statement, ast.Assign):
                continue
            target = statement.targets[0]
            value = statement.value
            if isinstance(value, ast.Call) and value in set(optimizers(source)):
                owners = _owners(source, value)
                given = {name: dotted(target) for name in owners or ()}
                continue
            if isinstance(target, ast.Name):
                given.pop(target.id, None)
            if not isinstance(target, ast.Attribute) or not source.makes_module(value):
                continue
            name = next((each for each in given if dotted(target).startswith(f"{each}.")), "")
            later = any(
                isinstance(each, ast.Assign)
                and dotted(each.targets[0]) == given.get(name)
                and each.lineno > statement.lineno
                for each in source.of(ast.Assign)
            )
            if name and name != "self" and not later:
                yield source.pattern("part after the optimizer", statement, given[name])


@reads
def frozen_parts(source: Source) -> Iterator[Pattern]:
    """All parameters are frozen after the new head was put in, and the head stays frozen."""
    for block in blocks(source):
        new: list[tuple[str, set[str]]] = []  # the model, and the words that name its new part
        for place, statement in enumerate(block):
            model = _all_frozen(statement)
            for owner, words in new:
                rest = block[place + 1 :]
                is_meant = _is_head(words) or any(_thaws(source, each) for each in rest)
                is_frozen = bool(model) and model == owner and is_meant
                if is_frozen and not _is_thawed(source, rest, words):
                    yield source.pattern("frozen new part", statement, min(words))
            new += _inserted(source, statement)


def _is_head(words: set[str]) -> bool:
    return any(re.search(r"fc|head|classifier|lora|adapter", word, re.I) for word in words)


def _all_frozen(statement: ast.stmt) -> str:
    """Return the model all of whose parameters a statement freezes."""
    if isinstance(statement, ast.For) and called(statement.iter) in _GIVEN:
        over = statement.iter
        if isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute):
            code = [ast.unparse(each) for each in statement.body]
            if len(code) == 1 and re.search(r"\.requires_grad(_\(| = )False\)?$", code[0]):
                return dotted(over.func.value)
    if isinstance(statement, ast.Expr) and called(statement.value) == "requires_grad_":
        call = statement.value
        assert isinstance(call, ast.Call)
        if [getattr(each, "value", None) for each in call.args] == [False]:
            return dotted(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    return ""


def _inserted(source: Source, statement: ast.stmt) -> Iterator[tuple[str, set[str]]]:
    """Yield the model that a statement gives new modules, and the words that name these."""
    if isinstance(statement, ast.Assign):
        target = statement.targets[0]
        value = statement.value
        if isinstance(target, ast.Attribute | ast.Subscript) and source.makes_module(value):
            parts = ast.unparse(target).partition(".")
            if parts[2] and parts[0] != "self":
                yield parts[0], {re.split(r"[\[.]", parts[2])[0]}
    if isinstance(statement, ast.For):
        model = re.match(r"(list\()?([\w.]+)\.named_(modules|children)|(list\()?([\w.]+)\.modules",
                         ast.unparse(statement.iter))  # fmt: skip
        for call in source.walk(statement):
            if not isinstance(call, ast.Call) or not model:
                continue
            if called(call) == "setattr" and len(call.args) == 3:
                made = call.args[2]
                body = source.module_classes.get(called(made))
                if body is not None:
                    words = {each.targets[0].attr for each in source.walk(body)
                             if isinstance(each, ast.Assign)
                             and isinstance(each.targets[0], ast.Attribute)
                             and called(each.value) in ("Parameter", "Linear")}  # fmt: skip
                    yield model[2] or model[5], words | {called(made).lower()}


def _thaws(source: Source, statement: ast.stmt) -> bool:
    return bool(re.search(r"requires_grad(_\(True\)|_\(\)| = True)", source.code(statement)))


def _is_named(word: str, text: str) -> bool:
    """Whether a text may be a part of the name of a parameter: `".A"`, or `"lora"`."""
    one, other = word.lower(), text.strip(".").lower()
    if min(len(one), len(other)) < 3:
        return one == other
    return one in other or other in one


def _is_thawed(source: Source, block: Sequence[ast.stmt], words: set[str]) -> bool:
    """Whether later statements set the gradient of a new part, or of what is not known."""
    for statement in block:
        code = source.code(statement)
        if "requires_grad" not in code:
            if any(re.search(r"unfreeze|thaw|trainable", called(each), re.I)
                   for each in source.walk(statement)):  # fmt: skip
                return True
            continue
        if not _thaws(source, statement):
            if re.search(r"requires_grad = (?!False)", code):
                return True
            continue
        texts = [each.value for each in source.walk(statement)
                 if isinstance(each, ast.Constant) and isinstance(each.value, str)]  # fmt: skip
        names = {each.attr for each in source.walk(statement) if isinstance(each, ast.Attribute)}
        names |= {each.id for each in source.walk(statement) if isinstance(each, ast.Name)}
        if words & names or any(_is_named(word, text) for word in words for text in texts):
            return True
        known = {"p", "n", "name", "param", "parameter", "requires_grad", "True", "parameters",
                 "named_parameters", "startswith", "endswith", "any"}  # fmt: skip
        others = names - known
        is_unknown = any(each in source.defined or _NEW.search(each) for each in others)
        if not texts and is_unknown:
            return True
        if isinstance(statement, LOOPS) and "modules" in names:
            return True
    return False
