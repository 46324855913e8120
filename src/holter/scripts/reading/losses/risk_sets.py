"""Risk sets of Cox losses: who is in them, over which axis they are summed, and who is dropped."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.expressions import axis_of, number, resolved, tensor_of
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Pattern, Source, called, dotted, parameters_of

_TIME = re.compile(r"(^|_)(t|time|times|duration|durations|months|days|surv|follow_?up)(_|$)", re.I)
_RISK = re.compile(r"risk|hazard|(^|_)(eta|theta|log_h|lp|scores?|preds?|out|h)($|_)", re.I)
_SURVIVAL = re.compile(r"cox|surviv|hazard|partial_likelihood|concordance|deepsurv", re.I)
_DEATH = re.compile(
    r"^(died|death|dead|event|events|observed|deceased|failure|failed|relapse|delta|churned"
    r"|status|is_event|event_observed)$",
    re.I,
)
_ROWS = {":, None", "(:, None)"}
_COLUMNS = {"None, :", "(None, :)", "None"}
_EVENT = re.compile(r"event|censor|failed|failure|died|death|observed|uncens", re.I)
_DURATION = re.compile(r"time|dur|surviv|^t$|days|months|(^|_)t(_|$)", re.I)
_DESCENDING = re.compile(r"flip|::-1|reversed|descending|- ?1 \*")


@reads
def sets(source: Source) -> Iterator[Pattern]:
    """`risk[None].masked_fill(time[None] > time[:, None], -inf).logsumexp(1)`: those who left."""
    if not _SURVIVAL.search(source.code(source.tree)):
        return
    for call in source.of(ast.Call):
        if called(call) not in ("logsumexp", "sum"):
            continue
        given, axis = tensor_of(call), axis_of(call)
        if given is None or axis not in (0, 1, -1):
            continue
        found = _masked(source, resolved(source, source.scope(call), given), called(call))
        if found is None:
            continue
        mask, values, fill = found
        later = _is_later(source, mask)
        place = _axis(source, values)
        if not later or not place:
            continue
        over = 0 if axis == 0 else 1
        if place != ("row" if over == 0 else "column"):
            yield source.pattern("risk set of copies", call, ast.unparse(values)[:40])
        elif later != ("row" if over == 0 else "column"):
            yield source.pattern("reversed risk set", call, ast.unparse(mask)[:40])
        elif fill == 0 and called(call) == "logsumexp":
            yield source.pattern("zero in risk set", call, ast.unparse(values)[:40])


def _masked(
    source: Source, node: ast.expr, sums: str
) -> tuple[ast.expr, ast.expr, float | None] | None:
    """Return the mask of those who are kept, their values, and what the others are given."""
    if isinstance(node, ast.Call) and called(node) == "masked_fill" and len(node.args) == 2:
        mask, values = node.args[0], tensor_of(node)
        hidden = ast.UnaryOp(ast.Invert(), mask)
        if values is not None:
            return hidden, values, number(source, node.args[1])
    if isinstance(node, ast.Call) and called(node) == "where" and len(node.args) == 3:
        return node.args[0], node.args[1], number(source, node.args[2])
    if sums == "sum" and isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        for mask, values in ((node.left, node.right), (node.right, node.left)):
            inner = resolved(source, source.scope(node), values)
            if any(called(each) == "exp" for each in ast.walk(inner)):
                return mask, values, None
    return None


def _is_later(source: Source, mask: ast.expr) -> str:
    """Return which index of a kept pair has the later time: "row", "column", or ""."""
    is_inverted = False
    for _ in range(8):
        if isinstance(mask, ast.UnaryOp) and isinstance(mask.op, ast.Invert | ast.Not):
            is_inverted, mask = not is_inverted, mask.operand
        elif isinstance(mask, ast.Call) and called(mask) in ("float", "bool", "to", "type_as"):
            mask = tensor_of(mask) or ast.Name("")
        elif isinstance(mask, ast.Name):
            value = resolved(source, source.scope(mask), mask)
            if value is mask:
                return ""
            mask = value
        else:
            break
    if not isinstance(mask, ast.Compare) or len(mask.ops) != 1:
        return ""
    sides = [mask.left, mask.comparators[0]]
    names = [_base(each) for each in sides]
    places = [_place(each) for each in sides]
    if names[0] != names[1] or not _TIME.search(names[0]) or set(places) != {"row", "column"}:
        return ""
    if not isinstance(mask.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE):
        return ""
    is_greater = isinstance(mask.ops[0], ast.Gt | ast.GtE) != is_inverted
    return places[0] if is_greater else places[1]


def _base(node: ast.expr) -> str:
    while isinstance(node, ast.Call | ast.Subscript):
        inner = node.value if isinstance(node, ast.Subscript) else tensor_of(node)
        if inner is None:
            return ""
        node = inner
    return dotted(node)


def _place(node: ast.expr) -> str:
    """Return the index of a pair that an expression varies with: `t[:, None]` is its row."""
    if isinstance(node, ast.Call) and called(node) == "unsqueeze" and node.args:
        return {"1": "row", "-1": "row", "0": "column"}.get(ast.unparse(node.args[-1]), "")
    if isinstance(node, ast.Call) and called(node) in ("view", "reshape"):
        text = ", ".join(ast.unparse(each) for each in node.args)
        return {"-1, 1": "row", "1, -1": "column"}.get(text, "")
    if isinstance(node, ast.Subscript):
        text = ast.unparse(node.slice)
        return "row" if text in _ROWS else "column" if text in _COLUMNS else ""
    return ""


def _axis(source: Source, values: ast.expr) -> str:
    """Return the index that the risks vary with; those of one axis stand along the columns."""
    if isinstance(values, ast.Call) and called(values) in ("exp", "expand", "expand_as", "repeat"):
        inner = tensor_of(values)
        return _axis(source, inner) if inner is not None else ""
    if isinstance(values, ast.BinOp):
        return ""
    place = _place(values)
    if place:
        return place if _RISK.search(_base(values)) else ""
    if isinstance(values, ast.Name) and _RISK.search(values.id):
        value = resolved(source, source.scope(values), values)
        return _axis(source, value) if _place(value) else ""
    return ""


@reads
def dropped(source: Source) -> Iterator[Pattern]:
    """`df = df[df["event"] == 1]`: a survival model without those who were censored."""
    if not re.search(
        r"cox|partial_likelihood|concordance|deepsurv", source.code(source.tree), re.I
    ):
        return
    for node in source.of(ast.Assign):
        name, value = dotted(node.targets[0]), node.value
        while isinstance(value, ast.Call) and called(value) in ("reset_index", "copy", "dropna"):
            value = value.func.value if isinstance(value.func, ast.Attribute) else value
        text = ""
        if isinstance(value, ast.Subscript):
            owner = value.value.value if isinstance(value.value, ast.Attribute) else value.value
            if dotted(owner) == name or dotted(value.value) == name:
                text = _of_events(value.slice, name)
        elif isinstance(value, ast.Call) and called(value) == "query" and value.args:
            asked = getattr(value.args[0], "value", "")
            words = re.search(r"(\w+) *== *1", asked) if isinstance(asked, str) else None
            is_same = isinstance(value.func, ast.Attribute) and dotted(value.func.value) == name
            text = words[1] if words and is_same and _DEATH.match(words[1]) else ""
        if text and name:
            yield source.pattern("censored dropped", node, text)


def _of_events(test: ast.expr, name: str) -> str:
    """Return the column of events that a filter demands: `(t > 0) & (df.event == 1)`."""
    if isinstance(test, ast.BinOp) and isinstance(test.op, ast.BitAnd):
        return _of_events(test.left, name) or _of_events(test.right, name)
    column = test
    if isinstance(test, ast.Compare):
        is_one = isinstance(test.ops[0], ast.Eq) and getattr(
            test.comparators[0], "value", None) in (1, True)  # fmt: skip
        column = test.left if is_one else ast.Name("")
    elif isinstance(test, ast.Call) and called(test) == "astype":
        column = test.func.value if isinstance(test.func, ast.Attribute) else test
    if isinstance(column, ast.Subscript) and dotted(column.value) == name:
        word = getattr(column.slice, "value", "")
    elif isinstance(column, ast.Attribute) and dotted(column.value) == name:
        word = column.attr
    else:
        return ""
    return word if isinstance(word, str) and _DEATH.match(word) else ""


@reads
def ascending_risk(source: Source) -> Iterator[Pattern]:
    """`order = argsort(time)` before `logcumsumexp`: the risk set holds those who left before."""
    for call in source.of(ast.Call):
        scope = source.scope(call)
        risk = _cumulated(source, call)
        if risk is None or not any(map(_EVENT.search, _names_of(source, scope))):
            continue
        if _DESCENDING.search(source.code(scope)):
            continue
        for order, by, since in _orders(source, scope):
            is_ordered = dotted(getattr(risk, "slice", risk)) == order or any(
                name == dotted(risk)
                and statement.lineno > since.lineno
                and isinstance(value, ast.Subscript)
                and dotted(value.slice) == order
                for name, value, statement in source.assigned(scope)
            )
            if is_ordered and _DURATION.search(by.rpartition(".")[2]):
                yield source.pattern("ascending risk set", since, by)


def _names_of(source: Source, scope: ast.AST) -> set[str]:
    loaded = {name.id for name in source.of(ast.Name) if source.scope(name) is scope}
    return {*loaded, *parameters_of(scope)}


def _cumulated(source: Source, call: ast.Call) -> ast.expr | None:
    """Return the risk of `logcumsumexp(risk, 0)`, `exp(risk).cumsum(0)`, or None."""
    given = tensor_of(call)
    if called(call) == "cumsum" and given is not None:
        exponential = resolved(source, source.scope(call), given)
        is_exponential = isinstance(exponential, ast.Call) and called(exponential) == "exp"
        return tensor_of(exponential) if is_exponential else None  # type: ignore[arg-type]
    return given if called(call) == "logcumsumexp" else None


def _orders(source: Source, scope: ast.AST) -> Iterator[tuple[str, str, ast.Assign]]:
    """Yield the names of ascending orders in a scope, what they are orders of, and where."""
    for node in source.of(ast.Assign):
        value, target = node.value, node.targets[0]
        is_pair = called(value) == "sort" and isinstance(target, ast.Tuple)
        if source.scope(node) is scope and (is_pair or called(value) == "argsort"):
            by = tensor_of(value) if isinstance(value, ast.Call) else None
            by = by.value if isinstance(by, ast.Subscript) else by  # of a batch
            name = target.elts[-1] if isinstance(target, ast.Tuple) else target
            if by is not None:
                yield dotted(name), dotted(by), node
