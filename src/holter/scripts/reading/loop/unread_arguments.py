"""Parameters that a function of the file is given, and that nothing in it reads."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Function, Pattern, Source, called, parameters_of

_SEEN = re.compile(
    r"^(seen|watched|visited|bought|purchased|clicked|listened|read_items|known|history|exclude\w*|interacted|rated|consumed|forbidden|train_items|user_items"
    r"|positives|pos_items|train_mask|filter_mask|item_mask)(_\w+)?$|_(seen|watched|exclude|known)$",
    re.I,
)
_OUTCOME = re.compile(
    r"^(e|ev|events?|is_event|observed|censor\w*|delta|status|died|event_\w+)$"
    r"|_(events?|censored|observed)$",
    re.I,
)
_TIMES = re.compile(r"^(t|times?|durations?|surv_time|survival_time|follow_?up|months|days)$", re.I)
_SURVIVAL = re.compile(r"cox|hazard|surviv|partial|concord|c_?index|harrell|brier|risk", re.I)
_RANKS = re.compile(r"topk|argsort|argpartition|\.sort\(|> own|rank|randint|integers\(|choice\(")
_MASK = re.compile(r"^(mask|masks|valid|valid_mask|pad_mask|padding_mask|src_mask|lengths?|lens)$")
_FIGURES = re.compile(r"loss|ndcg|dcg|metric|accuracy|iou|dice|(^|_)(mse|mae|ce|nll|bce|acc)(_|$)")


@reads
def parameters(source: Source) -> Iterator[Pattern]:
    """`def evaluate(model, users, seen): ...` that ranks without looking at `seen`."""
    for function in source.of(*Function.__args__):
        if isinstance(source.parent(function), ast.ClassDef) and function.name != "forward":
            continue
        if function.decorator_list and "no_grad" not in ast.unparse(function.decorator_list[0]):
            continue
        names = parameters_of(function)
        if _is_stub(function) or _has_equals(source, function, names):
            continue
        read = {node.id for node in source.walk(function) if isinstance(node, ast.Name)}
        if {"locals", "vars"} & read:
            continue
        for name in names:
            kind = _kind(source, function, name)
            if name not in read and kind and _is_given(source, function, name):
                yield source.pattern(kind, function, name)


def _kind(source: Source, function: Function, name: str) -> str:
    """Return what it means that a parameter of a name is not read, or ""."""
    if _SURVIVAL.search(function.name) and (_OUTCOME.search(name) or _TIMES.search(name)):
        has_both = any(map(_OUTCOME.search, parameters_of(function)))
        return "unread outcome" if has_both else ""
    body = source.code(function)
    if _SEEN.search(name) and _RANKS.search(body):
        return "unread exclusion"
    if _MASK.match(name) and _FIGURES.search(function.name):
        return "unread padding"
    return ""


def _is_stub(function: Function) -> bool:
    """Whether a function has no body of its own, or hands everything on."""
    body = [
        each
        for each in function.body
        if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))
    ]
    return not body or isinstance(body[0], ast.Pass | ast.Raise)


def _has_equals(source: Source, function: Function, names: list[str]) -> bool:
    """Whether other functions have the same parameters: an interface, of which not all is used."""
    return any(
        parameters_of(other) == names
        for other in source.of(*Function.__args__)
        if other is not function
        and other.name != function.name
        and not _kinds_apart(function.name, other.name)
    )


def _kinds_apart(one: str, other: str) -> bool:
    """Whether two functions are no choices of each other: a loss, and a concordance."""
    figures = re.compile(r"concord|c_?index|harrell|metric|evaluate|score", re.I)
    return bool(figures.search(one)) != bool(figures.search(other))


def _is_given(source: Source, function: Function, name: str) -> bool:
    """Whether a call of the file gives a parameter what is no constant."""
    place = parameters_of(function).index(name)
    for call in source.of(ast.Call):
        if called(call) != function.name or source.scope(call) is function:
            continue
        values = [each.value for each in call.keywords if each.arg == name]
        values += call.args[place : place + 1]
        if any(not isinstance(each, ast.Constant) for each in values):
            return True
    return False
