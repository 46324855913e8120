"""Numbers of a script, seen step by step: variables, attributes, results, optimizer options.

A rerun looks at what the frames of the script and the objects in them hold at each backward pass,
and at what its functions are given and return. Nothing is recorded in the training itself.
"""

import argparse
import contextlib
import dataclasses
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import FrameType, SimpleNamespace
from typing import Any

import numpy as np
from torch import Tensor, nn
from torch.optim import Optimizer

from holter.scripts.recognition.kinds import is_library

_DEEP = 3  # levels of objects below a variable
_OBJECTS = 200  # that are looked at in one step
_MOST = 400  # numbers that are followed
_NEAR_ONE = 1.5  # up to which a constant number is told: it may be a factor
_ENTRIES = 64  # of an object or dict


class Place(StrEnum):
    """Where a number is kept; in the order in which it is named, if it is in several places."""

    OPTION = "option"  # of optimizers
    ATTRIBUTE = "attribute"  # of an object, or an entry of a dict
    VARIABLE = "variable"
    RETURNED = "returned"  # by a function
    ARGUMENT = "argument"  # a variable too, of a function that is called


@dataclass(frozen=True, slots=True)
class ScriptNumber:
    """Names a number of a script."""

    place: str
    path: tuple[str, ...]  # a variable, and the way from it: attributes and "[keys]"
    file: str = ""
    function: str = ""  # that has the variable, or returns the number

    @property
    def says(self) -> str:
        """The number as the script writes it, without spaces."""
        if self.place == Place.RETURNED:
            return f"{self.function.rpartition('<locals>.')[2]}()"
        first, *others = self.path
        shown = first + "".join(part if part[0] == "[" else f".{part}" for part in others)
        return "".join(shown.split())


Series = dict[int, float]  # values by step


@dataclass(frozen=True, slots=True)
class SeenNumber:
    """A number of the script, and its values."""

    number: ScriptNumber
    steps: tuple[int, ...]
    values: tuple[float, ...]

    @property
    def series(self) -> Series:
        """Its values by step."""
        return dict(zip(self.steps, self.values, strict=True))


@dataclass(slots=True)
class NumberSurvey:
    """Follows the numbers of a script from now on."""

    step: Callable[[], int]  # that is under way
    seen: dict[ScriptNumber, Series] = field(default_factory=dict)

    def begin(self) -> None:
        """Follow the functions that will be called."""
        sys.settrace(self._entered)

    @staticmethod
    def end() -> None:
        """Follow nothing more."""
        sys.settrace(None)

    def look(self, frame: FrameType | None) -> None:
        """Look at a frame and those that called it."""
        step, left = self.step(), _OBJECTS
        known: set[int] = set()
        with contextlib.suppress(Exception):  # an object that does not like to be looked at
            while frame is not None:
                if is_script(frame):
                    for number, value in _numbers(frame, known, left):
                        self._see(number, step, value)
                frame = frame.f_back

    def look_at_options(self, optimizer: Optimizer) -> None:
        """Look at the options of an optimizer that is about to step."""
        step = self.step()
        for place, group in enumerate(optimizer.param_groups):
            for key, option in group.items():
                parts = option if isinstance(option, tuple | list) else (option,)
                for part, value in enumerate(parts[:2] if key != "params" else ()):
                    read = as_number(value)
                    if read is not None and not isinstance(value, bool):
                        where = f"{place} {part}"
                        self._see(ScriptNumber(Place.OPTION, (key,), "", where), step, read)

    def _entered(self, frame: FrameType, _event: str, _arg: Any) -> Any:
        if not is_script(frame):
            return None
        try:
            frame.f_trace_lines = False
            self._see_locals(frame)
        except Exception:  # an object of the script that does not like to be looked at
            return None
        return self._left

    def _left(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "return":
            value = as_number(arg) if not isinstance(arg, Tensor) else None
            if value is not None:
                code = frame.f_code
                number = ScriptNumber(Place.RETURNED, (), code.co_filename, code.co_qualname)
                self._see(number, self.step(), value)
        return self._left

    def _see_locals(self, frame: FrameType) -> None:
        code, step = frame.f_code, self.step()
        for name, value in frame.f_locals.items():
            read = as_number(value) if not isinstance(value, Tensor) else None
            if read is not None:
                number = ScriptNumber(Place.ARGUMENT, (name,), code.co_filename, code.co_qualname)
                self._see(number, step, read)

    def _see(self, number: ScriptNumber, step: int, value: float) -> None:
        if number in self.seen or len(self.seen) < _MOST:
            self.seen.setdefault(number, {})[step] = value

    @property
    def told(self) -> tuple[SeenNumber, ...]:
        """The numbers that had several finite values, and those a little above 1."""
        return tuple(
            SeenNumber(number, tuple(series), tuple(series.values()))
            for number, series in self.seen.items()
            if all(map(math.isfinite, series.values()))
            and (len({*series.values()}) > 1 or 1 < next(iter(series.values())) < _NEAR_ONE)
        )


def is_script(frame: FrameType) -> bool:
    """Whether a frame runs code of the script."""
    return not is_library(frame.f_code.co_filename)


def as_number(value: object) -> float | None:
    """Return a number as a float; None for anything else, and for what is trained."""
    if isinstance(value, Tensor):
        plain = value.numel() == 1 and value.grad_fn is None and not value.requires_grad
        return float(value) if plain and not value.is_complex() else None
    if isinstance(value, int | float | np.integer | np.floating):
        with contextlib.suppress(OverflowError):  # an integer that no float holds
            return float(value)
    return None


def part_of(owner: Any, part: str) -> Any:
    """Return an attribute, or an entry for "[key]"; raises LookupError or AttributeError."""
    return owner[part[1:-1]] if part[0] == "[" else getattr(owner, part)


def _numbers(frame: FrameType, known: set[int], left: int) -> Iterator[tuple[ScriptNumber, float]]:
    """Yield the numbers of a frame, of its module, and of the objects that these hold."""
    code = frame.f_code
    scopes = [(code.co_qualname, dict(frame.f_locals))]
    if frame.f_locals is not frame.f_globals:
        scopes.append(("<module>", dict(frame.f_globals)))
    for function, scope in scopes:
        waiting: list[tuple[tuple[str, ...], Any]] = [
            ((name,), value) for name, value in scope.items() if not name.startswith("__")
        ]
        while waiting:
            path, value = waiting.pop(0)
            read = as_number(value)
            if read is not None:
                place = Place.VARIABLE if len(path) == 1 else Place.ATTRIBUTE
                yield ScriptNumber(place, path, code.co_filename, function), read
            elif len(path) <= _DEEP and id(value) not in known and len(known) < left:
                parts = list(_parts(value))
                if parts:
                    known.add(id(value))
                    waiting += [((*path, name), part) for name, part in parts]


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield what an object of the script holds, by name."""
    if isinstance(value, dict):
        entries = list(value.items())
        if len(entries) <= _ENTRIES:
            yield from ((f"[{key}]", part) for key, part in entries if isinstance(key, str) and key)
        return
    if not _is_own(value):
        return
    inside: Mapping[str, Any] = vars(value) if hasattr(value, "__dict__") else {}
    if isinstance(value, nn.Module):
        inside = {**inside, **value._modules}  # noqa: SLF001
    elif not inside and dataclasses.is_dataclass(value):
        names = [each.name for each in dataclasses.fields(value)]
        inside = {name: getattr(value, name) for name in names if hasattr(value, name)}
    for name, part in list(inside.items())[:_ENTRIES]:
        if name and not name.startswith("__"):
            yield name, part


def _is_own(value: Any) -> bool:
    """Whether it is an object, or a class, that the script defines, or a plain namespace."""
    if isinstance(value, argparse.Namespace | SimpleNamespace):
        return True
    cls = value if isinstance(value, type) else type(value)
    if cls.__module__ == "__main__":
        return True
    module = sys.modules.get(cls.__module__)
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and not is_library(file)
