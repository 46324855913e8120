"""Whether gradients were cleared between one step of an optimizer and its next."""

import weakref
from collections.abc import Iterable, Sequence
from typing import ClassVar

from torch import Tensor

from holter.record.signals import GRAD_CARRIED_FRACTION, Signal
from holter.watching.collectors import Reading
from holter.watching.collectors.moments import (
    AfterUpdate,
    BackwardBegins,
    BackwardEnds,
    Depth,
    GradientsReady,
)
from holter.watching.stats.shards import local
from holter.watching.stats.summary import norms

# Parameters of an optimizer to look at: a script that clears gradients clears them all.
_WATCHED = {Depth.LIGHT: 1, Depth.REGULAR: 8, Depth.FULL: 8}

State = tuple[int, int]  # identity of a gradient, and how often it was written to


class Clearing:
    """Compares each gradient before a backward with what the last backward or step left behind.

    Whatever happens to a gradient in between, other than nothing, is taken for clearing. No value
    is read: a tensor counts its own changes. Clipping happens between backward and step, where
    nothing is compared, but for a gradient that no backward adds to: one that is written there is
    made by hand, as those of master weights are.
    """

    emits: ClassVar[tuple[Signal, ...]] = (GRAD_CARRIED_FRACTION,)
    at: ClassVar[tuple[type, ...]] = (BackwardBegins, BackwardEnds, GradientsReady, AfterUpdate)
    depth: ClassVar[Depth] = Depth.LIGHT
    wakes_at: ClassVar[tuple[type, ...]] = ()

    def __init__(self) -> None:
        self._watched: dict[int, list[_Watched]] = {}  # by the index of the optimizer

    def read(
        self, moment: BackwardBegins | BackwardEnds | GradientsReady | AfterUpdate
    ) -> Iterable[Reading]:
        """The carried share, once a step, when the gradients of the step are complete."""
        if isinstance(moment, BackwardBegins):
            for watched in self._all():
                watched.look()
        elif isinstance(moment, BackwardEnds):
            for watched in self._all():
                watched.remember()
        elif isinstance(moment, AfterUpdate):
            own, most = (
                moment.subject.parameters[: moment.subject.held],
                _WATCHED[moment.next_depth],
            )
            self._watched[moment.subject.index] = [_Watched(p) for p in _with_gradient(own, most)]
        else:
            carried = [watched.at_step() for watched in self._watched.pop(moment.subject.index, ())]
            read = [value for value in carried if value is not None]
            if read:
                share = sum(read) / len(read)
                values = share.reshape(1) if isinstance(share, Tensor) else [share]
                yield Reading(GRAD_CARRIED_FRACTION, moment.subject.owner, values)

    def _all(self) -> list["_Watched"]:
        return [parameter for watched in self._watched.values() for parameter in watched]


class _Watched:
    """A parameter since its last update; `carried` is 1 while its old gradient is still in it."""

    def __init__(self, parameter: Tensor) -> None:
        self._parameter = weakref.ref(parameter)  # a model that is done with may go
        self._state = _state(parameter)
        self._cleared = self._added_to = False
        self.carried: float | Tensor | None = None

    def look(self) -> None:
        parameter = self._parameter()
        if parameter is None or self._cleared:
            return
        gradient = parameter.grad
        if gradient is None or _state(parameter) != self._state:
            self._cleared = True
            self.carried = 0.0
            return
        # Untouched as far as its counter tells; `p.grad.data.zero_()` goes past the counter.
        there = (norms(local([gradient]))[0] != 0).float()
        self.carried = there if self.carried is None else self.carried * there

    def remember(self) -> None:
        parameter = self._parameter()
        now = None if parameter is None else _state(parameter)
        self._added_to |= now != self._state
        self._state = now

    def at_step(self) -> float | Tensor | None:
        parameter = self._parameter()
        if parameter is None or self._added_to or self.carried is None:
            return self.carried
        return self.carried if _state(parameter) == self._state else 0.0


def _state(parameter: Tensor) -> State | None:
    gradient = parameter.grad
    return None if gradient is None else (id(gradient), gradient._version)  # noqa: SLF001


def _with_gradient(parameters: Sequence[Tensor], most: int) -> list[Tensor]:
    """Some parameters that have a gradient, spread over all of them."""
    if most == 1:
        return next(([p] for p in parameters if p.grad is not None), [])
    present = [parameter for parameter in parameters if parameter.grad is not None]
    return present[:: max(1, len(present) // most)][:most]
