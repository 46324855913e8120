"""Lane: the short way of what is read at every step, from the training loop to a row of values.

A light step makes no moments and no readings. Collectors that read every step join the lane: they
are called directly, with what they need, and write to places of a row that they were given once.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVarTuple, runtime_checkable

import torch
from torch import Tensor
from torch.optim import Optimizer

from holter.record import format as run_format
from holter.record.events import Occurrence
from holter.record.format import Floats
from holter.record.signals import Signal
from holter.watching.collectors.moments import Depth
from holter.watching.collectors.roster import Roster, Subject

ABSENT = float(run_format.ABSENT)  # one object, so that `is` tells a place nobody wrote to
Column = tuple[Signal, tuple[str, ...]]
_Told = TypeVarTuple("_Told")


class Wide(Protocol):
    """What to do with a tensor of many values that a step has left on its device."""

    layout: Sequence[tuple[str, tuple[str, ...]]]  # signals of one stream by name, and owners
    stream: str

    def values(self, row: list[float], read: Floats) -> Floats:
        """Return the values in the order of the layout; those of the step go to its row."""


class Delivery(NamedTuple):
    """A batch that a loader delivered for training."""

    loader: str
    iteration: object  # the pass over the loader, one object for all its batches
    batches: int | None  # in all of the pass
    samples: int
    batch: object


class Evaluated(NamedTuple):
    """A batch that a loader delivered for an evaluation.

    `foresee` takes a loss function and its arguments, and returns what publishes the loss.
    """

    loader: str
    batch: object
    roster: Roster
    foresee: Callable[[str, Mapping[str, Any]], Callable[[Tensor], None]]


class Row(list[Any]):
    """The values of the open step: floats, and tensors of one element that are on a device.

    Its layout only grows: a step that has no value for a place leaves it absent.
    """

    def __init__(self) -> None:
        super().__init__()
        self.layout: list[Column] = []
        self.is_on_device = False  # a tensor is among the values
        self.wide: list[tuple[Wide, Tensor]] = []  # values that have no place in the row
        self._blank: list[float] = []

    def extended(self, signal: Signal, owners: tuple[str, ...]) -> int:
        """Return the first of new places for a signal, one for each owner."""
        start = len(self)
        self.layout.append((signal, owners))
        self._blank += [ABSENT] * len(owners)
        self += [ABSENT] * len(owners)
        return start

    def keep(self, place: int, value: Tensor) -> None:
        """Write a tensor of one element as it is: it is not copied."""
        if value.is_cpu:
            self[place] = value.item()
        else:
            self[place] = value.detach().reshape(1)
            self.is_on_device = True

    def keep_wide(self, wide: Wide, values: Tensor) -> None:
        """Keep a tensor of many values until it is on the host."""
        self.wide.append((wide, values))
        self.is_on_device = True

    def take(self) -> tuple[list[Any], Sequence[tuple[Wide, Tensor]]]:
        """Return the values of the step that ends; the next one begins with none."""
        values, wide = self[:], self.wide
        self[:] = self._blank
        self.is_on_device = False
        if not wide:
            return values, ()  # not the list itself, which the next steps write to
        self.wide = []
        return values, wide


class Clock:
    """The time of the training, which stands still while holter works: `entered - spent`.

    Two attributes rather than a method, because light collectors read it several times a step.
    """

    __slots__ = ("entered", "spent")

    def __init__(self) -> None:
        self.entered = 0.0  # when torch called holter last, by the performance counter
        self.spent = 0.0  # seconds in all such calls that have returned


class Places(dict[tuple[str, ...], int]):
    """Where a row has the values of a signal: the first place for some owners."""

    def __init__(self, row: Row, signal: Signal) -> None:
        super().__init__()
        self._row, self._signal = row, signal

    def __missing__(self, owners: tuple[str, ...]) -> int:
        self[owners] = place = self._row.extended(self._signal, owners)
        return place


class Lane:
    """Calls light collectors. One that raises is reported once and dropped."""

    def __init__(
        self,
        collectors: "Iterable[LightCollector]",
        fail: Callable[[str, Exception], None],
        clock: Clock,
    ) -> None:
        self.row = Row()
        self.clock = clock
        self.is_dense = False  # the open step is light, and has time for a fused launch
        self.share: float | None = None  # of the time that recording may take; None: all of it
        self.salt = 0  # of hashes, another one for each run
        self.event: Callable[[Occurrence], None] = lambda _: None  # records an event
        self._fail = fail
        self._places: dict[Signal, Places] = {}
        self._broken: list[tuple[Callable[..., None], Exception]] = []
        # Who is called when; a collector adds its methods to those that it needs.
        self.at_roster: list[Callable[[Roster], None]] = []
        self.at_fetch: list[Callable[[str, int, float], None]] = []  # loader, samples, seconds
        self.at_pause: list[Callable[[Signal, float], None]] = []  # its signal, seconds
        self.at_sync: list[Callable[[float], None]] = []  # seconds
        self.at_copy: list[Callable[[Any, Any], None]] = []  # CUDA events before and after it
        self.at_batch: list[Callable[[Delivery], None]] = []  # of training
        self.at_mode: list[Callable[[], None]] = []  # some module changed between train and eval
        self.at_validation: list[Callable[[], None]] = []
        self.at_evaluated: list[Callable[[Evaluated], None]] = []
        self.at_scored: list[Callable[[], None]] = []  # the script computes a loss in evaluation
        self.at_backward: list[Callable[[Sequence[Tensor], bool, Depth], None]] = []
        self.at_backward_end: list[Callable[[], None]] = []
        self.at_gradients: list[Callable[[Subject], None]] = []
        self.at_dense: list[Callable[[Subject], None]] = []  # the same, in light steps with time
        self.at_clip: list[Callable[[Tensor | None, float, bool, bool], None]] = []
        self.at_update: list[Callable[[Subject, Optimizer, Depth], None]] = []
        self.at_closure: list[Callable[[int], None]] = []
        self.at_update_end: list[Callable[[Subject, Depth], None]] = []  # how deep the next step is
        self.at_scaler: list[Callable[[Tensor, Tensor | float], None]] = []  # scale, skipped
        self.at_schedule: list[Callable[[], None]] = []
        self.at_log: list[Callable[[Mapping[str, Tensor]], None]] = []
        self.at_end: list[Callable[[Sequence[Subject]], None]] = []
        self.at_close: list[Callable[[], None]] = []  # before the last step ends
        self.at_arrival: list[Callable[[list[float]], None]] = []  # with a row of the host
        for collector in collectors:
            collector.join(self)

    def places(self, signal: Signal) -> Places:
        """Return the places of a signal in the row: the same for all who ask."""
        return self._places.setdefault(signal, Places(self.row, signal))

    def repeats(self) -> bool:
        """Whether all who hear of every step write the same again in one in which nothing else is.

        Losses and times are what is not the same.
        """
        of_each = (self.at_fetch, self.at_backward, self.at_backward_end, self.at_gradients)
        of_updates = (self.at_clip, self.at_update, self.at_update_end, self.at_end)
        return all(
            getattr(_collector_of(hear), "repeats", False)
            for hearers in (*of_each, *of_updates, self.at_schedule)
            for hear in hearers
        )

    def tell(self, hearers: Sequence[Callable[[*_Told], None]], *args: *_Told) -> None:
        """Call all of some hearers."""
        for hear in hearers:
            try:
                hear(*args)
            except Exception as error:
                self._broken.append((hear, error))
        if self._broken:
            self._drop()

    def _drop(self) -> None:
        broken, self._broken = self._broken, []
        for hear, error in broken:
            collector = _collector_of(hear)
            for hearers in vars(self).values():
                if isinstance(hearers, list) and hearers is not self.row:
                    hearers[:] = [h for h in hearers if _collector_of(h) is not collector]
            self._fail(f"the collector {type(collector).__name__.lower()}", error)


def _collector_of(hear: Any) -> object:
    return hear.__self__  # of a bound method


@runtime_checkable
class LightCollector(Protocol):
    """Reads at every step. Must not synchronise with a device, nor loop over parameters.

    One that sets `repeats` writes in a step what it wrote in the last, if it hears of nothing but
    backward and update; a streak does not call it, and needs to know of its losses and times.
    """

    emits: ClassVar[tuple[Signal, ...]]

    def join(self, lane: Lane) -> None:
        """Ask for places in the row, and to be called."""


def copied(value: Tensor) -> float | Tensor:
    """Return what a tensor of one element is now: the script may go on to change it in place."""
    if value.is_cpu:
        return value.item()
    return value.detach().to(torch.float32, copy=True).reshape(1)
