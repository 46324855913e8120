"""Whether gradients were cleared between one step of an optimizer and its next, and how often."""

import weakref
from collections.abc import Sequence
from typing import ClassVar

from torch import Tensor

from holter.record.signals import GRAD_CARRIED_FRACTION, GRAD_DISCARDED, Signal
from holter.watching.collectors.lane import Lane
from holter.watching.collectors.moments import Depth
from holter.watching.collectors.roster import Roster, Subject
from holter.watching.stats.shards import local
from holter.watching.stats.summary import norms

_WATCHED = 8  # parameters to look at in a step that is not light: a script clears all or none


class Clearing:
    """Compares each gradient before a backward with what the last backward or step left behind.

    Whatever happens to a gradient in between, other than nothing, is taken for clearing. No value
    is read: a tensor counts its own changes. Clipping happens between backward and step, where
    nothing is compared, but for a gradient that no backward adds to: one that is written there is
    made by hand, as those of master weights are. A gradient that is gone before the next backward,
    and that no optimizer has stepped with, is discarded.
    """

    emits: ClassVar[tuple[Signal, ...]] = (GRAD_CARRIED_FRACTION, GRAD_DISCARDED)
    repeats: ClassVar[bool] = True

    def __init__(self) -> None:
        self._watched: dict[int, Sequence[Watched]] = {}  # by the index of the optimizer
        self._single: dict[int, Watched] = {}  # the one parameter that light steps look at
        self._discarded: dict[int, int] = {}  # backward passes since the last step
        self._is_unused = False  # no optimizer has stepped since the last backward

    def join(self, lane: Lane) -> None:
        """Hear of backward passes and updates."""
        self._row, self._places = lane.row, lane.places(GRAD_CARRIED_FRACTION)
        self._discards = lane.places(GRAD_DISCARDED)
        lane.at_roster.append(self._forget)
        lane.at_backward.append(self._backward)
        lane.at_backward_end.append(self._backward_end)
        lane.at_gradients.append(self._gradients)
        lane.at_update_end.append(self._updated)

    def _forget(self, roster: Roster) -> None:  # noqa: ARG002
        self._single.clear()

    def single(self, subject: Subject) -> "Watched | None":
        """Return what is watched in a light step, if its gradient was cleared and not discarded."""
        watched = self._watched.get(subject.index, ())
        is_plain = len(watched) == 1 and watched[0].is_cleared and not self._discarded
        return watched[0] if is_plain else None

    def resume(
        self, subject: Subject, watched: "Watched", *, at_update: bool, unused: bool
    ) -> None:
        """Take up the open step, whose gradients are cleared, with what was watched in it."""
        self._is_unused = unused
        self._watched = {} if at_update else {subject.index: (watched,)}

    def _backward(self, roots: Sequence[Tensor], opens: bool, depth: Depth) -> None:  # noqa: ARG002
        for index, parameters in self._watched.items():
            if self._is_unused and parameters and parameters[0].is_gone():
                self._discarded[index] = self._discarded.get(index, 0) + 1
            for watched in parameters:
                watched.look()

    def _backward_end(self) -> None:
        self._is_unused = True
        for parameters in self._watched.values():
            for watched in parameters:
                watched.remember()

    def _updated(self, subject: Subject, next_depth: Depth) -> None:
        index = subject.index
        self._is_unused = False
        if next_depth > Depth.LIGHT:
            self._watched[index] = [Watched(p) for p in _with_gradient(subject)]
            return
        single = self._single.get(index)
        if single is None or not single.begin():
            parameters = subject.parameters[: subject.held]
            first = next((p for p in parameters if p.grad is not None), None)
            if first is None:
                self._watched.pop(index, None)
                return
            single = self._single[index] = Watched(first)
        self._watched[index] = (single,)

    def _gradients(self, subject: Subject) -> None:
        """Write the carried share, once a step, when the gradients of the step are complete."""
        parameters = self._watched.pop(subject.index, ())
        if parameters:
            self._row[self._discards[subject.owner]] = self._discarded.pop(subject.index, 0)
        carried = [value for watched in parameters if (value := watched.at_step()) is not None]
        if carried:
            share = sum(carried) / len(carried)
            place = self._places[subject.owner]
            if isinstance(share, Tensor):
                self._row.keep(place, share)
            else:
                self._row[place] = share


class Watched:
    """A parameter since its last update; `carried` is 1 while its old gradient is still in it."""

    __slots__ = ("_added_to", "_gradient", "_parameter", "_version", "carried", "is_cleared")

    def __init__(self, parameter: Tensor) -> None:
        self._parameter = weakref.ref(parameter)  # a model that is done with may go
        self._gradient = self._version = 0
        self.begin()

    def begin(self) -> bool:
        """Begin again after an update; return whether there is a gradient to look at."""
        self.is_cleared = self._added_to = False
        self.carried: float | Tensor | None = None
        parameter = self._parameter()
        gradient = None if parameter is None else parameter.grad
        if gradient is None:
            self._gradient = self._version = 0
            return False
        self._gradient, self._version = id(gradient), gradient._version  # noqa: SLF001
        return True

    def look(self) -> None:
        """Compare the gradient before a backward."""
        parameter = self._parameter()
        if parameter is None or self.is_cleared:
            return
        gradient = parameter.grad
        if gradient is None or self._see():
            self.is_cleared = True
            self.carried = 0.0
            return
        # Untouched as far as its counter tells; `p.grad.data.zero_()` goes past the counter.
        there = (norms(local([gradient]))[0] != 0).float()
        self.carried = there if self.carried is None else self.carried * there

    def is_gone(self) -> bool:
        """Whether the gradient that a backward left is no longer there: `zero_grad()` drops it."""
        parameter = self._parameter()
        return self._gradient != 0 and parameter is not None and parameter.grad is None

    def remember(self) -> None:
        """Take the gradient as a backward has left it."""
        parameter = self._parameter()
        gradient = None if parameter is None else parameter.grad
        key, version = (0, 0) if gradient is None else (id(gradient), gradient._version)  # noqa: SLF001
        if key != self._gradient or version != self._version:
            self._gradient, self._version, self._added_to = key, version, True

    def at_step(self) -> float | Tensor | None:
        """Return how much of the old gradient is in the one that is complete; None if unknown."""
        if self._parameter() is None or self._added_to or self.carried is None:
            return self.carried
        return 0.0 if self._see() else self.carried

    def _see(self) -> bool:
        """Look which gradient is there, and how often it was written to; True if that changed."""
        parameter = self._parameter()
        gradient = None if parameter is None else parameter.grad
        key, version = (0, 0) if gradient is None else (id(gradient), gradient._version)  # noqa: SLF001
        if key == self._gradient and version == self._version:
            return False
        self._gradient, self._version = key, version
        return True


def _with_gradient(subject: Subject) -> list[Tensor]:
    """Return some parameters that have a gradient, spread over all of them."""
    own = subject.parameters[: subject.held]
    present = [parameter for parameter in own if parameter.grad is not None]
    return present[:: max(1, len(present) // _WATCHED)][:_WATCHED]
