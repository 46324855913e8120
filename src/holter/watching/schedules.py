"""The learning-rate schedulers of a training, and how each is set up."""

import weakref
from collections import deque
from collections.abc import Iterator
from dataclasses import replace

from torch.optim import lr_scheduler

from holter.record.events import RateCut, SchedulerSeen

Scheduler = lr_scheduler.LRScheduler

_GIVEN = 32  # metrics that a scheduler was given, which are kept until it cuts
_HORIZONS = ("T_max", "total_steps", "total_iters", "T_0")  # where schedulers keep their length


class Schedules:
    """Gives the facts of each scheduler once, when it is known whether it was stepped too early.

    One that was stepped before any optimizer waits for the first update: a single call before it is
    the wrong order, several bring a schedule forward to where a training resumes.
    """

    def __init__(self) -> None:
        self._known: weakref.WeakSet[Scheduler] = weakref.WeakSet()
        # Those that were stepped before any optimizer.
        self.waiting: list[tuple[SchedulerSeen, weakref.ref[Scheduler]]] = []
        self._calls: weakref.WeakKeyDictionary[Scheduler, int] = weakref.WeakKeyDictionary()
        self._given: weakref.WeakKeyDictionary[Scheduler, deque[float]] = (
            weakref.WeakKeyDictionary()
        )
        self._rates: weakref.WeakKeyDictionary[Scheduler, float] = weakref.WeakKeyDictionary()

    def stepped(
        self, scheduler: Scheduler, *, trained: bool, at: object = None
    ) -> SchedulerSeen | None:
        """A scheduler was stepped, after an update or before all; its facts, if they are due.

        One that is told where it is `at`, as in `step(epoch + part)`, loses no value by its order.
        """
        if scheduler in self._known:
            if self.waiting and scheduler in self._calls:
                self._calls[scheduler] += 1
            return None
        self._known.add(scheduler)
        optimizer = getattr(scheduler, "optimizer", None)
        called = getattr(optimizer, "_opt_called", False)  # as torch itself keeps it
        if trained or called or at is not None:
            return facts(scheduler)
        self._calls[scheduler] = 1
        self.waiting.append((facts(scheduler), weakref.ref(scheduler)))
        return None

    def cut(self, scheduler: Scheduler, metric: object) -> RateCut | None:
        """The cut that a scheduler has made for a metric that did not improve, or None."""
        if not isinstance(scheduler, lr_scheduler.ReduceLROnPlateau):
            return None
        # Torch has read the metric, so it is not waited for.
        value = float(metric)  # type: ignore[arg-type]
        given = self._given.setdefault(scheduler, deque(maxlen=_GIVEN))
        given.append(value)
        rate = max(map(float, scheduler.get_last_lr()))
        before, self._rates[scheduler] = self._rates.get(scheduler), rate
        if before is None or rate >= before:
            return None
        event = RateCut(scheduler.mode, value, before, rate, tuple(given))
        given.clear()
        return event

    def began(self) -> Iterator[SchedulerSeen]:
        """An optimizer was stepped: the facts of all schedulers that have waited for it."""
        waiting, self.waiting = self.waiting, []
        for schedule, reference in waiting:
            scheduler = reference()
            early = scheduler is not None and self._calls.get(scheduler) == 1
            position = schedule.position if scheduler is None else facts(scheduler).position
            yield replace(schedule, early=early, position=position)
        self._calls.clear()


def facts(scheduler: Scheduler) -> SchedulerSeen:
    """How a scheduler is set up; its horizon is counted in calls, None where it has none."""
    own = vars(scheduler)
    return SchedulerSeen(
        type(scheduler).__name__,
        position=own["last_epoch"] if isinstance(own.get("last_epoch"), int) else None,
        horizon=_horizon(scheduler),
        gamma=own.get("gamma"),
        step_size=own.get("step_size"),
        milestones=tuple(_milestones(scheduler)),
    )


def _horizon(scheduler: Scheduler) -> int | None:
    own = vars(scheduler)
    for name in _HORIZONS:
        if isinstance(own.get(name), int):
            return int(own[name])
    milestones = _milestones(scheduler)
    if not milestones:
        return None
    parts = own.get("_schedulers")  # of a SequentialLR, each begins at a milestone
    if not parts:
        return milestones[-1]
    last = _horizon(parts[-1])
    return None if last is None else milestones[-1] + last


def _milestones(scheduler: Scheduler) -> list[int]:
    own = vars(scheduler)
    given = own.get("milestones") or own.get("_milestones") or ()
    return sorted(int(milestone) for milestone in given)
