"""Features of a forecast that are computed from later rows: centred windows, negative shifts."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.expressions import number, resolved
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import (
    Function,
    Pattern,
    Source,
    called,
    dotted,
    parameters_of,
)

_FORECAST = re.compile(
    r"forecast|horizon|nowcast|(hours?|days?|steps?)_ahead|lookback|look_back", re.I
)
_FILTERS = {
    "filtfilt",
    "sosfiltfilt",
    "savgol_filter",
    "gaussian_filter1d",
    "uniform_filter1d",
    "medfilt",
    "median_filter",
}
_SHIFTS = {"shift", "diff", "pct_change"}
_DRAWS = re.compile(r"(rng|random|rs|gen|generator)\.\w+\(|\brandn?\(|normal\(|RandomState", re.I)
_SIMULATION = re.compile(r"simul|synth|generat|make_(data|series|signal|load)|fake|toy|draw", re.I)
_TARGET = re.compile(
    r"target|label|^y$|(^|_)y(_|$)|future|answer|next|lead|ahead|truth|actual", re.I
)
_SHOWN = re.compile(
    r"plot|plt|ax\d?\.|fig|decompos|detect|anomal|denois|reconstr|target|label", re.I
)


@reads
def centred(source: Source) -> Iterator[Pattern]:
    """`np.convolve(x, kernel, "same")` or `rolling(24, center=True)` in features of a forecast."""
    if not _FORECAST.search(source.code(source.tree)):
        return
    for call in source.of(ast.Call):
        if not _is_centred(source, call) or _is_of_simulation(source, call):
            continue
        place = _taken_as(source, call)
        if place and not _SHOWN.search(place):
            yield source.pattern("centred window", call, called(call))


@reads
def centred_by_hand(source: Source) -> Iterator[Pattern]:
    """`x[max(0, i - k) : i + k + 1].mean()` for each row `i` of a series that is forecast."""
    if not _FORECAST.search(source.code(source.tree)):
        return
    nodes: list[ast.Subscript | ast.BinOp] = [*source.of(ast.Subscript), *source.of(ast.BinOp)]
    for node in nodes:
        lower, upper = _bounds_of_mean(source, node)
        if lower is None or upper is None:
            continue
        width = _around(source, lower, upper)
        scope = source.scope(node)
        if not width or _is_simulation(source, scope):
            continue
        if not _SHOWN.search(getattr(scope, "name", "")):
            yield source.pattern("centred window", node, width)


def _bounds_of_mean(
    source: Source, node: ast.Subscript | ast.BinOp
) -> tuple[ast.expr | None, ast.expr | None]:
    """Return the bounds of `x[a:b].mean()`, or of `(c[b] - c[a]) / n` of a cumulative sum."""
    above = source.parent(node)
    if isinstance(node, ast.Subscript):
        part = node.slice
        if not isinstance(part, ast.Slice):
            return None, None
        name = above.attr if isinstance(above, ast.Attribute) else called(above or node)
        is_mean = name in ("mean", "median", "std", "nanmean", "average")
        if name == "sum":
            owner = above if isinstance(above, ast.Call) else source.parent(above or node)
            over = source.parent(owner) if owner is not None else None
            is_mean = isinstance(over, ast.BinOp) and isinstance(over.op, ast.Div)
        return (part.lower, part.upper) if is_mean else (None, None)
    after, before = node.left, node.right
    if (
        isinstance(node.op, ast.Sub)
        and isinstance(after, ast.Subscript)
        and isinstance(before, ast.Subscript)
        and dotted(after.value) == dotted(before.value) != ""
        and isinstance(above, ast.BinOp)
        and isinstance(above.op, ast.Div)
        and above.left is node
    ):
        summed = resolved(source, source.scope(node), after.value)
        if any(called(each) in ("cumsum", "accumulate") for each in ast.walk(summed)):
            return before.slice, after.slice
    return None, None


def _around(source: Source, lower: ast.expr, upper: ast.expr) -> str:
    """Return how far bounds lie to both sides of a row: `i - k` and `min(n, i + k + 1)`."""
    texts = []
    for given, end in ((lower, "max"), (upper, "min")):
        bound = resolved(source, source.scope(given), given)
        if called(bound) in (end, f"{end}imum") and isinstance(bound, ast.Call):
            sums = [each for each in bound.args if isinstance(each, ast.BinOp)]
            bound = (sums or bound.args)[0]
        texts.append(ast.unparse(bound))
    before = re.fullmatch(r"(\w+) - (\w+(?: // 2)?)", texts[0])
    after = re.fullmatch(r"(\w+) \+ (\w+(?: // 2)?)( \+ 1)?", texts[1])
    if before is None or after is None or before.groups() != after.groups()[:2]:
        return ""
    return before.group(2)


def _is_centred(source: Source, call: ast.Call) -> bool:
    name = called(call)
    if name == "rolling":
        return any(
            each.arg == "center" and getattr(each.value, "value", None) is True
            for each in call.keywords
        )
    if name in _FILTERS:
        home = dotted(call.func).rpartition(".")[0]
        return not home or source.imported.get(home.partition(".")[0]) == "scipy"
    if name != "convolve" or len(call.args) < 2:
        return False
    modes = [*call.args[2:3], *(each.value for each in call.keywords if each.arg == "mode")]
    return any(getattr(each, "value", "") == "same" for each in modes) and _is_average(source, call)


def _is_average(source: Source, call: ast.Call) -> bool:
    """Whether the kernel is one of equal weights: `np.ones(k) / k`."""
    kernel = resolved(source, source.scope(call), call.args[1])
    return any(
        called(each) in ("ones", "full", "hanning", "hamming", "bartlett")
        for each in ast.walk(kernel)
    )


def _is_of_simulation(source: Source, call: ast.Call) -> bool:
    """Whether a series is made up, not measured: by random numbers, or where such are drawn."""
    scope = source.scope(call)
    given = ast.unparse(call)
    if _DRAWS.search(given):
        return True
    if isinstance(scope, Function):
        if _is_simulation(source, scope):
            return True
        homes = [source.scope(each) for each in source.of(ast.Call) if called(each) == scope.name]
        return bool(homes) and all(_is_simulation(source, each) for each in homes)
    names = {each.id for each in ast.walk(call) if isinstance(each, ast.Name)}
    return any(
        name in names and _DRAWS.search(ast.unparse(value))
        for name, value, _ in source.assigned(scope)
    )


def _is_simulation(source: Source, scope: ast.AST) -> bool:
    name = getattr(scope, "name", "")
    is_helper = isinstance(scope, Function) and name != "main"
    return is_helper and bool(_SIMULATION.search(name) or _DRAWS.search(source.code(scope)))


def _taken_as(source: Source, call: ast.Call) -> str:
    """Return the name that a smoothed series is given or returned under, or ""."""
    for node in source.above(call):
        if isinstance(node, ast.AugAssign):
            return ""  # the series without its trend
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            return ""
        if isinstance(node, ast.Assign):
            return ast.unparse(node.targets[0])
        if isinstance(node, ast.Return):
            return getattr(source.scope(call), "name", "")
        if isinstance(node, ast.Call) and called(node) in (
            "append",
            "stack",
            "column_stack",
            "concatenate",
        ):
            return "features"
    return ""


@reads
def later_rows(source: Source) -> Iterator[Pattern]:
    """`df["next"] = df["load"].shift(-1)` where the column is among the features of a forecast."""
    columns = _feature_columns(source)
    for node in source.of(ast.Assign):
        target = node.targets[0]
        key = target.slice if isinstance(target, ast.Subscript) else None
        name = key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else ""
        if not name or name not in columns or re.search(r"target|label|^y$", name, re.I):
            continue
        moved = [
            call
            for call in source.walk(node.value)
            if called(call) in _SHIFTS and isinstance(call, ast.Call) and _is_negative(source, call)
        ]
        if moved:
            yield source.pattern("later rows", node, name)


def _is_negative(source: Source, call: ast.Call) -> bool:
    given = [*call.args[:1], *(each.value for each in call.keywords if each.arg == "periods")]
    value = number(source, given[0]) if given else None
    return value is not None and value < 0


def _feature_columns(source: Source) -> set[str]:
    """Return the columns that a list of features names: `FEATURES = ["speed", "lead"]`."""
    found: set[str] = set()
    for node in source.of(ast.Assign):
        name = dotted(node.targets[0]).rpartition(".")[2]
        if re.search(
            r"feat|(^|_)cols?(_|$)|columns|inputs?|numeric|predictors", name, re.I
        ) and not re.search(r"target|label|all|raw", name, re.I):
            found |= {
                each.value
                for each in source.walk(node.value)
                if isinstance(each, ast.Constant) and isinstance(each.value, str)
            }
    return found


@reads
def filled_backwards(source: Source) -> Iterator[Pattern]:
    """`df.bfill()` as the first filling of the gaps in a series that is forecast."""
    if not _FORECAST.search(source.code(source.tree)):
        return
    for call in source.of(ast.Call):
        is_backward = called(call) in ("bfill", "backfill") or (
            called(call) == "fillna"
            and any(
                each.arg == "method" and getattr(each.value, "value", "") in ("bfill", "backfill")
                for each in call.keywords
            )
        )
        if not is_backward or not isinstance(call.func, ast.Attribute):
            continue
        before = source.code(call.func.value)
        whole = source.scope(call)
        # After a forward fill, only the gap at the very beginning is left.
        if re.search(r"ffill|pad|interpolate|shift|rolling|ewm|diff|lag", before):
            continue
        earlier = [
            each
            for each in source.of(ast.Call)
            if source.scope(each) is whole
            and each.lineno < call.lineno
            and called(each) in ("ffill", "shift", "rolling", "diff", "pad", "fillna")
        ]
        if not earlier and not parameters_of(whole)[3:]:
            yield source.pattern("filled backwards", call, before.splitlines()[0])


@reads
def rolled_forward(source: Source) -> Iterator[Pattern]:
    """`def lag(x, k): np.roll(x, -k)`: the row of `k` steps later is called one of before."""
    for call in source.of(ast.Call):
        if called(call) not in ("roll", "shift") or isinstance(source.parent(call), ast.Expr):
            continue
        if called(call) == "roll":
            given = [
                *call.args[1:2],
                *(k.value for k in call.keywords if k.arg in ("shift", "shifts")),
            ]
        else:
            given = [*call.args[:1], *(k.value for k in call.keywords if k.arg == "periods")]
        if (
            not given
            or not isinstance(given[0], ast.UnaryOp)
            or not isinstance(given[0].op, ast.USub)
        ):
            continue
        name = getattr(source.scope(call), "name", "")
        for node in source.above(call):
            if isinstance(node, ast.Assign):
                target = node.targets[0]
                key = target.slice if isinstance(target, ast.Subscript) else None
                name += " " + str(getattr(key, "value", "")) + " " + dotted(target)
                break
        if re.search(
            r"(^|[_ ])(lag(ged|s)?|prev(ious)?|past|last|before|yesterday)([_ \d]|$)", name, re.I
        ) and not _TARGET.search(name):
            yield source.pattern("later rows", call, name.split()[0])


@reads
def padded_on_both_sides(source: Source) -> Iterator[Pattern]:
    """A moving mean of `np.concatenate([np.full(k // 2, s[0]), s, np.full(k // 2, s[-1])])`."""
    if not _FORECAST.search(source.code(source.tree)):
        return
    for call in source.of(ast.Call):
        scope = source.scope(call)
        if called(call) != "convolve" or not call.args or not isinstance(scope, Function):
            continue
        if "valid" not in ast.unparse(call) or _is_of_simulation(source, call):
            continue
        padded = resolved(source, scope, call.args[0])
        halves = [
            each
            for each in ast.walk(padded)
            if isinstance(each, ast.BinOp)
            and isinstance(each.op, ast.FloorDiv)
            and getattr(each.right, "value", None) == 2
        ]
        parts = padded.args[0] if isinstance(padded, ast.Call) and padded.args else None
        is_joined = isinstance(parts, ast.List | ast.Tuple) and len(parts.elts) == 3
        is_padded = called(padded) == "pad" and len(halves) >= 1 and "," in ast.unparse(padded)
        if (is_joined and len(halves) == 2) or (
            is_padded and not re.search(r"\(k - 1, 0\)|, 0\)", ast.unparse(padded))
        ):
            yield source.pattern("centred window", call, "convolve")


@reads
def target_of_history(source: Source) -> Iterator[Pattern]:
    """`history = s[i:mid]` and the target `s[mid - 1 : end - 1]`: it begins with the last row."""
    for node in source.of(ast.Return):
        scope = source.scope(node)
        if getattr(scope, "name", "") != "__getitem__" or not isinstance(node.value, ast.Tuple):
            continue
        target = resolved(source, scope, node.value.elts[-1])
        begin, end, base = _bounds(target)
        if not isinstance(begin, ast.BinOp) or not isinstance(begin.op, ast.Sub):
            continue
        if not isinstance(end, ast.BinOp) or not isinstance(end.op, ast.Sub):
            continue
        back = ast.unparse(begin.right)
        if back != ast.unparse(end.right) or not isinstance(begin.right, ast.Constant):
            continue
        for other in source.of(ast.Subscript):
            if source.scope(other) is scope and other is not target:
                first, last, of = _bounds(other)
                if (
                    of == base
                    and first is not None
                    and last is not None
                    and ast.unparse(last) == ast.unparse(begin.left)
                ):
                    yield source.pattern("target inside", target, base)
                    break


def _bounds(node: ast.expr) -> tuple[ast.expr | None, ast.expr | None, str]:
    if not isinstance(node, ast.Subscript):
        return None, None, ""
    part = (
        node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
    )
    if not isinstance(part, ast.Slice):
        return None, None, ""
    return part.lower, part.upper, dotted(node.value)
