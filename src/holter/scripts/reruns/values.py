"""Values that a script computes outside of its steps: the line that made the first bad one.

Torch sees no operation of numpy, of `math` and of plain Python, nor what was put into a buffer many
steps ago. So the lines of the script are followed while it runs again, and what each line stores or
returns is looked at.
"""

import ast
import dis
import linecache
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from types import CodeType, FrameType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from holter.lab.birth.sources import is_hidden, shortened
from holter.record.births import Birth

_MOST = 200_000  # elements of a value that are looked at
_FEW = 16  # parts of a tuple or list that are
_DEEP = 2  # levels of them
_STORES = ("STORE_FAST", "STORE_NAME", "STORE_GLOBAL", "STORE_DEREF")
_LOADS = ("LOAD_FAST", "LOAD_NAME", "LOAD_GLOBAL", "LOAD_DEREF")
_LITERAL = re.compile(r"\b(inf|nan|infinity)\b", re.IGNORECASE)  # it is meant to be one
_KINDS = {
    **dict.fromkeys(("log", "log2", "log10", "log1p"), "log of zero"),
    **dict.fromkeys(("sqrt", "rsqrt", "acos", "asin", "arccos", "arcsin", "pow"), "outside domain"),
    **dict.fromkeys(("exp", "expm1", "exp2"), "exp overflow"),
    **dict.fromkeys(("div", "reciprocal"), "division by zero"),
    **dict.fromkeys(("std", "var"), "empty mean"),
}
_NAMES = {"power": "pow", "divide": "div", "true_divide": "div", "float_power": "pow"}


@dataclass(slots=True)
class _Line:
    """What a line of the script has stored or returned so far."""

    clean: int = 0  # times that it was finite
    first: tuple[int, int, str] | None = None  # order, step and value when it first was not


@dataclass(slots=True)
class ValueTrace:
    """Follows the lines of a script from now on."""

    step: Callable[[], int]  # that is under way
    rates: Callable[[], Iterable[float]]  # learning rates of the optimizers
    _lines: dict[tuple[str, int], _Line] = field(default_factory=dict)
    _order: int = 0
    _spoiled_by: tuple[tuple[str, int], int, int] | None = None  # line that set a bad rate

    def begin(self) -> None:
        """Follow the frames that are running, and those that will."""
        sys.settrace(self._entered)
        frame: FrameType | None = sys._getframe(1)  # noqa: SLF001
        while frame is not None:
            if not is_hidden(frame.f_code.co_filename):
                frame.f_trace = _Follower(self, frame.f_lineno)
            frame = frame.f_back

    def _entered(self, frame: FrameType, _event: str, _arg: Any) -> Any:
        if is_hidden(frame.f_code.co_filename) or "-packages" in frame.f_code.co_filename:
            return None
        return _Follower(self, None)

    def ran(self, frame: FrameType, line: int, returned: list[Any]) -> None:
        """Look at what a line has stored or returned."""
        code = frame.f_code
        place = (code.co_filename, line)
        stored, loaded = _names(code).get(line, (frozenset(), frozenset()))
        values = [_named(frame, name) for name in stored] + returned
        if values and not _LITERAL.search(linecache.getline(*place)):
            bad = next((told for told in map(_wrong, values) if told), "")
            inherited = bad and any(_wrong(_named(frame, name)) for name in loaded - stored)
            known = self._lines.setdefault(place, _Line())
            if not bad:
                known.clean += 1
            elif known.first is None and not inherited:
                self._order += 1
                known.first = (self._order, self.step(), bad)
        if self._spoiled_by is None and not all(map(math.isfinite, self.rates())):
            self._order += 1
            self._spoiled_by = (place, self._order, self.step())

    def birth(self, *, of_setting: bool) -> Birth | None:
        """Return the line that made the value of a bad learning rate, or else of a bad input."""
        found = [
            (known.first, place) for place, known in self._lines.items() if known.first is not None
        ]
        if of_setting:
            if self._spoiled_by is None:
                return None
            at, order, step = self._spoiled_by
            before = [each for each in found if each[0][0] < order and each[0][1] >= step - 1]
            if not before:
                return _told(at, step, "NaN", of_setting=True)
            first, place = max(before)
            return _told(_made_at(found, first, place), first[1], first[2], of_setting=True)
        if not found:
            return None
        # A line that gives such values whenever it runs gives them on purpose, as a mask does.
        turned = [each for each in found if self._lines[each[1]].clean]
        first, place = min(turned or found)
        return _told(place, first[1], first[2], of_setting=False)


def _made_at(
    found: list[tuple[tuple[int, int, str], tuple[str, int]]],
    last: tuple[int, int, str],
    place: tuple[str, int],
) -> tuple[str, int]:
    """Return the first line of those that passed a value on within one step."""
    same = [each for each in found if each[0][1] >= last[1] - 1 and each[0][0] <= last[0]]
    return min(same)[1] if same else place


class _Follower:
    """The trace function of one frame: tells of each line after it has run."""

    def __init__(self, trace: ValueTrace, line: int | None) -> None:
        self._trace, self._line = trace, line

    def __call__(self, frame: FrameType, event: str, arg: Any) -> Any:
        try:
            if event == "line":
                if self._line is not None:
                    self._trace.ran(frame, self._line, [])
                self._line = frame.f_lineno
            elif event == "return":
                self._trace.ran(frame, frame.f_lineno, [arg])
        except Exception:  # an object of the script that does not like to be looked at
            return self
        return self


@cache
def _names(code: CodeType) -> dict[int, tuple[frozenset[str], frozenset[str]]]:
    """Return the names that each line of a code stores, and those that it loads."""
    stored: dict[int, set[str]] = {}
    loaded: dict[int, set[str]] = {}
    line = code.co_firstlineno
    for each in dis.get_instructions(code):
        line = each.starts_line if each.starts_line is not None else line
        if each.opname in _STORES:
            stored.setdefault(line, set()).add(str(each.argval))
        elif each.opname in _LOADS:
            loaded.setdefault(line, set()).add(str(each.argval))
    return {
        line: (frozenset(stored.get(line, ())), frozenset(loaded.get(line, ())))
        for line in stored.keys() | loaded.keys()
    }


def _named(frame: FrameType, name: str) -> Any:
    return frame.f_locals.get(name, frame.f_globals.get(name))


def _wrong(value: Any, depth: int = 0) -> str:
    """Return the first value in it that is not finite, as text; "" if there is none."""
    if isinstance(value, float | np.floating):
        return "" if math.isfinite(value) else _shown(float(value))
    if isinstance(value, np.ndarray):
        if value.dtype.kind != "f" or value.size > _MOST or np.isfinite(value).all():
            return ""
        return _shown(float(value[~np.isfinite(value)].flat[0]))
    if isinstance(value, Tensor):
        return _of_tensor(value)
    if isinstance(value, tuple | list) and depth < _DEEP:
        return next((told for part in value[:_FEW] if (told := _wrong(part, depth + 1))), "")
    return ""


def _of_tensor(value: Tensor) -> str:
    if not value.is_floating_point() or value.numel() > _MOST or value.layout != torch.strided:
        return ""
    plain = value.detach()
    finite = plain.isfinite()
    return "" if bool(finite.all()) else _shown(float(plain[~finite].flatten()[0]))


def _shown(value: float) -> str:
    return "NaN" if math.isnan(value) else str(value)


def _told(place: tuple[str, int], step: int, value: str, *, of_setting: bool) -> Birth:
    """Return what is known of a line as a birth."""
    file, number = place
    line = linecache.getline(file, number).strip()
    where = f"{shortened(file)}:{number}"
    operation = next(_operations(file, number), "")
    kind = _KINDS.get(operation, "unknown")
    if kind == "log of zero" and value == "NaN":
        kind = "outside domain"
    elif operation == "pow" and value != "NaN":
        kind = "overflow"
    reaches = "a setting of the optimizer" if of_setting else "the loss"
    doing = f"{operation}, " if operation else ""
    return Birth(
        operation=operation,
        kind=kind,
        phase="forward",
        where=where,
        line=line,
        module="",
        node="",
        operands=(),
        count=1,
        of=1,
        samples=(),
        positions=(),
        passed_on=0,
        passed_to=(),
        headroom=None,
        says=f"{value} is born in {doing}`{line}` at {where} (by the script itself, before the"
        f" update of step {max(step, 0)}), and reaches {reaches}.",
        before_step=True,
        reaches="setting" if of_setting else "input",
    )


def _operations(file: str, number: int) -> Iterator[str]:
    """Yield the operations on a line that have no value for some operands, as torch names them."""
    for node in ast.walk(_tree(file)):
        if getattr(node, "lineno", None) != number:
            continue
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            name = _NAMES.get(name, name)
            if name in _KINDS:
                yield name
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            yield "pow"
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            yield from () if isinstance(node.right, ast.Constant) else ("div",)


@cache
def _tree(file: str) -> ast.Module:
    try:
        return ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return ast.Module([], [])
