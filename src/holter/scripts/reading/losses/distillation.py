"""Distillation: arguments of divergences, temperatures, and a teacher in training mode."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.expressions import resolved, tensor_of
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import (
    Function,
    Pattern,
    Source,
    called,
    dotted,
    parameters_of,
)

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
_TEMPERATURE = re.compile(r"(^|_)(temp|temperature|tau|t)(_|$)|^temp", re.I)
_CERTAIN = re.compile(r"^(temp|temperature|kd_temp(erature)?|kd_t|distill_temp|T)$")
_SOFTMAX = {"softmax", "log_softmax"}
_COMPARED = 2


@reads
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


@reads
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


@reads
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


@reads
def one_sided(source: Source) -> Iterator[Pattern]:
    """`kl_div(log_softmax(student), softmax(teacher / 4))`: one of both is softened."""
    for call in source.of(ast.Call):
        if called(call) not in ("kl_div", "KLDivLoss", "kl"):
            continue
        given = [*call.args, *(each.value for each in call.keywords if each.arg == "target")]
        if len(given) < _COMPARED:
            continue
        scope = source.scope(call)
        first, second = (_scores(source, scope, each) for each in given[:_COMPARED])
        if first is None or second is None:
            continue
        for plain, other in ((first, second), (second, first)):
            soft = _temperature(source, other)
            if soft and not _may_be_divided(source, scope, plain):
                yield source.pattern("one-sided temperature", plain, soft)


def _scores(source: Source, scope: ast.AST, value: ast.expr) -> ast.expr | None:
    """Return what a distribution is the softmax of, if that is plain to see."""
    if isinstance(value, ast.Name):
        made = [each for name, each, _ in source.assigned(scope) if name == value.id]
        if len(made) != 1 or source.stores(scope, value.id) != 1:
            return None
        value = made[0]
    while isinstance(value, ast.Call) and called(value) in ("detach", "log", "clamp", "exp"):
        if not isinstance(value.func, ast.Attribute) or dotted(value.func.value) == "torch":
            return None
        value = value.func.value
    if not isinstance(value, ast.Call) or called(value) not in _SOFTMAX:
        return None
    if isinstance(value.func, ast.Attribute) and dotted(value.func.value) not in (
        *("F", "torch", "functional", "nn.functional", "torch.nn.functional"),
    ):
        return value.func.value  # `(logits / 4).softmax(-1)`
    return value.args[0] if value.args else None


def _temperature(source: Source, scores: ast.expr) -> str:
    """Return the number above 1 by which scores are divided, as it is written, or ""."""
    if not isinstance(scores, ast.BinOp) or not isinstance(scores.op, ast.Div):
        return ""
    by = scores.right
    number = _number(source, by)
    if number is None and _CERTAIN.match(_name(by)):
        return ast.unparse(by)  # no number that the file says, but a name that tells
    is_named = isinstance(by, ast.Constant) or bool(_TEMPERATURE.search(_name(by)))
    return ast.unparse(by) if is_named and number is not None and number > 1 else ""


def _name(node: ast.expr) -> str:
    """Return the last part of a name, or the key of `cfg["temperature"]`."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return str(node.slice.value)
    return dotted(node).rpartition(".")[2]


def _number(source: Source, node: ast.expr) -> float | None:
    """Return the one number that a name has in a file: a constant, or a default."""
    if isinstance(node, ast.Constant):
        return float(node.value) if isinstance(node.value, int | float) else None
    name = _name(node)
    found: list[ast.expr] = []
    for assign in source.of(ast.Assign):
        for target in assign.targets:
            parts = [(target, assign.value)]
            if isinstance(target, ast.Tuple) and isinstance(assign.value, ast.Tuple):
                parts = list(zip(target.elts, assign.value.elts, strict=False))
            found += [value for each, value in parts if dotted(each).rpartition(".")[2] == name
                      and not (isinstance(value, ast.Name) and value.id == name)]  # fmt: skip
    for function in source.of(*Function.__args__):
        arguments = function.args.args
        defaults = function.args.defaults
        pairs = zip(arguments[len(arguments) - len(defaults) :], defaults, strict=True)
        found += [value for each, value in pairs if each.arg == name]
    for table in source.of(ast.Dict):
        pairs_of = zip(table.keys, table.values, strict=True)
        found += [value for key, value in pairs_of if getattr(key, "value", None) == name]
    numbers = {each.value for each in found if isinstance(each, ast.Constant)
               and isinstance(each.value, int | float)}  # fmt: skip
    return float(numbers.pop()) if len(numbers) == 1 and len(found) >= 1 else None


def _may_be_divided(source: Source, scope: ast.AST, scores: ast.expr) -> bool:
    """Whether scores may have been divided before: in this function, or in a larger expression."""
    if not isinstance(scores, ast.Name | ast.Attribute | ast.Call):
        return True
    if any(isinstance(each, ast.BinOp) for each in source.walk(scores)):
        return True
    name = dotted(scores)
    return any(
        isinstance(each, ast.BinOp | ast.AugAssign)
        for other, value, _ in source.assigned(scope)
        if other == name
        for each in source.walk(value)
    ) or any(
        isinstance(node, ast.AugAssign) and dotted(node.target) == name
        for node in source.walk(scope)
    )


@reads
def tempered_labels(source: Source) -> Iterator[Pattern]:
    """`cross_entropy(student / T, labels)` beside a softened divergence from a teacher."""
    for scope in source.scopes:
        calls = [each for each in source.walk(scope) if isinstance(each, ast.Call)
                 and source.scope(each) is scope]  # fmt: skip
        soft = [each for each in calls if called(each) in ("kl_div", "KLDivLoss", "kl")]
        if not soft or not re.search(r"teach|(^|\W|_)t_?(logits|out)", source.code(scope), re.I):
            continue
        for call in calls:
            if called(call) not in ("cross_entropy", "nll_loss") or len(call.args) < _COMPARED:
                continue
            scores, labels = call.args[:_COMPARED]
            scores = _scores(source, scope, scores) or _value(source, scope, scores)
            by = scores.right if isinstance(scores, ast.BinOp) else None
            is_softened = isinstance(scores, ast.BinOp) and isinstance(scores.op, ast.Div)
            name = by is not None and _name(by)
            if is_softened and name and _TEMPERATURE.search(name) and _is_hard(source, labels):
                yield source.pattern("softened labels", call, ast.unparse(scores.right))  # type: ignore[attr-defined]


def _value(source: Source, scope: ast.AST, node: ast.expr) -> ast.expr:
    """Return what a name is assigned, if that is once in its scope."""
    if isinstance(node, ast.Name) and source.stores(scope, node.id) == 1:
        made = [each for name, each, _ in source.assigned(scope) if name == node.id]
        return made[0] if made else node
    return node


def _is_hard(source: Source, labels: ast.expr) -> bool:
    """Whether targets are labels as they come: a parameter or a loop variable of such a name."""
    scope = source.scope(labels)
    is_made = any(name == dotted(labels) for name, _, _ in source.assigned(scope))
    return (
        isinstance(labels, ast.Name)
        and not is_made
        and bool(re.match(r"(y|yb|ys|labels?|targets?|target_ids|classes|gold|truth)$", labels.id))
    )
