"""Survival models and tables: outcomes that are inputs, events and pairs the wrong way round."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.expressions import resolved, tensor_of
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Pattern, Source, called, dotted

_OUTCOME = re.compile(
    r"^(t|e|y|time|times|event|events|target|targets|labels?|duration|months|died|status)"
    r"(_(tr|va|te|train|val|test|all))?$"
)
_SEQUENCES = re.compile(
    r"forecast|horizon|histor|window|\blag|look_?back|shift\(|autoreg|next_", re.I
)
_DEATH = re.compile(
    r"^(died|death|dead|event|events|observed|deceased|failure|failed|relapse|delta"
    r"|churned|status)$",
    re.I,
)
_EVENT = re.compile(
    r"^(e|ev|event|events|observed|delta|died|is_event)(_(tr|va|te|train|val|test|all))?$"
)
_CENSORED = re.compile(r"^(censored|is_censored|cens|censoring|alive)$", re.I)
_RISK = re.compile(r"risk|hazard|(^|_)eta($|_)", re.I)
_TIME = re.compile(r"^(t|time|times|duration|durations|months|days|followup)(_\w+)?$")
_EVENT_NAME = re.compile(r"(^|_)(event|events|died|dead|death|observed|failed|delta)(_|$)", re.I)
_CENSOR = re.compile(r"(^|_)(censor\w*|cens)(_|$)|censor", re.I)


@reads
def among_features(source: Source) -> Iterator[Pattern]:
    """`NUMERIC = ["age", "months"]` where `months` is the time that the model is trained on."""
    if _SEQUENCES.search(source.code(source.tree)):
        return
    outcomes: dict[str, ast.Assign] = {}
    for node in source.of(ast.Assign):
        name = dotted(node.targets[0])
        if not _OUTCOME.match(name) or not isinstance(node.value, ast.Call | ast.Subscript):
            continue
        if isinstance(node.value, ast.Call) and called(node.value) not in (
            "tensor",
            "as_tensor",
            "from_numpy",
            "to_numpy",
            "astype",
            "float",
        ):
            continue
        columns = [
            part.slice.value
            for part in ast.walk(node.value)
            if isinstance(part, ast.Subscript)
            and isinstance(part.slice, ast.Constant)
            and isinstance(part.slice.value, str)
        ]
        if len(columns) == 1:
            outcomes[columns[0]] = node
    for node in source.of(ast.Assign):
        name = dotted(node.targets[0])
        if not isinstance(node.value, ast.List | ast.Tuple) or not re.search(
            r"num|feat|cat|input|predict|covar", name, re.I
        ):
            continue
        if re.search(r"target|label|all|raw|keep|read|use_?cols", name, re.I):
            continue
        listed = {each.value for each in node.value.elts if isinstance(each, ast.Constant)}
        for column in sorted(listed & set(outcomes), key=str):
            if _selects(source, name, str(column)):
                yield source.pattern("target among inputs", node, str(column))


def _selects(source: Source, name: str, column: str) -> bool:
    """Whether a frame is indexed by a list of columns, and by nothing that leaves one out."""
    text = source.code(source.tree)
    if re.search(rf"{re.escape(name)}\.remove\(|!= '{re.escape(column)}'|drop\(", text):
        return False
    return any(
        dotted(node.slice) == name
        for node in source.of(ast.Subscript)
        if isinstance(node.ctx, ast.Load)
    )


@reads
def inverted_events(source: Source) -> Iterator[Pattern]:
    """`event = frame["died"] == 0`, or `event = frame["censored"]`, of a survival model."""
    text = source.code(source.tree)
    if not re.search(r"cox|surviv|hazard|concordance|censor|partial_likelihood", text, re.I):
        return
    for node in source.of(ast.Assign):
        name = dotted(node.targets[0])
        if not _EVENT.match(name):
            continue
        kind = _inverts(node.value)
        if kind and not _is_turned_back(source, node, name):
            yield source.pattern("inverted events", node, kind)


def _inverts(value: ast.expr) -> str:
    """Return the column of deaths that is inverted, or that of censored cases which is not."""
    for node in ast.walk(value):
        if (
            isinstance(node, ast.Compare)
            and getattr(node.comparators[0], "value", None) == 0
            and isinstance(node.ops[0], ast.Eq)
            and _DEATH.match(_column(node.left))
        ):
            return _column(node.left)
        if (
            isinstance(node, ast.BinOp)
            and isinstance(node.op, ast.Sub)
            and getattr(node.left, "value", None) in (1, 1.0)
            and _DEATH.match(_column(node.right))
        ):
            return _column(node.right)
        if (
            isinstance(node, ast.UnaryOp)
            and isinstance(node.op, ast.Invert)
            and _DEATH.match(_column(node.operand))
        ):
            return _column(node.operand)
    if any(isinstance(node, ast.Compare | ast.BinOp | ast.UnaryOp) for node in ast.walk(value)):
        return ""
    columns = [_column(node) for node in ast.walk(value) if isinstance(node, ast.Subscript)]
    found = [each for each in columns if _CENSORED.match(each)]
    return found[0] if found and len(columns) == 1 else ""


def _column(node: ast.expr) -> str:
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        node = node.func.value
    while isinstance(node, ast.Attribute) and node.attr in ("values",):
        node = node.value
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return str(node.slice.value)
    return dotted(node).rpartition(".")[2]


def _is_turned_back(source: Source, node: ast.Assign, name: str) -> bool:
    """Whether any other statement takes events as censored: `1 - e`, `event == 0`."""
    stem = name.split("_", maxsplit=1)[0]
    for other in source.of(ast.BinOp, ast.Compare, ast.UnaryOp):
        if node in source.above(other):
            continue
        names = {dotted(each).rpartition(".")[2].split("_")[0] for each in ast.walk(other)}
        if not names & {stem, "e", "event", "events", "delta", "observed"}:
            continue
        if (
            isinstance(other, ast.BinOp)
            and isinstance(other.op, ast.Sub)
            and getattr(other.left, "value", None) in (1, 1.0)
        ):
            return True
        if isinstance(other, ast.UnaryOp) and isinstance(other.op, ast.Invert | ast.Not):
            return True
        if isinstance(other, ast.Compare) and getattr(other.comparators[0], "value", None) == 0:
            is_count = any(called(each) in ("sum", "any") for each in ast.walk(other.left))
            if isinstance(other.ops[0], ast.Eq) and not is_count:
                return True
    return False


@reads
def reversed_concordance(source: Source) -> Iterator[Pattern]:
    """`good = risk[i] < risk[j]` for pairs whose first one dies earlier."""
    for function in source.of(ast.FunctionDef):
        if not re.search(r"concord|c_?index|harrell", function.name, re.I):
            continue
        compares = [
            node
            for node in source.of(ast.Compare)
            if source.scope(node) is function
            and len(node.ops) == 1
            and isinstance(node.ops[0], ast.Lt | ast.Gt)
        ]
        times = {_direction(node, node.left, node.comparators[0], _TIME) for node in compares}
        times.discard(0)
        if len(times) != 1:
            continue
        earlier = times.pop()  # +1 where the first of a pair is the earlier one
        for node in compares:
            sign = _direction(node, node.left, node.comparators[0], _RISK)
            if not sign:
                sign = _of_difference(source, function, node)
            if sign == earlier and not _negates_risk(source, function):
                yield source.pattern("reversed concordance", node, ast.unparse(node.left))
                break


def _negates_risk(source: Source, function: ast.FunctionDef) -> bool:
    """Whether a function turns the sign of the risk: `-risk`."""
    return any(
        isinstance(each, ast.UnaryOp)
        and isinstance(each.op, ast.USub)
        and not isinstance(each.operand, ast.Constant)
        for each in source.walk(function)
    )


def _direction(node: ast.Compare, left: ast.expr, right: ast.expr, about: re.Pattern[str]) -> int:
    """Return +1 if the first of a pair is the smaller one, -1 if it is the larger one, or 0."""
    names = [_base(each) for each in (left, right)]
    places = [_place(each) for each in (left, right)]
    if names[0] != names[1] or not about.search(names[0]) or 0 in places or places[0] == places[1]:
        return 0
    smaller = 1 if isinstance(node.ops[0], ast.Lt) else -1
    return smaller * places[0]


def _base(node: ast.expr) -> str:
    while isinstance(node, ast.Call | ast.Subscript):
        node = (
            node.value
            if isinstance(node, ast.Subscript)
            else getattr(node.func, "value", node.func)
        )
    return dotted(node)


def _place(node: ast.expr) -> int:
    """Return +1 for the first of a pair: `t[:, None]`, `t[i]`; -1 for the second."""
    if isinstance(node, ast.Call) and called(node) == "unsqueeze" and node.args:
        return {"1": 1, "-1": 1, "0": -1}.get(ast.unparse(node.args[0]), 0)
    if isinstance(node, ast.Subscript):
        return {
            ":, None": 1,
            "(:, None)": 1,
            "None, :": -1,
            "(None, :)": -1,
            "None": -1,
            "i": 1,
            "j": -1,
        }.get(ast.unparse(node.slice), 0)
    return 0


def _of_difference(source: Source, function: ast.FunctionDef, node: ast.Compare) -> int:
    """Return the same for `diff < 0` of `diff = risk[:, None] - risk[None]`."""
    if getattr(node.comparators[0], "value", None) not in (0, 0.0):
        return 0
    value = resolved(source, function, node.left)
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Sub):
        return 0
    return _direction(node, value.left, value.right, _RISK)


@reads
def censored_events(source: Source) -> Iterator[Pattern]:
    """`event = death > censoring`: an event is observed if it comes before the censoring."""
    for scope in source.scopes:
        for name, value, statement in source.assigned(scope):
            compare = value
            while isinstance(compare, ast.Call):
                inner = tensor_of(compare)
                if inner is None or (called(compare) == "where" and not _is_indicator(compare)):
                    break
                compare = inner
            if not isinstance(compare, ast.Compare) or len(compare.ops) != 1:
                continue
            if not _EVENT_NAME.search(name) or _CENSOR.search(name):
                continue
            left, right = dotted(compare.left), dotted(compare.comparators[0])
            is_left, is_right = bool(_CENSOR.search(left)), bool(_CENSOR.search(right))
            if not left or not right or is_left == is_right:
                continue
            is_more = isinstance(compare.ops[0], ast.Gt | ast.GtE)
            is_less = isinstance(compare.ops[0], ast.Lt | ast.LtE)
            if (is_right and is_more) or (is_left and is_less):
                yield source.pattern("censored events", statement, name)


def _is_indicator(call: ast.Call) -> bool:
    """Whether a call is such as `where(condition, 1, 0)`."""
    return [getattr(each, "value", None) for each in call.args[1:]] == [1, 0]
