"""Stepper: reads the open step through the collectors, ends it, and has it recorded."""

import time
import zlib
from collections.abc import Iterable

import torch
from torch import Tensor

from holter.record.format import Floats
from holter.record.signals import TIME_DEVICE_IDLE, VAL_ACCURACY, VAL_LOSS, WATCH_TIME
from holter.record.writer import Row
from holter.watching.arrivals import on_host
from holter.watching.budget import Budget
from holter.watching.collectors import STEP, Collector
from holter.watching.collectors.lane import ABSENT, Lane, LightCollector
from holter.watching.collectors.moments import (
    AfterUpdate,
    Attended,
    BackwardBegins,
    BeforeUpdate,
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
from holter.watching.stats import Packed
from holter.watching.step_lengths import StepLengths
from holter.watching.steps import OpenStep

_OF_FORWARD = (
    LossComputed,
    NonfiniteReplaced,
    Attended,
    Rectified,
)  # moments that come before a backward

_OF_EVERY_STEP = (BackwardBegins, GradientsReady, BeforeUpdate, AfterUpdate, StepEnds)
_EVALUATED = (VAL_LOSS, VAL_ACCURACY)
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
        self._is_on_gpu = False
        light = [c for c in chosen if isinstance(c, LightCollector)]
        self.lane = Lane(light, shield.fail, shield.clock)
        self.lane.share, self.lane.event = budget, recorder.event
        # No secret: it keeps hashes of one run from being compared with those of another.
        self.lane.salt = zlib.crc32(str(recorder.path.absolute()).encode())
        self._recorder, self._budget, self._shield = recorder, Budget(budget), shield
        deep = [c for c in chosen if isinstance(c, Collector)]
        self.publisher = Publisher(deep, shield.fail, recorder.event)
        self._time = self.lane.places(WATCH_TIME)[STEP]
        self._idle_at = self.lane.places(TIME_DEVICE_IDLE)[STEP]
        self._lost: float | None = None  # seconds of a light step that the GPU waits for the host
        self._next_dense = False  # the step after the open one has time for a fused launch
        self._lengths = StepLengths()  # on a GPU
        recorder.follow(self.lane)

    def listens_to(self, kind: type, depth: Depth) -> bool:
        """Whether a collector listens to such a moment in a step of this depth, or wakes at it."""
        return kind in self.publisher.heard[depth]

    @property
    def coming_step(self) -> int:
        """The number of the step whose update is still to come."""
        return self._recorder.step + self.open.is_updated

    @property
    def has_trained(self) -> bool:
        """Whether an optimizer has stepped since this recording began."""
        return self._recorder.steps > 0 or self.open.is_updated

    def evaluated(self) -> list[Row]:
        """Return what was read of evaluation passes since the last step."""
        self.publish(StepEnds([], in_eval=True))
        readings = [each for each in self.publisher.take()[0] if each.signal in _EVALUATED]
        packed = Packed([each.values for each in readings if isinstance(each.values, Tensor)])
        values = on_host(readings, iter(packed.unpack()))
        return [(signal.name, owners, read) for signal, owners, read in values]

    def declined(self) -> list[str]:
        """What collectors cannot read in this training, a sentence each."""
        return self.publisher.declined()

    def renew(self, roster: Roster) -> None:
        """Continue with another roster; what was seen of the open step stays seen."""
        self.open.renew({subject.index: subject for subject in roster.subjects})
        self.roster = roster
        self.device = roster.parameters[0].device if roster.parameters else torch.device("cpu")
        self._is_on_gpu = self._budget.is_on_gpu = self.device.type == "cuda"
        self.lane.tell(self.lane.at_roster, roster)

    def publish(self, moment: Moment) -> None:
        """Let collectors read a moment that is of interest at the depth of its step."""
        step, kind = self.open, type(moment)
        depth, ahead = step.depth, False
        if kind is AfterUpdate or kind is Joined:  # which may prepare the next step, too
            depth = max(depth, step.next_depth)
        elif kind in _OF_FORWARD:
            depth, ahead = step.forward_depth, step.is_updated
        self.publisher.publish(moment, depth, on_gpu=self._is_on_gpu, ahead=ahead)

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
        if GradientsReady in self.publisher.heard[self.open.depth]:
            scale = self.loss_scale.of(subject.optimizer(), self.device)
            self.publish(GradientsReady(subject, scale))

    def choose_next_depth(self) -> Depth:
        """Decide how much is read of the step after the open one."""
        step, budget = self._recorder.step + 1, self._budget
        self.open.next_depth = depth = budget.depth(step)
        if self.lane.at_dense:
            self._next_dense = depth is Depth.LIGHT and budget.is_dense(step)
        return depth

    def next_deep(self, step: int) -> int:
        """Return the first step from one on that may be read more than lightly."""
        return self._budget.next_deep(step)

    def repeats(self) -> bool:
        """Whether light steps are read for what the last one was, unless something else happens."""
        heard, scale, lane = self.publisher.heard[Depth.LIGHT], self.loss_scale, self.lane
        return (
            not any(moment in heard for moment in _OF_EVERY_STEP)
            and not self.publisher.has_readings
            and not (scale.is_touched or scale.products or lane.is_dense or lane.at_dense)
            and lane.repeats()
        )

    def account(self, costs: Floats, lengths: Floats) -> None:
        """Learn what light steps have cost that others than this have recorded."""
        self._budget.account_light(float(costs.sum()), float(lengths.sum()), len(costs))

    def alert(self) -> None:
        """Read the next steps whole, because something odd was seen."""
        self._budget.alert(self._recorder.step)

    def end_step(self, *, in_eval: bool = False) -> None:
        """End the open step, which has been updated."""
        step, lane, depth = self.open, self.lane, self.open.depth
        lane.tell(lane.at_end, step.stepped)
        if StepEnds in self.publisher.heard[depth]:
            self.publish(StepEnds(step.stepped, in_eval))
        is_light = depth is Depth.LIGHT and not self.publisher.has_readings
        fine = self._record_light() if is_light else self._record_deep()
        if self.loss_scale.is_touched:
            self.loss_scale.step_ended()
        if not fine:
            self.alert()

    def _record_light(self) -> bool:
        step, row, now = self.open, self.lane.row, time.perf_counter()
        spent = self._shield.cost.spent
        idle = row[self._idle_at]
        if idle is not ABSENT:  # a host that runs ahead of its GPU has time to spare
            lost = spent * idle
            before = lost if self._lost is None else self._lost
            self._lost = before + _FORGETTING * (lost - before)
        if self._lost is not None:
            spent = min(spent, self._lost)  # launches wait, too, when the GPU is far behind
        row[self._time] = spent
        if step.began is not None:
            length = now - step.began - spent
            if self.lane.is_dense:
                cost = spent if self._lost is None else max(spent, self._dense_cost())
                self._budget.account(Depth.LIGHT, cost, max(length, 0.0), dense=True)
            else:
                self._budget.account_light(spent, length if length > 0 else 0.0)
        self._begin_step(now)
        fine = self._recorder.write_row(row)
        if self._is_on_gpu:
            self._mark()
        return fine

    def _dense_cost(self) -> float:
        """Return what a light step with a fused launch costs on a GPU."""
        launch = self._lengths.of_dense_launch
        if launch is None:  # a deeper step, whose time is known earlier, takes about as long
            return self._budget.cost(Depth.REGULAR)
        return self._budget.cost(Depth.LIGHT) + launch

    def _record_deep(self) -> bool:
        cost, now = self._shield.cost, time.perf_counter()
        hooks = self.publisher.spent_in_hooks()
        cost.spent, cost.effort = cost.spent + hooks, cost.effort + hooks
        self._shield.clock.spent += hooks
        readings, tallies, timers = self.publisher.take()
        settle = self._settlement(now)
        self._begin_step(now)
        fine = self._recorder.write_step(self.lane.row, readings, tallies, timers, settle)
        if self._is_on_gpu:
            self._mark()
        return fine

    def _begin_step(self, now: float) -> None:
        self.open.end(now)
        self.lane.is_dense = self._next_dense
        # The allowance goes to deep steps, which are those that wait for a busy machine.
        is_generous = self._budget.is_generous and self.open.depth > Depth.LIGHT
        self._shield.cost.step_ended(is_generous)

    def _mark(self) -> None:
        is_light = self.open.depth is Depth.LIGHT
        self._lengths.step_begins(is_light=is_light, is_dense=self.lane.is_dense)

    def _settlement(self, now: float) -> Settle:
        """Return a function that accounts for the ending step once its device time is known."""
        depth, began = self.open.depth, self.open.began
        cost = self._shield.cost
        spent = cost.spent
        effort = cost.effort if cost.is_generous else spent
        on_gpu = self._is_on_gpu
        is_ahead = self.lane.row[self._idle_at] == 0  # the host, which has time to spare then
        prepares = depth is Depth.LIGHT  # or it would have been recorded as a light one
        timed = on_gpu and not prepares
        next_is_light = self.open.next_depth is Depth.LIGHT
        window = self._lengths.window(next_is_light=next_is_light) if timed else None

        def settle(worked: float) -> float:
            total = worked if is_ahead else max(spent, worked)
            stretch = None if window is None else window.stretch()
            if stretch is not None:
                total = min(max(spent, worked), stretch)
            elif prepares and self._lengths.of_light is not None:  # part of the deep step's window
                total = min(total, self._budget.cost(Depth.LIGHT))
            if began is not None:
                length = max(now - began - total, 0.0)
                # What waits for a GPU holds it up: there, all time is effort.
                least = total if on_gpu else min(effort, total)
                self._budget.account(depth, total, length, effort=least, prepares=prepares)
            return total

        return settle
