"""Angles in degrees that are taken for radians, and hours that turn in another period."""

import ast
import math
import re
from collections.abc import Iterator

from holter.scripts.reading.source.expressions import HOMES, number, tensor_of
from holter.scripts.reading.source.origins import Frame, origins, passed
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import (
    Function,
    Pattern,
    Source,
    called,
    dotted,
    parameters_of,
)

_WAVES = {"sin", "cos", "tan", "sincos"}
_CONVERSION = re.compile(
    r"deg2rad|radians|to_rad|as_rad|[/*] ?180|180(\.0)? ?/|pi|6\.28|0\.01745", re.I
)
_DEGREES = re.compile(
    r"(^|_)(deg|degs|degree|degrees)$|^(wind|wave|current|swell|fc|ship|air)?_?(direction|dir|heading|bearing|azimuth)s?$"
    r"|^(lat|latitude|lon|lng|longitude)s?(_?\d|_[a-z])?$|^(lat|lon)s?$",
    re.I,
)
_RADIANS = re.compile(r"rad|phase|theta|omega|freq", re.I)
_TO_DEGREES = re.compile(r"arctan2|atan2|rad2deg|angle\(")
_DRAWS = {"uniform", "randint", "integers", "rand", "random"}
_LARGEST = 6.5  # radians of a turn, and a little
_PERIODS = {
    "hour": (24,),
    "hours": (24,),
    "hr": (24,),
    "hod": (24,),
    "hour_of_day": (24,),
    "month": (12,),
    "months": (12,),
    "mon": (12,),
    "month_of_year": (12,),
    "weekday": (7,),
    "dow": (7,),
    "wday": (7,),
    "day_of_week": (7,),
    "dayofweek": (7,),
    "doy": (365, 366, 365.25, 365.2425),
    "day_of_year": (365, 366, 365.25, 365.2425),
    "dayofyear": (365, 366, 365.25, 365.2425),
    "yday": (365, 366, 365.25, 365.2425),
}


@reads
def degrees(source: Source) -> Iterator[Pattern]:
    """`np.sin(direction)` of a direction in degrees: `% 360`, drawn within 15, or so named."""
    for call in source.of(ast.Call):
        given = tensor_of(call) if called(call) in _WAVES else None
        if given is None or not _is_wave(call):
            continue
        scope = source.scope(call)
        if _CONVERSION.search(ast.unparse(given)):
            continue
        if _is_of_degrees(source, scope, given, 0):
            yield source.pattern("degrees as radians", call, ast.unparse(given))


def _is_wave(call: ast.Call) -> bool:
    if isinstance(call.func, ast.Attribute) and dotted(call.func.value) in HOMES:
        return len(call.args) == 1
    return isinstance(call.func, ast.Name) or not call.args


def _is_of_degrees(source: Source, scope: ast.AST, node: ast.expr, depth: int) -> bool:
    """Whether an expression is an angle in degrees, as far as the file says so."""
    if depth > 3:
        return False
    node = _bare(node)
    text = ast.unparse(node)
    if _CONVERSION.search(text) or _TO_DEGREES.search(text):
        return False
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Mod):
            return number(source, node.right) == 360
        if isinstance(node.op, ast.Add | ast.Sub):
            return any(
                _is_of_degrees(source, scope, side, depth + 1) for side in (node.left, node.right)
            )
        return isinstance(node.op, ast.Mult) and _is_scaled(source, node)
    if isinstance(node, ast.Call):
        return called(node) in _DRAWS and _is_wide(source, node)
    name = _word(node)
    if not name or _RADIANS.search(name):
        return False
    if isinstance(node, ast.Name):
        known = _values(source, scope, node)
        if known is None or any(_CONVERSION.search(ast.unparse(each)) for _, each in known):
            return False
        if known:
            return all(_is_of_degrees(source, home, each, depth + 1) for home, each in known)
    is_named = _DEGREES.search(name) and not _is_converted(source, name)
    return bool(is_named) and _says_degrees(source, name)


def _is_converted(source: Source, name: str) -> bool:
    """Whether the file stores radians under a name, or in the column of a name."""
    if any(_CONVERSION.search(source.code(each)) for each in source.named(name)):
        return True
    return any(
        isinstance(assign.targets[0], ast.Subscript)
        and _word(assign.targets[0]) == name
        and _CONVERSION.search(source.code(assign.value))
        for assign in source.of(ast.Assign)
    )


def _values(
    source: Source, scope: ast.AST, node: ast.Name
) -> list[tuple[ast.AST, ast.expr]] | None:
    """Return what a name is given, also by the calls of its function; None if it is changed."""
    if any(isinstance(each, ast.AugAssign) for each in source.bindings(scope, node.id)):
        return None
    if node.id in parameters_of(scope) and not source.bindings(scope, node.id):
        given = list(passed(source, scope, node.id)) if isinstance(scope, Function) else []
        return [(source.scope(each), each) for each in given]
    return [(each.frame.scope, each.node) for each in origins(source, node, Frame(scope))]


def _bare(node: ast.expr) -> ast.expr:
    """Return an expression without what leaves its unit as it is: `d.values.astype(float)`."""
    while True:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr not in {"astype", "to_numpy", "float", "to", "double", "copy"}:
                return node
            node = node.func.value
        elif isinstance(node, ast.Attribute) and node.attr == "values":
            node = node.value
        else:
            return node


def _word(node: ast.expr) -> str:
    """Return the name of a variable or a column: `frame["wind_dir"]`, `d.heading`, `batch.lat`."""
    if isinstance(node, ast.Subscript):
        key = node.slice
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            return key.value
        return _word(node.value)
    return dotted(node).rpartition(".")[2]


def _is_wide(source: Source, call: ast.Call) -> bool:
    """Whether random numbers go beyond a turn in radians and end at a round number of degrees."""
    bounds = [number(source, each) for each in call.args[:2]]
    known = [abs(each) for each in bounds if each is not None]
    if called(call) in ("rand", "random") or not known or len(known) < len(bounds):
        return False
    return max(known) > _LARGEST and max(known) % 5 == 0 and max(known) <= 360


def _is_scaled(source: Source, node: ast.BinOp) -> bool:
    """Whether a random number is multiplied by a largest angle: `(rand(1) * 2 - 1) * 15`."""
    if not any(called(each) in _DRAWS for each in source.walk(node)):
        return False
    for side in (node.left, node.right):
        size = number(source, side)
        is_angle = re.search(r"angle|rot|tilt|turn", ast.unparse(side), re.I)
        if is_angle and size is not None and _LARGEST < abs(size) <= 360 and not size % 5:
            return True
    return False


def _says_degrees(source: Source, name: str) -> bool:
    """Whether the name itself has the unit, or the file converts or wraps angles as degrees."""
    if re.search(r"deg", name, re.I):
        return True
    if re.match(r"(lat|lon|lng)", name, re.I):
        return bool(
            re.search(
                r"haversine|geo|6371|longitude|latitude|(^|\W)lon(\W|$)",
                source.code(source.tree),
                re.I,
            )
        )
    text = source.code(source.tree)
    is_of_weather = re.match(r"(wind|wave|current|swell)_?", name, re.I)
    return bool(re.search(r"360|degrees?\b|deg2rad|radians\(", text) or is_of_weather)


@reads
def other_period(source: Source) -> Iterator[Pattern]:
    """`np.sin(2 * np.pi * hour / 12)` and no wave of the hour with its own period of 24."""
    found: dict[str, list[tuple[ast.Call, float]]] = {}
    for call in source.of(ast.Call):
        given = tensor_of(call) if called(call) in _WAVES else None
        if given is None or not _is_wave(call):
            continue
        for inner in _phases(source, source.scope(call), given):
            name, period = _period(source, inner)
            if name:
                found.setdefault(name, []).append((call, period))
    for name, waves in found.items():
        own = _PERIODS[name]
        if any(_is_near(period, each) for _, period in waves for each in own):
            continue
        # A wave of a longer period tells hours apart as well; a shorter one does not.
        if all(period < 0.999 * own[0] for _, period in waves):
            yield source.pattern("another period", waves[0][0], f"{name}, {own[0]:g}")


def _phases(source: Source, scope: ast.AST, node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.Name):
        return [each.node for each in origins(source, node, Frame(scope))]
    return [node]


def _period(source: Source, node: ast.expr) -> tuple[str, float]:
    """Return the name and the period of `2 * np.pi * hour / 24`, or ""."""
    factor, names = 1.0, []
    for part, power in _factors(node, 1):
        value = math.pi if dotted(part).rpartition(".")[2] in ("pi", "PI") else None
        if dotted(part) in ("tau", "math.tau", "TAU"):
            value = 2 * math.pi
        value = number(source, part) if value is None else value
        if value is None:
            names.append((part, power))
        elif not value:
            return "", 0
        else:
            factor *= value**power
    if len(names) != 1 or names[0][1] != 1 or factor <= 0:
        return "", 0
    name = _word(_bare(names[0][0])).lower()
    return (name, 2 * math.pi / factor) if name in _PERIODS else ("", 0)


def _factors(node: ast.expr, power: int) -> Iterator[tuple[ast.expr, int]]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):
        yield from _factors(node.left, power)
        yield from _factors(node.right, -power if isinstance(node.op, ast.Div) else power)
    else:
        yield node, power


def _is_near(one: float, other: float) -> bool:
    return abs(one - other) < 0.003 * other
