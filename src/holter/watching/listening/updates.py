"""UpdateListener: a training loop from backward to the update of the weights."""

import weakref
from collections.abc import Sequence
from typing import Any

from torch import Tensor
from torch.amp import GradScaler
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from holter.record.events import SkippedStep
from holter.record.notices import tell
from holter.watching.blackbox.box import NonfiniteError
from holter.watching.collectors.moments import (
    AfterUpdate,
    BackwardBegins,
    BeforeUpdate,
    Depth,
)
from holter.watching.collectors.optimizer_state import age_of
from holter.watching.collectors.roster import Roster, Subject, note_given
from holter.watching.listening.closures import ClosureListener, closure_of
from holter.watching.loop import Loop
from holter.watching.shield import shielded
from holter.watching.steps import Stage


class UpdateListener:
    """Hears of backward passes, clipping, loss scaling, optimizers and schedulers."""

    def __init__(self, loop: Loop) -> None:
        self.shield = loop.shield
        self._loop, self._stepper, self._open = loop, loop.stepper, loop.stepper.open
        self._loss_scale, self._lane = loop.stepper.loss_scale, loop.stepper.lane
        self._closures, self._streak = ClosureListener(loop), loop.streak
        self._in_eval = False  # at the last backward
        self.backwards = 0  # of the training
        self.made: weakref.WeakSet[Optimizer] = weakref.WeakSet()  # optimizers, watched or not
        loop.streak.ordinary = loop.interludes.updates = self
        self._clipping = (False, False)  # of the call under way: scaled gradients, and too late
        # What was clipped last, and the places on which roster of those who hold it.
        self._clipped: tuple[tuple[int, ...], weakref.ref[Roster], list[int]] | None = None

    @shielded
    def backward_begins(self, roots: Sequence[Tensor], whole: bool) -> None:
        """Open a step if the last one has been updated."""
        loop, step, stepper, lane = self._loop, self._open, self._stepper, self._lane
        self.backwards += 1
        in_eval = loop.evaluation.is_on
        if loop.evaluation.undecided:
            loop.decide(training=in_eval)
        loop.evaluation.trained(roots)
        if loop.scout is not None:
            loop.scout.before_backward()
        if step.stage is Stage.UPDATED:
            stepper.end_step(in_eval=in_eval)
        if in_eval is not self._in_eval:  # training goes on in another mode
            self._in_eval = in_eval
            stepper.alert()
        scalars = [root for root in roots if root.numel() == 1]
        if self._loss_scale.products:
            scalars = [self._loss_scale.without(root) for root in scalars]
            self._loss_scale.backward_began()
        opens, depth = step.backward(), step.depth
        if loop.has_called_loss or depth is Depth.FULL:
            loop.see_handwritten(scalars)
        lane.tell(lane.at_backward, scalars, opens, depth)
        if BackwardBegins in stepper.publisher.heard[depth]:
            stepper.publish(BackwardBegins(tuple(scalars), opens, stepper.roster, whole))
        if opens and whole:
            self._streak.backward_began(roots)

    @shielded
    def backward_ends(self) -> None:
        """Let collectors read what backward left."""
        self._lane.tell(self._lane.at_backward_end)

    @shielded
    def clip_begins(self, parameters: Sequence[Tensor]) -> None:
        """Read gradients before they are clipped."""
        subjects = self._subjects_holding(parameters)
        for subject in subjects:
            self._stepper.gradients_ready(subject)
        scaled = any(self._loss_scale.is_on(subject.optimizer()) for subject in subjects)
        late = bool(subjects) and all(subject in self._open.stepped for subject in subjects)
        self._clipping = (scaled, late)

    def _subjects_holding(self, parameters: Sequence[Tensor]) -> list[Subject]:
        """Return whose parameters these are; a list with the same ends is the one of last time."""
        roster = self._stepper.roster
        ends = (parameters[0], parameters[-1]) if parameters else ()
        key = (len(parameters), *map(id, ends))
        known = self._clipped
        if known is None or known[0] != key or known[1]() is not roster:
            holders = roster.subjects_holding(parameters)
            places = [place for place, s in enumerate(roster.subjects) if s in holders]
            known = self._clipped = key, weakref.ref(roster), places
        return [roster.subjects[place] for place in known[2]]

    def clips_all_subjects(self) -> tuple[int, ...] | None:
        """Number and ends of the parameters clipped last, if all optimizers hold some; or None."""
        roster, known = self._stepper.roster, self._clipped
        if known is None or known[1]() is not roster:
            return None
        return known[0] if known[2] == list(range(len(roster.subjects))) else None

    @shielded
    def clip_ends(self, norm: Tensor | None, limit: float) -> None:
        """Pass on what the script's clipping measured."""
        scaled, late = self._clipping
        self._lane.tell(self._lane.at_clip, norm, limit, scaled, late)

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
            self._lane.tell(self._lane.at_scaler, scale, flag)

    @shielded
    def scheduler_stepped(self, scheduler: LRScheduler, given: object) -> None:
        """Record a scheduler and its cuts; count its step once training has begun."""
        trained = self._stepper.has_trained
        for event in (
            self._loop.schedules.stepped(scheduler, trained=trained, at=given),
            self._loop.schedules.cut(scheduler, given),
        ):
            if event is not None:
                self._loop.recorder.event(event)
        if trained:
            self._lane.tell(self._lane.at_schedule)

    @shielded
    def parameters_joined(self, optimizer: Optimizer) -> None:
        """Register an optimizer that is new, or has a new parameter group."""
        note_given(optimizer)
        self.made.add(optimizer)
        roster = self._stepper.roster
        if roster.subject_of(optimizer) is not None:
            self._loop.renew(roster.joined_by())
        elif self._loop.scout is not None:
            self._loop.scout.optimizer_made(optimizer)

    def before_any_step(self, optimizer: Optimizer, *_: Any) -> None:
        """Tell the scout of a step: torch calls this hook for every optimizer."""
        if not self._streak.awaits(optimizer):
            self._before_any_step(optimizer)

    @shielded
    def _before_any_step(self, optimizer: Optimizer) -> None:
        self.shield.calls -= 1  # another one is made for the same update
        if self._loop.scout is not None:
            self._loop.scout.before_step(optimizer)

    def before_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> Any:
        """See a watched optimizer begin its step; return its arguments, if a closure is among them.

        The optimizer is the first of them.
        """
        self._before_step(optimizer, args, kwargs)
        box = self._loop.black_box
        if (
            box is not None
            and box.may_interrupt
            and not self.shield.home.is_left
            and not (self.shield.is_on_cuda and self.shield.is_capturing())
        ):
            scaled = self._loss_scale.is_on(optimizer)
            try:
                box.interrupt(self._loop.recorder.step, optimizer, scaled=scaled)
            except (NonfiniteError, SystemExit):
                self._refused(optimizer)
                raise
        if kwargs or len(args) > 1:
            return self._closures.before_step(optimizer, args, kwargs)
        return None

    @shielded
    def _refused(self, optimizer: Optimizer) -> None:
        """Record the step that ends the training before its update: it holds the reason."""
        subject = self._stepper.roster.subject_of(optimizer)
        if subject is not None:
            self._updated(subject)
            self._loop.close_step()

    @shielded
    def _before_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        stepper, step = self._stepper, self._open
        subject = stepper.roster.subject_of(optimizer)
        if subject is None:
            return
        recorder, lane, box = self._loop.recorder, self._lane, self._loop.black_box
        if recorder.is_resumed:
            self._take_up(subject, optimizer)
        self._loss_scale.step_begins(optimizer)
        # As most optimizers are called, there is no further argument.
        has_closure = bool(kwargs or len(args) > 1) and closure_of(args, kwargs) is not None
        # The same optimizer again without a backward, or a closure that will call backward itself.
        if subject in step.stepped or (has_closure and step.is_updated):
            self._loop.close_step()
        if step.depth > Depth.LIGHT and stepper.roster.is_outdated():
            self._loop.renew(stepper.roster.joined_by())
            subject = stepper.roster.subject_of(optimizer) or subject
        if not has_closure:
            stepper.gradients_ready(subject)
        lane.tell(lane.at_update, subject, optimizer, step.depth)
        if BeforeUpdate in stepper.publisher.heard[step.depth]:
            stepper.publish(BeforeUpdate(subject, optimizer, step.depth, stepper.roster))
        if box is not None:
            box.before_update(recorder.step, optimizer)

    def _take_up(self, subject: Subject, optimizer: Optimizer) -> None:
        """Continue a resumed run at the step that the optimizer has reached."""
        age = age_of(subject, optimizer)
        lost = self._loop.recorder.take_up(None if age is None else float(age[0]), subject.label)
        if lost is not None:
            tell(lost)
            self.shield.notes.append(lost[0].upper() + lost[1:])

    def after_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        """See a watched optimizer end its step."""
        has_closure = bool(kwargs or len(args) > 1) and closure_of(args, kwargs) is not None
        if has_closure:
            self._closures.after_step()
        self._after_step(optimizer, has_closure=has_closure)

    @shielded
    def _after_step(self, optimizer: Optimizer, *, has_closure: bool) -> None:
        subject = self._stepper.roster.subject_of(optimizer)
        if subject is None:
            return
        if has_closure:
            self._stepper.gradients_ready(subject)
        self._updated(subject)

    def _updated(self, subject: Subject) -> None:
        """Publish that an optimizer has stepped, or that its step was skipped."""
        loop, step, stepper, lane = self._loop, self._open, self._stepper, self._lane
        if step.stage is not Stage.UPDATED:
            stepper.choose_next_depth()
        depth, next_depth = step.depth, step.next_depth
        lane.tell(lane.at_update_end, subject, next_depth)
        if AfterUpdate in stepper.publisher.heard[depth if depth > next_depth else next_depth]:
            stepper.publish(AfterUpdate(subject, stepper.roster, depth, next_depth))
        step.updated(subject)
        if loop.black_box is not None:
            loop.black_box.updated(loop.recorder.step)
        if loop.schedules.waiting:
            loop.record_schedules()
