"""The collectors: each measures some signals of a live training, and concludes nothing."""

import pkgutil
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, runtime_checkable

from torch import Tensor

from holter.record.events import Occurrence
from holter.record.format import Floats
from holter.record.signals import Signal
from holter.watching.collectors.moments import Depth

if TYPE_CHECKING:
    from holter.watching.collectors.lane import LightCollector

STEP: tuple[str, ...] = ("",)  # the owner of what belongs to the step itself


class Reading(NamedTuple):
    """Values of one signal, one for each owner (of a histogram, its bins in a row).

    Device tensors stay on their device.

    Pass the same `owners` tuple each time: it is compared by identity. `at` gives the places of the
    values where some owners have none.
    """

    signal: Signal
    owners: tuple[str, ...]
    values: Tensor | Sequence[float]
    at: Sequence[int] | None = None

    def check(self) -> None:
        """See that there are as many values as places for them."""
        given = self.values.numel() if isinstance(self.values, Tensor) else len(self.values)
        places = len(self.owners if self.at is None else self.at)
        if given != places * self.signal.bins:
            raise ValueError(f"{given} values of {self.signal} for {places} owners")


class Tally(NamedTuple):
    """Values of a step that become an event of it once they are on the host."""

    values: Tensor
    told: Callable[[Floats], Occurrence | None]  # None if there is nothing to tell


@runtime_checkable
class Collector(Protocol):
    """Measures at some moments. Must not synchronise: hands out tensors, never reads one.

    What is read at every step joins the lane instead (`watching.collectors.lane.LightCollector`).
    """

    emits: ClassVar[tuple[Signal, ...]]
    at: ClassVar[tuple[type, ...]]  # the moments that `read` is called at
    depth: ClassVar[Depth]  # the least depth of a step at which it is called
    # If any: it sleeps until the first of these moments. One that reads the end of light steps
    # sleeps again after it.
    wakes_at: ClassVar[tuple[type, ...]]

    def read(self, moment: Any) -> Iterable[Reading | Tally]:
        """Readings of this moment, all filed under the step that is open."""
        ...


@runtime_checkable
class Hooked(Protocol):
    """A collector that also works outside of `read`, in hooks of its own on the model."""

    spent: float  # seconds in those hooks, over the whole training
    declined: list[str]  # what it cannot read in this training, a sentence each


_COLLECTOR, _LIGHT = {"emits", "at", "depth", "wakes_at", "read"}, {"emits", "join"}


def all_collectors() -> "list[Collector | LightCollector]":
    """A fresh one of each: the class named like its module, in every module that has one."""
    made: list[Collector | LightCollector] = []
    for module in sorted(info.name for info in pkgutil.iter_modules(__path__)):
        name = module.replace("_", " ").title().replace(" ", "")
        candidate = getattr(import_module(f"{__name__}.{module}"), name, None)
        has = set(vars(candidate)) if isinstance(candidate, type) else set()
        if candidate is not None and (has >= _COLLECTOR or has >= _LIGHT):
            made.append(candidate())
    return made
