"""Stepper: reads the open step through the collectors, ends it, and has it recorded."""

import time
import zlib
from collections.abc import Iterable

import torch

from holter.record.signals import TIME_DEVICE_IDLE, WATCH_TIME
from holter.watching.budget import Budget
from holter.watching.collectors import STEP, Collector
from holter.watching.collectors.lane import ABSENT, Lane, LightCollector
from holter.watching.collectors.moments import (
    AfterUpdate,
    Attended,
    Depth,
    GradientsReady,
    Joined,
    LossComputed,
    Moment,
    NonfiniteReplaced,
    Rectified,
    StepEnds,
)
from holter.watching.collectors.roster import Roster, Subject
from holter.watching.loss_scale import LossScale
from holter.watching.publishing import Publisher
from holter.watching.recorder import Recorder, Settle
from holter.watching.shield import Shield
from holter.watching.steps import OpenStep

_OF_FORWARD = (
    LossComputed,
    NonfiniteReplaced,
    Attended,
    Rectified,
)  # moments that come before a backward

_FORGETTING = 0.2  # of the average of whether the GPU waits, at each look


class Stepper:
    """Publishes moments at the depth of the step they belong to, and closes steps.

    What every step is read for goes through the lane, which needs no moments.
    """

    def __init__(
        self,
        recorder: Recorder,
        collectors: Iterable[Collector | LightCollector],
        *,
        budget: float | None,
        shield: Shield,
    ) -> None:
        chosen = list(collectors)
        self.roster = Roster()
        self.open = OpenStep()
        self.loss_scale = LossScale()
        self.device = torch.device("cpu")  # of the first parameter
        light = [c for c in chosen if isinstance(c, LightCollector)]
        self.lane = Lane(light, shield.fail, shield.clock)
        self.lane.share, self.lane.event = budget, recorder.event
        # No secret: it keeps hashes of one run from being compared with those of another.
        self.lane.salt = zlib.crc32(str(recorder.path.absolute()).encode())
        self._recorder, self._budget, self._shield = recorder, Budget(budget), shield
        deep = [c for c in chosen if isinstance(c, Collector)]
        self._publisher = Publisher(deep, shield.fail, recorder.event)
        self.listens_to = self._publisher.hears  # as it is, because it is asked at every step
        self._time = self.lane.places(WATCH_TIME)[STEP]
        self._idle_at = self.lane.places(TIME_DEVICE_IDLE)[STEP]
        self._idle = 1.0  # how often the GPU waits for the host; without one, it always would
        self._next_dense = False  # the step after the open one has time for a fused launch
        recorder.follow(self.lane)

    @property
    def coming_step(self) -> int:
        """The number of the step whose update is still to come."""
        return self._recorder.step + self.open.is_updated

    @property
    def has_trained(self) -> bool:
        """Whether an optimizer has stepped since this recording began."""
        return self._recorder.steps > 0 or self.open.is_updated

    def declined(self) -> list[str]:
        """What collectors cannot read in this training, a sentence each."""
        return self._publisher.declined()

    def renew(self, roster: Roster) -> None:
        """Continue with another roster; what was seen of the open step stays seen."""
        self.open.renew({subject.index: subject for subject in roster.subjects})
        self.roster = roster
        self.device = roster.parameters[0].device if roster.parameters else torch.device("cpu")
        self._budget.is_on_gpu = self.device.type == "cuda"
        self.lane.tell(self.lane.at_roster, roster)

    def publish(self, moment: Moment) -> None:
        """Let collectors read a moment that is of interest at the depth of its step."""
        step, kind = self.open, type(moment)
        depth, ahead = step.depth, False
        if kind is AfterUpdate or kind is Joined:  # which may prepare the next step, too
            depth = max(depth, step.next_depth)
        elif kind in _OF_FORWARD:
            depth, ahead = step.forward_depth, step.is_updated
        self._publisher.publish(moment, depth, on_gpu=self.device.type == "cuda", ahead=ahead)

    def publish_forward(self, moment: Moment) -> None:
        """Publish a moment of a forward pass: its cost is that of the step it belongs to."""
        began = time.perf_counter()
        self.publish(moment)
        if self.open.is_updated:
            self._shield.cost.was_ahead(time.perf_counter() - began)

    def gradients_ready(self, subject: Subject) -> None:
        """Let collectors read the gradients of an optimizer, once in a step."""
        if subject in self.open.read:
            return
        self.open.read.add(subject)
        lane = self.lane
        lane.tell(lane.at_gradients, subject)
        if lane.is_dense and not self.loss_scale.is_on(subject.optimizer()):
            lane.tell(lane.at_dense, subject)
        if self.listens_to(GradientsReady, self.open.depth):
            scale = self.loss_scale.of(subject.optimizer(), self.device)
            self.publish(GradientsReady(subject, scale))

    def choose_next_depth(self) -> Depth:
        """Decide how much is read of the step after the open one."""
        step, budget = self._recorder.step + 1, self._budget
        self.open.next_depth = depth = budget.depth(step)
        self._next_dense = (
            depth is Depth.LIGHT and bool(self.lane.at_dense) and budget.is_dense(step)
        )
        return depth

    def alert(self) -> None:
        """Read the next steps whole, because something odd was seen."""
        self._budget.alert(self._recorder.step)

    def end_step(self, *, in_eval: bool = False) -> None:
        """End the open step, which has been updated."""
        step, lane = self.open, self.lane
        lane.tell(lane.at_end, step.stepped)
        if self.listens_to(StepEnds, step.depth):
            self.publish(StepEnds(step.stepped, in_eval))
        now = time.perf_counter()
        if step.depth is Depth.LIGHT and not self._publisher.has_readings:
            fine = self._record_light(now)
        else:
            fine = self._record_deep(now)
        self.loss_scale.step_ended()
        if not fine:
            self.alert()

    def _record_light(self, now: float) -> bool:
        step, row = self.open, self.lane.row
        idle = row[self._idle_at]
        if idle is not ABSENT:
            self._idle += _FORGETTING * (idle - self._idle)
        # A host that runs ahead of its GPU has time to spare.
        row[self._time] = spent = self._shield.cost.spent * self._idle
        if step.began is not None:
            length, dense = max(now - step.began - spent, 0.0), self.lane.is_dense
            if dense:  # the work of the GPU is not timed; that of a deeper step is, and much alike
                spent += (1 - self._idle) * self._budget.cost(Depth.REGULAR)
            self._budget.account(Depth.LIGHT, spent, length, dense=dense)
        self._begin_step(now)
        return self._recorder.write_row(row)

    def _record_deep(self, now: float) -> bool:
        cost = self._shield.cost
        hooks = self._publisher.spent_in_hooks()
        cost.spent, cost.effort = cost.spent + hooks, cost.effort + hooks
        self._shield.clock.spent += hooks
        readings, tallies, timers = self._publisher.take()
        settle = self._settlement(now)
        self._begin_step(now)
        return self._recorder.write_step(self.lane.row, readings, tallies, timers, settle)

    def _begin_step(self, now: float) -> None:
        self.open.end(now)
        self.lane.is_dense = self._next_dense
        # The allowance goes to deep steps, which are those that wait for a busy machine.
        is_generous = self.open.depth > Depth.LIGHT and self._budget.is_generous
        self._shield.cost.step_ended(is_generous=is_generous)

    def _settlement(self, now: float) -> Settle:
        """Return a function that accounts for the ending step once its device time is known."""
        depth, began = self.open.depth, self.open.began
        cost = self._shield.cost
        spent = cost.spent
        effort = cost.effort if cost.is_generous else spent
        on_gpu = self.device.type == "cuda"
        is_ahead = self.lane.row[self._idle_at] == 0  # the host, which has time to spare then

        def settle(worked: float) -> float:
            total = worked if is_ahead else max(spent, worked)
            if began is not None:
                length = max(now - began - total, 0.0)
                # What waits for a GPU holds it up: there, all time is effort.
                least = total if on_gpu else min(effort, total)
                prepares = depth is Depth.LIGHT  # or it would have been recorded as a light one
                self._budget.account(depth, total, length, effort=least, prepares=prepares)
            return total

        return settle
