"""Interludes: what is heard in a streak besides its four entries: a batch, clipping, a scheduler.

Most scripts have some of them in every step. A streak goes on while each comes once in a step, in
the same place: one batch of the same pass over a loader and one call of the same scheduler between
update and backward, one clipping of all gradients between backward and update.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from time import perf_counter
from typing import Any, Protocol
from weakref import ref

import torch
from torch import Tensor
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau
from torch.utils.data import DataLoader

from holter.watching.collectors.clipping import Clipping
from holter.watching.collectors.loading import Loading, Totals
from holter.watching.collectors.scheduling import Scheduling
from holter.watching.collectors.stream import Stream
from holter.watching.light_rows import LightRows
from holter.watching.loaders import Iteration, samples
from holter.watching.passes import Passes
from holter.watching.schedules import Schedules
from holter.watching.shield import Shield
from holter.watching.steps import OpenStep, Stage


class Heard(IntEnum):
    """What was heard last of a step in a streak."""

    UPDATED = 0  # of the step before
    BACKWARD = 1
    GRADIENTS = 2
    CLIPPING = 3
    CLIPPED = 4
    UPDATE = 5


@dataclass(slots=True)
class Progress:
    """How far a streak has come in the open step."""

    is_on: bool = False
    heard: Heard = Heard.UPDATED
    before_update: Heard = Heard.GRADIENTS  # what is heard last before each update
    is_fetched: bool = False  # a batch was, after the update
    is_scheduled: bool = False  # a scheduler was stepped after the update
    missing: int = 0  # of these two, how many the next backward waits for


class OrdinaryFetches(Protocol):
    """Hears of loaders in the ordinary way."""

    def loader_begins(self, loader: DataLoader[Any], iterator: object) -> None:
        """A script began to iterate over a loader."""

    def batch_fetched(self, iterator: object, batch: object, waited: float) -> None:
        """A loader's iterator delivered a batch."""

    def iteration_of(self, iterator: object) -> Iteration | None:
        """Return the pass that an iterator makes."""

    def deliver(self, iteration: Iteration, batch: object, count: int, step: int) -> None:
        """Pass on a batch of training."""


class OrdinaryUpdates(Protocol):
    """Hears of clipping and of schedulers in the ordinary way."""

    def clip_begins(self, parameters: Sequence[Tensor]) -> None:
        """Gradients are about to be clipped."""

    def clip_ends(self, norm: Tensor | None, limit: float) -> None:
        """Gradients were clipped."""

    def clips_all_subjects(self) -> tuple[int, ...] | None:
        """Number and ends of the parameters clipped last, if all optimizers hold some; or None."""

    def scheduler_stepped(self, scheduler: LRScheduler, given: object) -> None:
        """A scheduler was stepped."""


class Interludes:
    """Hears of batches, clipping and schedulers: in a streak, or in the ordinary way."""

    fetches: OrdinaryFetches
    updates: OrdinaryUpdates

    def __init__(
        self,
        opened: OpenStep,
        shield: Shield,
        passes: Passes,
        schedules: Schedules,
        found: dict[type, Any],
    ) -> None:
        self.progress = Progress()
        self.lose: Callable[[Exception], None] = lambda _: None
        self._open, self._shield, self._home = opened, shield, shield.home
        self._clock, self._entry = shield.clock, shield.entry
        self._passes, self._schedules = passes, schedules
        self.loading: Loading | None = found.get(Loading)
        self.clipping: Clipping | None = found.get(Clipping)
        self.scheduling: Scheduling | None = found.get(Scheduling)
        self._stream: Stream | None = found.get(Stream)
        self._rows: LightRows
        # Calls in the ordinary way since a backward began, where they have their place.
        self.fetched = self.clipped = self.scheduled = 0
        # What comes in each step of the streak.
        self._iterator: Callable[[], object] = lambda: None
        self._iteration: Iteration | None = None
        self._left = 0.0  # batches of the pass that are still to come
        self._step = 0  # that the next batch is for
        self._limit: float | None = None
        self._clips: tuple[int, ...] = ()  # how many parameters, identities of the ends
        self._schedules_each = False
        self._scheduler: Callable[[], object] = lambda: None

    # The entries. They are busy in the same way as shielded calls.

    def loader_begins(self, loader: DataLoader[Any], iterator: object) -> None:
        """See a pass over a loader begin, which no streak goes on in."""
        self.fetches.loader_begins(loader, iterator)

    def batch_fetched(self, iterator: object, batch: object, waited: float) -> None:
        """See a batch that is not the last of its pass."""
        progress = self.progress
        if (
            progress.is_on
            and progress.heard is Heard.UPDATED
            and not progress.is_fetched
            and iterator is self._iterator()
            and self._left > 1
            and torch.is_grad_enabled()
            and not self._home.is_left
        ):
            began, shield, clock = perf_counter(), self._shield, self._clock
            shield.is_busy = True
            try:
                count = samples(batch)
                self._rows.batches.append((count, waited, began - clock.spent))
                progress.is_fetched = True
                progress.missing -= 1
                self._left -= 1
                self._step += 1
                assert self._iteration is not None
                self.fetches.deliver(self._iteration, batch, count, self._step)
                clock.spent += perf_counter() - began + self._entry
                return
            except Exception as error:
                self.lose(error)
                return  # it was heard
            finally:
                shield.is_busy = False
        self.fetches.batch_fetched(iterator, batch, waited)
        self.fetched += self._open.stage is Stage.UPDATED
        if iterator is not self._iterator():
            self._iterator = ref(iterator)

    def clip_begins(self, parameters: Sequence[Tensor]) -> None:
        """See gradients that are about to be clipped."""
        progress = self.progress
        if (
            progress.is_on
            and progress.heard is Heard.GRADIENTS
            and progress.before_update is Heard.CLIPPED
            and len(parameters) == self._clips[0]
            and (id(parameters[0]), id(parameters[-1])) == self._clips[1:]
            and not self._home.is_left
        ):
            progress.heard = Heard.CLIPPING
            self._clock.spent += self._entry
            return
        self.updates.clip_begins(parameters)

    def clip_ends(self, norm: Tensor | None, limit: float) -> None:
        """See gradients that were clipped."""
        progress = self.progress
        if (
            progress.is_on
            and progress.heard is Heard.CLIPPING
            and norm is not None
            and limit == self._limit
            and norm.is_cpu
            and not self._home.is_left
        ):
            began = perf_counter()
            self._rows.norms.append(norm.item())
            progress.heard = Heard.CLIPPED
            self._clock.spent += perf_counter() - began + self._entry
            return
        self.updates.clip_ends(norm, limit)
        self.clipped += self._open.stage is Stage.BACKWARD

    def scheduler_stepped(self, scheduler: LRScheduler, given: object) -> None:
        """See a scheduler that was stepped: the next update tells what it did."""
        progress = self.progress
        if (
            progress.is_on
            and progress.heard is Heard.UPDATED
            and self._schedules_each
            and not progress.is_scheduled
            and scheduler is self._scheduler()
            and not self._home.is_left
        ):
            progress.is_scheduled = True
            progress.missing -= 1
            self._clock.spent += self._entry
            return
        self.updates.scheduler_stepped(scheduler, given)
        self.scheduled += self._open.stage is Stage.UPDATED
        self._scheduler = ref(scheduler)

    # The beginning and the end.

    @property
    def calls(self) -> int:
        """How many calls were heard since a backward began, each in its place."""
        return self.fetched + 2 * self.clipped + self.scheduled

    def forget(self) -> None:
        """Start counting again from zero."""
        self.fetched = self.clipped = self.scheduled = 0

    def begin(self, rows: LightRows, step: int) -> bool:
        """Begin with an open step, if what was heard since the backward before is to come again."""
        self._rows, self._step = rows, step
        if max(self.fetched, self.clipped, self.scheduled) > 1:
            return False
        self._left = 0.0
        if self.fetched and not self._begin_fetches():
            return False
        clips = self.updates.clips_all_subjects()
        if self.clipped and (clips is None or self.clipping is None):
            return False
        self._clips = clips or ()
        if self.scheduled and not self._begin_schedule():
            return False
        self._limit, self._schedules_each = rows.limit, bool(self.scheduled)
        progress = self.progress
        progress.is_fetched = progress.is_scheduled = False
        progress.before_update = Heard.CLIPPED if self.clipped else Heard.GRADIENTS
        return True

    def settle(self, rows: LightRows, backwards: int) -> tuple[float, float] | None:
        """Put what is known of the open step where the ordinary way has it.

        Return when a batch for the next one came, after which wait, or None if none did.
        """
        progress = self.progress
        over = len(rows.losses) - 1
        self.fetched, self.scheduled = int(progress.is_fetched), int(progress.is_scheduled)
        self.clipped = int(len(rows.norms) > over)
        if self._stream is not None:
            self._stream.skip(backwards)
        if self._schedules_each and self.scheduling is not None:
            self.scheduling.resume(int(progress.is_scheduled))
        if not rows.loader or self.loading is None:
            return None
        own, following = rows.batches[over], rows.batches[over + 1 :]
        self._passes.resume(self._step)
        used: Totals = {rows.loader: (own[0], own[1], 1)}
        fetched: Totals = {}
        if not following:
            self.loading.resume(used, fetched)
            return None
        count, waited, given = following[0]
        fetched[rows.loader] = count, waited, 1
        self.loading.resume(used, fetched)
        return given, waited

    def _begin_fetches(self) -> bool:
        iterator = self._iterator()
        iteration = None if iterator is None else self.fetches.iteration_of(iterator)
        if iteration is None or self.loading is None:
            return False
        self._iteration = iteration
        self._left = float("inf") if self._stream is None else self._stream.left(iteration.label)
        return True

    def _begin_schedule(self) -> bool:
        scheduler = self._scheduler()
        is_plain = scheduler is not None and not isinstance(scheduler, ReduceLROnPlateau)
        return is_plain and self.scheduling is not None and not self._schedules.waiting
