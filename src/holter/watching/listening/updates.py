"""UpdateListener: a training loop from backward to the update of the weights."""

import os
from collections.abc import Iterable, Sequence
from typing import Any

from torch import Tensor
from torch.amp import GradScaler
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from holter.record.events import SkippedStep
from holter.watching.blackbox.box import NonfiniteError
from holter.watching.collectors.moments import (
    AfterUpdate,
    BackwardBegins,
    BackwardEnds,
    BeforeUpdate,
    Clipped,
    Depth,
    ScalerStepped,
    SchedulerStepped,
)
from holter.watching.collectors.roster import Subject
from holter.watching.listening.closures import closure_of
from holter.watching.loop import Loop
from holter.watching.shield import shielded


class UpdateListener:
    """Hears of backward passes, clipping, loss scaling, optimizers and schedulers."""

    def __init__(self, loop: Loop) -> None:
        self.shield = loop.shield
        self._loop, self._stepper, self._open = loop, loop.stepper, loop.stepper.open
        self._loss_scale = loop.stepper.loss_scale
        self._in_eval = False  # at the last backward
        self._clipping = (False, False)  # of the call under way: scaled gradients, and too late

    @property
    def is_deaf(self) -> bool:
        """Whether a backward is of no interest."""
        return self.shield.is_closed

    @property
    def minds_backward_ends(self) -> bool:
        """Whether a collector reads what backward left."""
        return self._stepper.listens_to(BackwardEnds, self._open.depth)

    @shielded
    def backward_begins(self, roots: Sequence[Tensor], *, whole: bool) -> None:
        """Open a step if the last one has been updated."""
        loop, step = self._loop, self._open
        in_eval = loop.evaluation.is_on
        loop.decide(training=in_eval)
        if loop.scout is not None:
            loop.scout.before_backward()
        loop.end_if_updated(in_eval=in_eval)
        if in_eval is not self._in_eval:  # training goes on in another mode
            self._in_eval = in_eval
            self._stepper.alert()
        scalars = [self._loss_scale.without(root) for root in roots if root.numel() == 1]
        opens = step.backward()
        loop.see_handwritten(scalars)
        roster = self._stepper.roster
        self._stepper.publish(BackwardBegins(tuple(scalars), opens, roster, whole))
        self._loss_scale.backward_began()

    @shielded
    def backward_ends(self) -> None:
        """Let collectors read what backward left."""
        self._stepper.publish(BackwardEnds())

    @shielded
    def clip_begins(self, parameters: Iterable[Tensor]) -> None:
        """Read gradients before they are clipped."""
        subjects = self._stepper.roster.subjects_holding(parameters)
        for subject in subjects:
            self._stepper.gradients_ready(subject)
        scaled = any(self._loss_scale.is_on(subject.optimizer()) for subject in subjects)
        late = bool(subjects) and all(subject in self._open.stepped for subject in subjects)
        self._clipping = (scaled, late)

    @shielded
    def clip_ends(self, norm: Tensor | None, limit: float) -> None:
        """Publish what the script's clipping measured."""
        self._stepper.publish(Clipped(norm, limit, *self._clipping))

    @shielded
    def loss_scaled(self, scaler: GradScaler, loss: Tensor, scaled: Tensor) -> None:
        """Remember which loss a scaled loss stands for."""
        self._loss_scale.multiplied(scaler, loss, scaled)

    @shielded
    def gradients_unscaled(self, optimizer: Optimizer) -> None:
        """Remember that the gradients of this optimizer no longer carry the scale."""
        self._loss_scale.divided(optimizer)

    @shielded
    def scaler_stepped(self, optimizer: Optimizer) -> None:
        """Publish the scale; a step that the optimizer's hooks did not see was skipped."""
        subject = self._stepper.roster.subject_of(optimizer)
        if subject is None:
            return
        skipped = subject not in self._open.stepped
        if skipped:
            self._stepper.gradients_ready(subject)
            self._updated(subject)
            self._loop.recorder.event(SkippedStep(subject.label))
            self._stepper.alert()
        scale = self._loss_scale.current(self._stepper.device)
        if scale is not None:
            flag = self._loss_scale.skipped(unseen=skipped)
            self._stepper.publish(ScalerStepped(scale, flag))

    @shielded
    def scheduler_stepped(self, scheduler: LRScheduler) -> None:
        """Record a scheduler; count its step once training has begun."""
        trained = self._stepper.has_trained
        schedule = self._loop.schedules.stepped(scheduler, trained=trained)
        if schedule is not None:
            self._loop.recorder.event(schedule)
        if trained:
            self._stepper.publish(SchedulerStepped())

    @shielded
    def parameters_joined(self, optimizer: Optimizer) -> None:
        """Register an optimizer that is new, or has a new parameter group."""
        roster = self._stepper.roster
        if roster.subject_of(optimizer) is not None:
            self._loop.renew(roster.joined_by())
        elif self._loop.scout is not None:
            self._loop.scout.optimizer_made(optimizer)

    @shielded
    def before_any_step(self, optimizer: Optimizer, *_: Any) -> None:
        """Tell the scout of a step: torch calls this hook for every optimizer."""
        if self._loop.scout is not None:
            self._loop.scout.before_step(optimizer)

    def before_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        """See a watched optimizer begin its step."""
        self._before_step(optimizer, args, kwargs)
        box = self._loop.black_box
        if box is not None and os.getpid() == self.shield.process and not self._is_capturing():
            scaled = self._loss_scale.is_on(optimizer)
            try:
                box.before_update(self._loop.recorder.step, optimizer, scaled=scaled)
            except (NonfiniteError, SystemExit):
                self._refused(optimizer)
                raise

    @shielded
    def _refused(self, optimizer: Optimizer) -> None:
        """Record the step that ends the training before its update: it holds the reason."""
        subject = self._stepper.roster.subject_of(optimizer)
        if subject is not None:
            self._updated(subject)
            self._loop.close_step()

    def _is_capturing(self) -> bool:
        return self.shield.is_on_cuda and self.shield.is_capturing()

    @shielded
    def _before_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        subject = self._stepper.roster.subject_of(optimizer)
        if subject is None:
            return
        self._loss_scale.step_begins(optimizer)
        has_closure = closure_of(args, kwargs) is not None
        # The same optimizer again without a backward, or a closure that will call backward itself.
        if subject in self._open.stepped or (has_closure and self._open.is_updated):
            self._loop.close_step()
        if self._open.depth > Depth.LIGHT and self._stepper.roster.is_outdated():
            self._loop.renew(self._stepper.roster.joined_by())
            subject = self._stepper.roster.subject_of(optimizer) or subject
        if not has_closure:
            self._stepper.gradients_ready(subject)
        roster = self._stepper.roster
        self._stepper.publish(BeforeUpdate(subject, optimizer, self._open.depth, roster))

    @shielded
    def after_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        """See a watched optimizer end its step."""
        subject = self._stepper.roster.subject_of(optimizer)
        if subject is None:
            return
        if closure_of(args, kwargs) is not None:
            self._stepper.gradients_ready(subject)
        self._updated(subject)

    def _updated(self, subject: Subject) -> None:
        """Publish that an optimizer has stepped, or that its step was skipped."""
        step, roster = self._open, self._stepper.roster
        if not step.is_updated:
            self._stepper.choose_next_depth()
        self._stepper.publish(AfterUpdate(subject, roster, step.depth, step.next_depth))
        step.updated(subject)
        if self._loop.black_box is not None:
            self._loop.black_box.updated(self._loop.recorder.step)
        if self._loop.schedules.are_waiting:
            self._loop.record_schedules()
