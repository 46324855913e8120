"""Distillation: what a divergence is given, and a teacher that is left in training mode."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source import Function, Pattern, Source, called, dotted, parameters_of
from holter.scripts.reading.values import resolved, tensor_of

_PASSED_ON = {
    *("detach", "clone", "float", "to", "view", "reshape", "clamp", "clamp_min", "cpu", "squeeze"),
    *("flatten", "contiguous", "double", "masked_fill", "unsqueeze"),
}
_LOGITS = re.compile(r"logits?(_|$)", re.I)
_TEACHER = re.compile(r"(^|_)teacher(_model|_net)?$", re.I)
_FIXED = re.compile(r"(^|_)(teacher|frozen|pretrained|reference|ref_model)(_|$)", re.I)
_AVERAGED = {"lerp_", "mul_", "update_parameters", "copy_"}
_OF_TEACHER = re.compile(r"teacher|(^|_)t_(log|prob|out)", re.I)
_OF_STUDENT = re.compile(r"student|(^|_)s_(log|prob|out)", re.I)
_NOISY = re.compile(r"Dropout|BatchNorm|dropout|EncoderLayer|resnet|mobilenet|vgg|models\.")


def divergence_arguments(source: Source) -> Iterator[Pattern]:
    """`F.kl_div(softmax(student), softmax(teacher))`: the first argument is a log-probability."""
    for call in source.of(ast.Call):
        options = {each.arg: each.value for each in call.keywords}
        is_functional = called(call) == "kl_div"
        made = _instance(source, call)
        if made is not None:
            options |= {each.arg: each.value for each in made.keywords}
        elif not is_functional:
            continue
        first = options.get("input") or next(iter(call.args), None)
        second = options.get("target") or next(iter(call.args[1:]), None)
        if first is None or second is None or None in options:
            continue
        form, target = _form(source, first), _form(source, second)
        in_logs = getattr(options.get("log_target"), "value", False)
        if form in ("probabilities", "logits"):
            yield source.pattern("plain input of divergence", call, form)
        elif (target == "logs" and in_logs is False) or (
            target == "probabilities" and in_logs is True
        ):
            yield source.pattern("target of divergence", call, _wanted(target))
        elif form == "logs" and target == "probabilities" and _is_reversed(source, first, second):
            yield source.pattern("reversed teacher", call, "teacher")


def _wanted(target: str) -> str:
    return "log_target=True" if target == "logs" else "log_target=False"


def _instance(source: Source, call: ast.Call) -> ast.Call | None:
    """Return the `nn.KLDivLoss(...)` that a call calls, or None."""
    values = [call.func] if isinstance(call.func, ast.Call) else []
    name = dotted(call.func).rpartition(".")[2]
    values += [each for each in source.named(name) if isinstance(each, ast.Call)] if name else []
    kinds = {called(each) for each in values}
    first = values[0] if kinds == {"KLDivLoss"} else None
    return (
        first if isinstance(first, ast.Call) and len(call.args) + len(call.keywords) > 1 else None
    )


def _form(source: Source, node: ast.expr, depth: int = 0) -> str:
    """Return whether an expression is "logs", "probabilities" or "logits", or "" if unknown."""
    node = resolved(source, source.scope(node), node)
    if depth > 6:
        return ""
    if isinstance(node, ast.Call):
        name, inner = called(node), tensor_of(node)
        if isinstance(node.func, ast.Call):  # `nn.Softmax(dim=1)(x)`
            name = {"Softmax": "softmax", "LogSoftmax": "log_softmax"}.get(called(node.func), "")
        if name in ("log_softmax", "log", "logsigmoid", "log_prob"):
            return "logs"
        if name in ("softmax", "sigmoid", "exp"):
            return "probabilities"
        return _form(source, inner, depth + 1) if name in _PASSED_ON and inner is not None else ""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        is_tiny = isinstance(node.right, ast.Constant)
        return _form(source, node.left, depth + 1) if is_tiny else ""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        name = dotted(node.left).rpartition(".")[2]
        return "logits" if _LOGITS.search(name) and not name.startswith("log_") else ""
    if isinstance(node, ast.Name) and _LOGITS.search(node.id):
        is_known = node.id in parameters_of(source.scope(node))
        return "logits" if is_known and "log_prob" not in node.id else ""
    return ""


def _is_reversed(source: Source, first: ast.expr, second: ast.expr) -> bool:
    texts = [_written(source, each) for each in (first, second)]
    return bool(
        _OF_TEACHER.search(texts[0])
        and _OF_STUDENT.search(texts[1])
        and not _OF_STUDENT.search(texts[0])
        and not _OF_TEACHER.search(texts[1])
    )


def _written(source: Source, node: ast.expr) -> str:
    return ast.unparse(node) + " " + ast.unparse(resolved(source, source.scope(node), node))


def training_teacher(source: Source) -> Iterator[Pattern]:
    """`teacher.train()` beside a student that learns from it: its dropout is active."""
    text = source.code(source.tree)
    for call in source.of(ast.Call):
        if called(call) != "train" or not isinstance(call.func, ast.Attribute):
            continue
        name = dotted(call.func.value)
        last = name.rpartition(".")[2]
        is_mode = not call.args or getattr(call.args[0], "value", None) is True
        loop = next((each for each in source.above(call) if isinstance(
            each, ast.For | ast.While | Function)), None)  # fmt: skip
        if not _FIXED.search(last) or not is_mode or loop is None or call.keywords:
            continue
        used = [node for node in source.walk(loop) if dotted(getattr(node, "func", node)) == name
                and isinstance(node, ast.Call)]  # fmt: skip
        if not used or not any(called(node) == "backward" for node in source.walk(loop)):
            continue
        is_eval = f"{name}.eval()" in source.code(loop)
        if not is_eval and not _is_trained(source, name) and all(_is_fixed(source, each, text, name)
                                                                 for each in used):  # fmt: skip
            yield source.pattern("training teacher", call, name)


def _is_trained(source: Source, name: str) -> bool:
    """Whether an optimizer holds a teacher, or an average is written to it."""
    last = name.rpartition(".")[2]
    for call in source.of(ast.Call):
        if called(call) == "parameters" and dotted(call.func).split(".")[-2:-1] == [last]:
            above = next((each for each in source.above(call) if isinstance(
                each, ast.Call | ast.For | ast.comprehension)), None)  # fmt: skip
            if isinstance(above, ast.Call):  # `zip` of an average, or an optimizer
                return True
    if any(called(call) in _AVERAGED for call in source.of(ast.Call)):
        return True
    return bool(re.search(rf"update\w*\({re.escape(name)}|ema", source.code(source.tree), re.I))


def _is_fixed(source: Source, call: ast.Call, text: str, name: str) -> bool:
    """Whether what a teacher says is no part of the graph."""
    last = name.rpartition(".")[2]
    is_frozen = f"{last}.requires_grad_(False)" in text or f"in {last}.parameters()" in text
    return is_frozen or any(
        isinstance(each, ast.With)
        and any(called(item.context_expr) in ("no_grad", "inference_mode") for item in each.items)
        for each in source.above(call)
    )


def unprepared_teacher(source: Source) -> Iterator[Pattern]:
    """A teacher with dropout that the script loads and never puts into evaluation mode."""
    text = source.code(source.tree)
    for scope in source.scopes:
        for name, value, statement in source.assigned(scope):
            made: ast.expr | None = value
            while isinstance(made, ast.Call) and called(made) in ("to", "cuda"):
                made = tensor_of(made)
            if (
                not _TEACHER.search(name)
                or not isinstance(made, ast.Call)
                or _is_trained(source, name)
            ):
                continue
            body = source.module_classes.get(called(made))
            is_noisy = body is not None and _NOISY.search(source.code(body))
            is_loaded = f"{name}.load_state_dict(" in text
            is_moded = re.search(rf"\b{name}\.(eval|train)\(", text) or "set_mode" in text
            if is_noisy and is_loaded and not is_moded and not _is_given_away(source, name):
                yield source.pattern("unprepared teacher", statement, name)


def _is_given_away(source: Source, name: str) -> bool:
    """Whether a function of the file that changes a mode is given a model of a name."""
    changing = {each.name for each in source.of(*Function.__args__)
                if re.search(r"\.(eval|train)\(", source.code(each))}  # fmt: skip
    for call in source.of(ast.Call):
        given = [*call.args, *(each.value for each in call.keywords)]
        names = {node.id for each in given for node in ast.walk(each)
                 if isinstance(node, ast.Name)}  # fmt: skip
        is_changing = called(call) in changing or called(call) in source.module_classes
        if name in names and is_changing:
            return True
    return any(isinstance(loop.iter, ast.Tuple | ast.List) and name in map(dotted, loop.iter.elts)
               for loop in source.of(ast.For))  # fmt: skip
