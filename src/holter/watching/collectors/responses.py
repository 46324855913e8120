"""What models return in training: how much it varies between samples."""

import weakref
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from holter.record.signals import (
    RESPONSE_INPUT_SPREAD,
    RESPONSE_INPUT_UNITS,
    RESPONSE_SIZE,
    RESPONSE_SPREAD,
    RESPONSE_UNITS,
    Signal,
)
from holter.watching.collectors import Reading
from holter.watching.collectors.batches import grid
from holter.watching.collectors.calls import Calls, is_compiled
from holter.watching.collectors.inputs import roots
from holter.watching.collectors.moments import AfterUpdate, BackwardBegins, Closing, Depth, Joined
from holter.watching.collectors.outputs import readable
from holter.watching.collectors.roster import Roster
from holter.watching.structures import parts

_PARTS = 32  # of a model that may be called by themselves
_TENSORS = 4  # of what a call returns
_NESTED = 2
_SAMPLES = 4  # fewer tell nothing of a spread
_ELEMENTS = 4096  # of a sample
_BATCH = 256  # samples

_Values = dict[Signal, Tensor | float]
_Key = tuple[str, str]  # the owner, and the model that it is or belongs to


class Responses:
    """Reads the first call of each model, or of its direct parts where those are called alone.

    While a model is called, its parts are not heard: what they return is no response.
    """

    emits: ClassVar[tuple[Signal, ...]] = (
        RESPONSE_SPREAD,
        RESPONSE_SIZE,
        RESPONSE_UNITS,
        RESPONSE_INPUT_SPREAD,
        RESPONSE_INPUT_UNITS,
    )
    at: ClassVar[tuple[type, ...]] = (Joined, AfterUpdate, BackwardBegins, Closing)
    depth: ClassVar[Depth] = Depth.FULL
    wakes_at: ClassVar[tuple[type, ...]] = ()

    def __init__(self) -> None:
        self.declined: list[str] = []
        self._calls: Calls[_Key] = Calls(self._heard, self._returned)
        self._roster: weakref.ref[Roster] | None = None
        self._owners: dict[str, tuple[str, ...]] = {}
        self._taken: dict[str, _Values] = {}
        self._heard_of: set[str] = set()  # in the step

    @property
    def spent(self) -> float:
        """Seconds inside the hooks, which no moment sees."""
        return self._calls.spent

    def read(self, moment: Joined | AfterUpdate | BackwardBegins | Closing) -> Iterable[Reading]:
        """A value for each tensor that was returned, when the first backward of a step begins."""
        if isinstance(moment, BackwardBegins):
            self._calls.check()
            return self._readings() if moment.opens_step else ()
        self._calls.stop()
        self._taken.clear()
        self._heard_of.clear()
        if isinstance(moment, Closing):
            return ()
        depth = moment.depth if isinstance(moment, Joined) else moment.next_depth
        if depth >= self.depth:
            self._listen(moment.roster)
        return ()

    def _listen(self, roster: Roster) -> None:
        if any(is_compiled(model.module) for model in roster.models):
            return
        if self._roster is None or self._roster() is not roster:
            self._roster = weakref.ref(roster)
            whole = roots(roster)
            pieces = [
                (part, (f"{label}.{name}", label))
                for module, label in whole
                for name, part in list(module.named_children())[:_PARTS]
            ]
            self._calls.know([*pieces, *((module, (label, label)) for module, label in whole)])
        self._calls.listen()

    def _heard(self, key: _Key, module: nn.Module, arguments: Any) -> bool:  # noqa: ARG002
        return not torch.is_grad_enabled() or not self._heard_of.isdisjoint(key)

    def _returned(
        self, key: _Key, module: nn.Module, arguments: tuple[Any, Any], output: Any
    ) -> None:
        label = key[0]
        if module.training:  # else it may be a validation that forgot `no_grad`
            self._heard_of.add(label)
        given = next(_floats(arguments, _NESTED + 1), None)
        for place, tensor in zip(range(_TENSORS), _floats(output, _NESTED), strict=False):
            if tensor.dim() < 2 or len(tensor) < _SAMPLES:
                continue
            values: _Values = {}
            values[RESPONSE_SPREAD], values[RESPONSE_SIZE] = _spread(tensor)
            values[RESPONSE_UNITS] = tensor[0].numel()
            if given is not None and len(given) == len(tensor):
                values[RESPONSE_INPUT_SPREAD], _ = _spread(given)
                values[RESPONSE_INPUT_UNITS] = given[0].numel()
            self._taken[f"{label}[{place}]" if place else label] = values

    def _readings(self) -> Iterator[Reading]:
        self._calls.stop()
        taken, self._taken = self._taken, {}
        self._heard_of.clear()
        for owner, values in taken.items():
            owners = self._owners.setdefault(owner, (owner,))
            for signal, value in values.items():
                kept = value.reshape(1) if isinstance(value, Tensor) else [float(value)]
                yield Reading(signal, owners, kept)


def _spread(tensor: Tensor) -> tuple[Tensor, Tensor]:
    """Standard deviation across samples, as a root mean square over units, and the size of all."""
    some = tensor[:_BATCH]
    some = some[(slice(None), *grid(tuple(some.shape[1:]), _ELEMENTS))].reshape(len(some), -1)
    some = some if some.dtype == torch.float64 else some.to(torch.float32)
    apart = some - some.mean(dim=0)
    return apart.square().mean().sqrt(), some.square().mean().sqrt()


def _floats(value: Any, depth: int) -> Iterator[Tensor]:
    """Yield the floating-point tensors of a structure."""
    if isinstance(value, Tensor):
        tensor = readable(value)
        if tensor is not None and tensor.dim() and not value.is_nested:
            yield tensor
        return
    for _, _, part in (parts(value) if depth else None) or ():
        yield from _floats(part, depth - 1)
