"""Calls: one operation with its arguments told apart."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from holter.lab.birth.events import Twin
from holter.lab.birth.values import extent

_WIDER = {
    torch.float16: torch.float32,
    torch.bfloat16: torch.float32,
    torch.float32: torch.float64,
}
_LAYOUTS = (torch.strided, torch.sparse_coo)
_LARGEST = 1 << 27  # elements of an output that is computed once more
_NONE, _MEAN, _SUM = range(3)  # reductions of a loss, as torch numbers them


@dataclass(frozen=True, slots=True)
class Call:
    """An operation that is about to run."""

    func: Any
    name: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    tensors: tuple[Tensor, ...]
    names: tuple[str, ...]  # of the arguments that the tensors are
    changed: tuple[Tensor, ...]  # in place
    settings: Mapping[str, Any]

    @classmethod
    def of(cls, func: Any, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> "Call":
        """Tell the arguments apart."""
        tensors: list[Tensor] = []
        names: list[str] = []
        changed: list[Tensor] = []
        settings: dict[str, Any] = {}
        statistics = "batch_norm" in name and "backward" not in name
        for argument, value in _arguments(func, args, kwargs):
            found = list(tensors_in(value))
            if not found:
                settings[argument.name] = value
                continue
            tensors += found
            names += [argument.name] * len(found)
            written = argument.alias_info is not None and argument.alias_info.is_write
            # Batch norm does not always say that it changes its running statistics.
            if written or (statistics and argument.name.startswith("running_")):
                changed += found
        return cls(func, name, args, kwargs, tuple(tensors), tuple(names), tuple(changed), settings)

    @property
    def constant(self) -> bool:
        """Whether it is given a plain number that is not finite."""
        return any(True for _ in not_finite(self.settings))

    @property
    def is_random(self) -> bool:
        """Whether it draws random numbers."""
        return torch.Tag.nondeterministic_seeded in self.func.tags

    def twin(self, output: Tensor, before: Mapping[int, Tensor]) -> Twin | None:
        """The same once more with more bits; None if there are no more."""
        narrow, more = output.dtype, _WIDER.get(output.dtype)
        if more is None or self.is_random or output.numel() > _LARGEST:
            return None

        def wide(value: Any) -> Any:
            if isinstance(value, Tensor):
                was = before.get(id(value), value)
                return was.to(more) if was.dtype is narrow else was.clone()
            if isinstance(value, list | tuple):
                return type(value)(wide(each) for each in value)
            return more if value is narrow else value

        try:
            result = self.func(*wide(self.args), **{k: wide(v) for k, v in self.kwargs.items()})
        except (RuntimeError, TypeError):
            return None  # not every kernel knows both types
        again = next(iter(tensors_in(result)), None)
        if again is None or not again.is_floating_point():
            return None
        return Twin(extent(again) is None, float(again.abs().max()))

    def unreduced(self) -> Tensor | None:
        """The output of a loss before it is summed up; None if it is no such operation."""
        if self.settings.get("reduction") not in (_MEAN, _SUM):
            return None
        arguments = self.func._schema.arguments  # noqa: SLF001
        place = [argument.name for argument in arguments].index("reduction")
        if place >= len(self.args):
            return None
        args = (*self.args[:place], _NONE, *self.args[place + 1 :])
        return next(iter(tensors_in(self.func(*args, **self.kwargs))), None)


def tensors_in(value: Any) -> Iterator[Tensor]:
    """The tensors of an argument or a result, but for those of unusual kinds."""
    several = value if isinstance(value, list | tuple) else (value,)
    for each in several:
        if isinstance(each, Tensor) and each.layout in _LAYOUTS and not each.is_meta:
            yield each


def _arguments(
    func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Iterator[tuple[Any, Any]]:
    """The arguments that were given, each with what the schema says of it."""
    schema = func._schema.arguments  # noqa: SLF001
    yield from zip(schema, args, strict=False)
    if kwargs:
        known = {each.name: each for each in schema}
        yield from ((known[name], value) for name, value in kwargs.items())


def not_finite(settings: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield the settings that are, or in a list hold, a plain number that is not finite."""
    for name, value in settings.items():
        for number in value if isinstance(value, list | tuple) else (value,):
            if isinstance(number, float) and not math.isfinite(number):
                yield name, number
                break
