"""Whether the script writes to weights between one step and the next."""

import weakref
from collections.abc import Iterable
from typing import ClassVar

from torch import Tensor

from holter.record.signals import WEIGHT_REWRITTEN_FRACTION, Signal
from holter.watching.collectors import Reading
from holter.watching.collectors.moments import AfterUpdate, BeforeUpdate, Depth

_WATCHED = 4  # parameters of an optimizer to look at: a script that loads weights loads them all

Written = tuple[weakref.ref[Tensor], int]  # a parameter, and how often it was written to


class Rewrites:
    """Compares how often weights were written to, after a step and before the next.

    No value is read: a tensor counts its own changes. It does not matter whether the optimizer is
    still the same.
    """

    emits: ClassVar[tuple[Signal, ...]] = (WEIGHT_REWRITTEN_FRACTION,)
    at: ClassVar[tuple[type, ...]] = (BeforeUpdate, AfterUpdate)
    depth: ClassVar[Depth] = Depth.REGULAR
    wakes_at: ClassVar[tuple[type, ...]] = ()

    def __init__(self) -> None:
        self._left: dict[int, list[Written]] = {}  # by the index of the optimizer

    def read(self, moment: BeforeUpdate | AfterUpdate) -> Iterable[Reading]:
        """The share of the watched parameters, before each update."""
        before = self._left.pop(moment.subject.index, [])
        own = moment.subject.parameters[: moment.subject.held]
        if isinstance(moment, AfterUpdate):
            if moment.next_depth >= self.depth:  # else the next update is not seen
                chosen = own[:: max(1, len(own) // _WATCHED)][:_WATCHED]
                self._left[moment.subject.index] = [_written(parameter) for parameter in chosen]
            return ()
        here = {id(parameter) for parameter in own}
        written = [(p, count) for reference, count in before if (p := reference()) is not None]
        written = [(parameter, count) for parameter, count in written if id(parameter) in here]
        if moment.depth < self.depth or not written:
            return ()
        share = sum(_written(parameter)[1] != count for parameter, count in written) / len(written)
        return (Reading(WEIGHT_REWRITTEN_FRACTION, moment.subject.owner, [share]),)


def _written(parameter: Tensor) -> Written:
    return weakref.ref(parameter), parameter._version  # noqa: SLF001
