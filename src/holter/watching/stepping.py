"""Stepper: reads the open step through the collectors, ends it, and has it recorded."""

import time
from collections.abc import Iterable

import torch

from holter.watching.budget import Budget
from holter.watching.collectors import Collector
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


class Stepper:
    """Publishes moments at the depth of the step they belong to, and closes steps."""

    def __init__(
        self,
        recorder: Recorder,
        collectors: Iterable[Collector],
        *,
        budget: float | None,
        shield: Shield,
    ) -> None:
        self.roster = Roster()
        self.open = OpenStep()
        self.loss_scale = LossScale()
        self.device = torch.device("cpu")  # of the first parameter
        self._recorder, self._budget, self._shield = recorder, Budget(budget), shield
        self._publisher = Publisher(collectors, shield.fail)

    @property
    def coming_step(self) -> int:
        """The number of the step whose update is still to come."""
        return self._recorder.step + self.open.is_updated

    @property
    def has_trained(self) -> bool:
        """Whether an optimizer has stepped since this recording began."""
        return self._recorder.steps > 0 or self.open.is_updated

    def listens_to(self, kind: type, depth: Depth) -> bool:
        """Whether a collector listens to such a moment in a step of this depth."""
        return self._publisher.hears(kind, depth)

    def declined(self) -> list[str]:
        """What collectors cannot read in this training, a sentence each."""
        return self._publisher.declined()

    def renew(self, roster: Roster) -> None:
        """Continue with another roster; what was seen of the open step stays seen."""
        self.open.renew({subject.index: subject for subject in roster.subjects})
        self.roster = roster
        self.device = roster.parameters[0].device if roster.parameters else torch.device("cpu")

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
        if self.listens_to(GradientsReady, self.open.depth):
            scale = self.loss_scale.of(subject.optimizer(), self.device)
            self.publish(GradientsReady(subject, scale))

    def choose_next_depth(self) -> Depth:
        """Decide how much is read of the step after the open one."""
        self.open.next_depth = self._budget.depth(self._recorder.step + 1)
        return self.open.next_depth

    def alert(self) -> None:
        """Read the next steps whole, because something odd was seen."""
        self._budget.alert(self._recorder.step)

    def end_step(self, *, in_eval: bool = False) -> None:
        """End the open step, which has been updated."""
        step, cost = self.open, self._shield.cost
        self.publish(StepEnds(step.stepped, in_eval))
        now = time.perf_counter()
        if step.depth > Depth.LIGHT:
            hooks = self._publisher.spent_in_hooks()
            cost.spent, cost.effort = cost.spent + hooks, cost.effort + hooks
        readings, timers = self._publisher.take()
        settle = self._settlement(now)
        cost.step_ended(is_generous=self._budget.is_generous)
        step.end(now)
        self.loss_scale.step_ended()
        if not self._recorder.write_step(readings, timers, settle):
            self.alert()

    def _settlement(self, now: float) -> Settle:
        """Return a function that accounts for the ending step once its device time is known."""
        depth, began = self.open.depth, self.open.began
        cost = self._shield.cost
        spent = cost.spent
        effort = cost.effort if cost.is_generous else spent

        def settle(worked: float, hidden: bool) -> float:
            # A host that runs ahead of its GPU has time to spare.
            total = worked if hidden else max(spent, worked)
            if began is not None:
                length = max(now - began - total, 0.0)
                self._budget.account(depth, total, length, effort=min(effort, total))
            return total

        return settle
