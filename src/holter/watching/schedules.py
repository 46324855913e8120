"""The learning-rate schedulers of a training, and how each is set up."""

import weakref
from collections.abc import Iterator
from typing import Any

from torch.optim import lr_scheduler

Scheduler = lr_scheduler.LRScheduler
Facts = dict[str, Any]

_HORIZONS = ("T_max", "total_steps", "total_iters", "T_0")  # where schedulers keep their length
_GIVEN = ("gamma", "step_size")


class Schedules:
    """Gives the facts of each scheduler once, when it is known whether it was stepped too early.

    One that was stepped before any optimizer waits for the first update: a single call before it is
    the wrong order, several bring a schedule forward to where a training resumes.
    """

    def __init__(self) -> None:
        self._known: weakref.WeakSet[Scheduler] = weakref.WeakSet()
        self._waiting: list[tuple[Facts, weakref.ref[Scheduler]]] = []
        self._calls: weakref.WeakKeyDictionary[Scheduler, int] = weakref.WeakKeyDictionary()

    @property
    def are_waiting(self) -> bool:
        """Whether a scheduler was stepped before any optimizer."""
        return bool(self._waiting)

    def stepped(self, scheduler: Scheduler, *, trained: bool) -> Facts | None:
        """A scheduler was stepped, after an update or before all; its facts, if they are due."""
        if scheduler in self._known:
            if self._waiting and scheduler in self._calls:
                self._calls[scheduler] += 1
            return None
        self._known.add(scheduler)
        optimizer = getattr(scheduler, "optimizer", None)
        if trained or getattr(optimizer, "_opt_called", False):  # as torch itself keeps it
            return {**facts(scheduler), "early": False}
        self._calls[scheduler] = 1
        self._waiting.append((facts(scheduler), weakref.ref(scheduler)))
        return None

    def began(self) -> Iterator[Facts]:
        """An optimizer was stepped: the facts of all schedulers that have waited for it."""
        waiting, self._waiting = self._waiting, []
        for schedule, reference in waiting:
            scheduler = reference()
            yield {**schedule, "early": scheduler is not None and self._calls.get(scheduler) == 1}
        self._calls.clear()


def facts(scheduler: Scheduler) -> Facts:
    """How a scheduler is set up; its horizon is counted in calls, None where it has none."""
    setup: Facts = {"scheduler": type(scheduler).__name__, "horizon": _horizon(scheduler)}
    setup |= {name: value for name in _GIVEN if (value := vars(scheduler).get(name)) is not None}
    milestones = _milestones(scheduler)
    return setup | {"milestones": milestones} if milestones else setup


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
    return sorted(
        int(milestone) for milestone in own.get("milestones") or own.get("_milestones") or ()
    )
