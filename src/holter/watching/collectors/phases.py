"""Where the time of each step goes, by the clock of the host."""

import sys
import weakref
from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np
from torch import Tensor
from torch.optim import Optimizer

from holter.record.format import Floats
from holter.record.signals import (
    TIME_BACKWARD,
    TIME_CHECKPOINT,
    TIME_COMPILED_GRAPHS,
    TIME_EVALUATION,
    TIME_FORWARD,
    TIME_GARBAGE,
    TIME_OPTIMIZER,
    TIME_STEP,
    Signal,
)
from holter.watching.collectors import STEP
from holter.watching.collectors.lane import ABSENT, Lane
from holter.watching.collectors.moments import Depth
from holter.watching.collectors.roster import Roster, Subject

_CHECKPOINT, _GARBAGE = TIME_CHECKPOINT.name, TIME_GARBAGE.name  # signals hash slowly


class Phases:
    """Measures between calls that holter hears of anyway; a step runs from update to update."""

    emits: ClassVar[tuple[Signal, ...]] = (
        TIME_FORWARD,
        TIME_BACKWARD,
        TIME_OPTIMIZER,
        TIME_EVALUATION,
        TIME_CHECKPOINT,
        TIME_GARBAGE,
        TIME_COMPILED_GRAPHS,
        TIME_STEP,
    )
    repeats: ClassVar[bool] = True

    def __init__(self) -> None:
        self._forward = self._backward = self._optimizer = self._evaluation = 0.0
        self._pauses = {_CHECKPOINT: 0.0, _GARBAGE: 0.0}
        self._graphs = 0  # compiled so far
        self._updated: float | None = None  # when the last update ended
        self._free: float | None = None  # when the last pass or update ended
        self._given: float | None = None  # when a loader delivered the last batch
        self._backward_began = 0.0
        self._update_began: float | None = None
        self._passes_before = 0.0  # forward and backward of the step before its update began
        self._roster: weakref.ref[Roster] | None = None
        self._fetched_from = self._trained_from = ""  # loaders: of the last batch, and of training
        self._fetch_began = 0.0
        self._eval_began: float | None = None  # when the model was put into eval mode
        self._evaluates = False  # whether batches of another loader were fetched since

    def join(self, lane: Lane) -> None:
        """Hear of everything that a step consists of."""
        self._row, self._clock = lane.row, lane.clock
        self._graphs = compiled_graphs()
        # In this order, one behind the other.
        self._place, *_ = [lane.places(signal)[STEP] for signal in self.emits]
        lane.at_roster.append(self._attend)
        lane.at_mode.append(self._mode_changed)
        lane.at_fetch.append(self._fetched)
        lane.at_validation.append(self._validated)
        lane.at_pause.append(self._paused)
        lane.at_backward.append(self._backward_begins)
        lane.at_backward_end.append(self._backward_ends)
        lane.at_update.append(self._update_begins)
        lane.at_update_end.append(self._update_ends)

    @property
    def is_plain(self) -> bool:
        """Whether at most a batch and a forward pass were heard since the last update."""
        return (
            self._updated is not None
            and 0 <= self._forward <= self._backward_began - self._updated
            and self._given is None
            and not (self._backward or self._optimizer or self._evaluation)
            and not any(self._pauses.values())
        )

    @property
    def begun(self) -> tuple[float, float, float]:
        """When the last update ended, when forward and backward pass after it began."""
        began = self._backward_began
        return self._updated or 0.0, began - self._forward, began

    def resume(
        self,
        updated: float,
        marks: Sequence[float],
        *,
        given: float | None = None,
        following: tuple[float, float] | None = None,
    ) -> None:
        """Take up the open step: when the last update ended, and what was heard of since when.

        A batch may have been `given` to it, and the `following` one: when, after which wait.
        """
        self._updated = self._free = updated
        self._given = given
        self._forward = self._backward = self._optimizer = 0.0
        hearers: tuple[Callable[..., None], ...] = (
            self._backward_begins,
            self._backward_ends,
            self._update_begins,
            self._update_ends,
        )
        entered, ignored = self._clock.entered, (None, None, None)
        for mark, hear, count in zip(marks, hearers, (3, 0, 3, 2), strict=False):
            self._clock.entered = mark + self._clock.spent
            hear(*ignored[:count])
        self._clock.entered = entered
        if following is not None:
            self._given = following[0]
            self._fetch_began = following[0] - following[1]

    def write(
        self, rows: Floats, updated: float, marks: Floats, given: Sequence[float] = ()
    ) -> None:
        """Write the phases of steps of which nothing but backward and update was heard.

        Forward passes begin with the batches that were `given`, if any were.
        """
        began, ended, update, after = marks.T
        before = np.concatenate([[updated], after[:-1]])
        place = self._place
        rows[:, place] = began - (np.maximum(given, before) if len(given) else before)
        rows[:, place + 1] = ended - began
        rows[:, place + 2] = after - update
        rows[:, place + 3 : place + 7] = 0.0
        rows[:, place + 7] = after - before

    def _attend(self, roster: Roster) -> None:
        self._roster = weakref.ref(roster)

    def _fetched(self, loader: str, samples: int, waited: float) -> None:  # noqa: ARG002
        now = self._given = self._clock.entered - self._clock.spent
        self._fetched_from, self._fetch_began = loader, now - waited
        if self._eval_began is not None and loader != self._trained_from:
            self._evaluates = True

    def _mode_changed(self) -> None:
        """Count an evaluation without a loss: from eval() to train(), with another loader."""
        roster = None if self._roster is None else self._roster()
        in_eval = roster is not None and any(not each.module.training for each in roster.models)
        now = self._clock.entered - self._clock.spent
        if in_eval:
            self._eval_began = now if self._eval_began is None else self._eval_began
            return
        if self._evaluates and self._eval_began is not None and self._free is not None:
            since = max(self._eval_began, self._free)
            if self._fetched_from == self._trained_from:  # the first batch of the next epoch
                now = max(self._fetch_began, since)
            else:
                self._given = None
            self._evaluation += now - since
            self._free = now
        self._eval_began, self._evaluates = None, False

    def _validated(self) -> None:
        now = self._clock.entered - self._clock.spent
        if self._free is not None:
            self._evaluation += now - self._free
        self._free, self._given = now, None

    def _paused(self, signal: Signal, seconds: float) -> None:
        self._pauses[signal.name] += seconds
        # Whatever is under way is not that long.
        self._backward_began += seconds
        if self._free is not None:
            self._free += seconds
        if self._given is not None:
            self._given += seconds
        if self._update_began is not None:
            self._update_began += seconds

    def _backward_begins(self, roots: Sequence[Tensor], opens: bool, depth: Depth) -> None:  # noqa: ARG002
        now = self._backward_began = self._clock.entered - self._clock.spent
        since, given = self._free, self._given
        if since is None or (given is not None and given > since):  # else it was fetched ahead
            since = given
        if since is not None:
            self._forward += now - since
        if given is not None:
            self._given, self._trained_from = None, self._fetched_from
        self._eval_began, self._evaluates = None, False

    def _backward_ends(self) -> None:
        self._free = now = self._clock.entered - self._clock.spent
        self._backward += now - self._backward_began

    def _update_begins(self, subject: Subject, optimizer: Optimizer, depth: Depth) -> None:  # noqa: ARG002
        self._free = self._update_began = self._clock.entered - self._clock.spent
        self._passes_before = self._forward + self._backward

    def _update_ends(self, subject: Subject, depth: Depth) -> None:  # noqa: ARG002
        now = self._clock.entered - self._clock.spent
        if self._update_began is not None:  # a GradScaler may have skipped the update
            inside = self._forward + self._backward - self._passes_before  # of a closure
            self._optimizer += now - self._update_began - inside
        graphs, pauses, row, place = compiled_graphs(), self._pauses, self._row, self._place
        values = (
            *(self._forward, self._backward, self._optimizer, self._evaluation),
            *(pauses[_CHECKPOINT], pauses[_GARBAGE], graphs - self._graphs),
            ABSENT if self._updated is None else now - self._updated,
        )
        if row[place] is ABSENT:
            row[place : place + len(values)] = values
        else:  # several optimizers step in one step
            for index, value in enumerate(values, place):
                row[index] = value if row[index] is ABSENT else row[index] + value
        pauses[_CHECKPOINT] = pauses[_GARBAGE] = 0.0
        self._forward = self._backward = self._optimizer = self._evaluation = 0.0
        self._graphs, self._update_began = graphs, None
        self._updated = self._free = now


def compiled_graphs() -> int:
    """Return how many graphs torch.compile has made; not imported means none."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    # By `get`: what is not there takes ten times as long to find.
    return 0 if dynamo is None else int(dynamo.counters["stats"].get("unique_graphs", 0))
