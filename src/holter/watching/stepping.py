"""Stepper: turns what torch tells of a loop into steps, moments and readings."""

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.amp import GradScaler
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler
from torch.utils.data import DataLoader

from holter.record.events import ModeChanged, PassBegan, SkippedStep
from holter.watching.blackbox import BlackBox
from holter.watching.collectors import Collector
from holter.watching.collectors.moments import (
    AfterUpdate,
    Attended,
    BackwardBegins,
    BackwardEnds,
    BatchFetched,
    BeforeUpdate,
    Clipped,
    Closing,
    Depth,
    EvaluationBegins,
    Joined,
    Logged,
    LossComputed,
    NonfiniteReplaced,
    ScalerStepped,
    SchedulerStepped,
    ValidationLoss,
)
from holter.watching.collectors.roster import Roster
from holter.watching.loaders import Loaders, facts, samples
from holter.watching.recorder import Recorder
from holter.watching.schedules import Schedules
from holter.watching.steps import Steps, shielded
from holter.watching.taps import LossCall


class Scout(Protocol):
    """Finds models and optimizers by itself, and adds them to the watch in time."""

    def optimizer_made(self, optimizer: Optimizer) -> None:
        """An optimizer that is not watched was given parameters."""

    def before_backward(self) -> None:
        """A backward is about to begin."""

    def before_step(self, optimizer: Optimizer) -> None:
        """Any optimizer, watched or not, is about to step."""


class Stepper(Steps):
    """Listens to a loop, and closes its steps.

    A step runs from the first backward after one `optimizer.step()` to the first backward after
    the next. So `log(loss=...)` may stand on either side of `optimizer.step()`, accumulation is one
    step, evaluation is none, and two optimizers stepped after one backward share a step.
    """

    def __init__(
        self, recorder: Recorder, collectors: Iterable[Collector], *, budget: float | None
    ) -> None:
        super().__init__(recorder, collectors, budget=budget)
        self.scout: Scout | None = None
        self.backwards = 0  # before there was anything to watch
        self.is_evaluating = False  # whether a model is in eval mode
        # The last call of each loss function in eval mode with a graph: training or not?
        self._undecided: dict[str, LossCall] = {}
        self._clipping = (False, False)  # whether a clipping in progress is of scaled ones, or late
        self._schedules = Schedules()
        self._loaders = Loaders()
        self._modes: dict[int, bool] = {}
        self._evaluated = self._validated = False

    def renew(self, roster: Roster) -> None:
        """Go on with another roster; what was seen of the open step stays seen."""
        renewed = {subject.index: subject for subject in roster.subjects}
        self._stepped = [renewed.get(each.index, each) for each in self._stepped]
        self._read = {renewed.get(each.index, each) for each in self._read}
        self.roster = roster
        self._device = roster.parameters[0].device if roster.parameters else torch.device("cpu")
        self._look_at_modes()
        if self.blackbox is not None:
            self._attend(self.blackbox)

    def join(self, roster: Roster) -> None:
        """Others have joined; if no step is open, the coming forward is the first of one.

        Not shielded, as a scout calls this from within a call that is.
        """
        self.renew(roster)
        if not self._in_step:
            self._publish(Joined(roster, self._depth))

    @shielded
    def let_go(self) -> None:
        """An optimizer is gone: so are the models that it alone has trained."""
        self.renew(self.roster.without_dead())

    # What torch tells: the methods of `tapping.Listener`, and the hooks of the optimizers.

    @shielded
    def backward_begins(self, roots: Sequence[Tensor], *, whole: bool) -> None:
        """Open a step if the last one has been updated."""
        self._decide(training=self.is_evaluating)
        self._has_passed = False
        if not self.roster.subjects:
            self.backwards += 1
        if self._depth is Depth.NONE and not self._passed_by():
            return
        if self.scout is not None:
            self.scout.before_backward()
        if self._stepped:
            self._end_step(in_eval=self.is_evaluating)
        self._read.clear()  # of micro-batches clipped one by one, the last reading counts
        scalars = tuple([self._loss_scale.without(root) for root in roots if root.numel() == 1])
        opens, self._in_step = not self._in_step, True
        self._publish(BackwardBegins(scalars, opens, self.roster, whole))
        self._loss_scale.backward_began()

    @shielded
    def backward_ends(self) -> None:
        """Let collectors look at what backward left."""
        self._publish(BackwardEnds())

    @shielded
    def clip_begins(self, parameters: Iterable[Tensor]) -> None:
        """Read gradients before they are clipped."""
        subjects = self.roster.subjects_holding(parameters)
        for subject in subjects:
            self._gradients_ready(subject)
        scaled = any(self._loss_scale.is_on(each.optimizer()) for each in subjects)
        late = bool(subjects) and all(each in self._stepped for each in subjects)
        self._clipping = (scaled, late)

    @shielded
    def clip_ends(self, norm: Tensor | None, limit: float) -> None:
        """Keep what the script's clipping measured."""
        self._publish(Clipped(norm, limit, *self._clipping))

    @shielded
    def loss_scaled(self, scaler: GradScaler, loss: Tensor, scaled: Tensor) -> None:
        """Remember which loss a scaled loss stands for."""
        self._loss_scale.multiplied(scaler, loss, scaled)

    @shielded
    def gradients_unscaled(self, optimizer: Optimizer) -> None:
        """Gradients of this optimizer are free of the scale from here on."""
        self._loss_scale.divided(optimizer)

    @shielded
    def scaler_stepped(self, optimizer: Optimizer) -> None:
        """A step that the optimizer's hooks did not see was skipped."""
        subject = self.roster.subject_of(optimizer)
        if subject is None:
            return
        skipped = subject not in self._stepped
        if skipped:
            self._gradients_ready(subject)
            self._stepped.append(subject)
            self._recorder.event(SkippedStep(subject.label))
            self._tell_of_schedules()
        scale = self._loss_scale.current(self._device)
        if scale is not None:
            self._publish(ScalerStepped(scale, self._loss_scale.skipped(unseen=skipped)))

    @shielded
    def scheduler_stepped(self, scheduler: LRScheduler) -> None:
        """Count it, once training has begun; write down what is known of it."""
        trained = bool(self._recorder.steps or self._stepped)
        found = self._schedules.stepped(scheduler, trained=trained)
        if found is not None:
            self._recorder.event(found)
        if trained:
            self._publish(SchedulerStepped())

    @shielded
    def nonfinite_replaced(self, tensor: Tensor) -> None:
        """Let collectors count what is replaced."""
        self._publish_forward(NonfiniteReplaced(tensor, self._is_ahead, self.roster))

    @shielded
    def attended(
        self,
        query: Tensor,
        key: Tensor,
        mask: Tensor | None,
        *,
        is_causal: bool,
        scale: float | None,
    ) -> None:
        """Let collectors look at what attention was given."""
        if self._is_ahead and not self.is_evaluating:
            self._publish_forward(Attended(query, key, mask, is_causal, scale))

    @shielded
    def loss_computed(self, call: LossCall) -> None:
        """Tell the loss of a validation batch from one that is trained on."""
        if not call.has_graph and not torch.is_grad_enabled():
            self._validation_loss(call.detached())
        elif call.has_graph and self.is_evaluating:
            # At most one of each function is kept: predictions may be large.
            before = self._undecided.pop(call.function, None)
            if before is not None:
                self._validation_loss(before)
            self._undecided[call.function] = call.detached()
            self.is_deaf = False  # the backward that may follow decides
        elif call.has_graph:
            kept = call.detached()
            self._publish_forward(LossComputed(kept.function, kept.loss, kept.arguments))

    @shielded
    def loader_begins(self, loader: DataLoader[Any], iterator: object) -> None:
        """Name a loader, and write down each pass over it."""
        label, is_new = self._loaders.begin(loader, iterator)
        if is_new:
            self._recorder.event(facts(label, loader))
        self._recorder.event(PassBegan(label))
        if self.blackbox is not None and (self._stepped or not self._in_step):
            self.blackbox.pass_begins(label)

    @shielded
    def batch_fetched(self, iterator: object, batch: object, waited: float) -> None:
        """Keep size and wait of a batch."""
        label = self._loaders.name_of(iterator)
        if label is not None:
            self._publish(BatchFetched(label, samples(batch), waited))
            if self.blackbox is not None and torch.is_grad_enabled() and not self.is_evaluating:
                self.blackbox.fetched(self._coming_step, label, batch)

    @shielded
    def mode_changed(self, module: nn.Module) -> None:
        """Write down when a model goes from training to eval mode or back."""
        for model in self.roster.models:
            if model.module is module:
                self._look_at_modes()
                self._evaluated |= not module.training
                if not module.training:
                    self._publish(EvaluationBegins(self.roster))
                if self._modes.get(id(module)) != module.training:
                    self._modes[id(module)] = module.training
                    self._recorder.event(ModeChanged(model.label, module.training))

    def before_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        """The hook before the step of an optimizer that is watched."""
        if not self.is_deaf:
            self._before_step(optimizer, args, kwargs)
        if self.blackbox is not None and os.getpid() == self._process:
            scaled = self._loss_scale.is_on(optimizer)
            self.blackbox.before_update(self._recorder.step, optimizer, scaled=scaled)

    @shielded
    def _before_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        subject = self.roster.subject_of(optimizer)
        if subject is None:
            return
        self._loss_scale.step_begins(optimizer)
        closure = _closure(args, kwargs) is not None
        # The same optimizer again without a backward, or a closure that will call backward itself.
        if subject in self._stepped or (closure and self._stepped):
            self._close_step()
        if self._depth is Depth.FULL and self.roster.is_outdated():
            self.renew(self.roster.joined_by())
            subject = self.roster.subject_of(optimizer) or subject
        if not closure:
            self._gradients_ready(subject)
        self._publish(BeforeUpdate(subject, optimizer, self._depth, self.roster))

    def after_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        """The hook after the step of an optimizer that is watched."""
        if self.is_deaf and len(self.roster.subjects) == 1 and os.getpid() == self._process:
            self._next_depth = self._budget.depth(self._recorder.step + 1)
            if self._next_depth is Depth.NONE:
                if self.blackbox is not None:
                    self.blackbox.updated(self._recorder.step)
                self._recorder.step += 1
                self._began, self._has_passed = time.perf_counter(), True
                return
        self._after_step(optimizer, args, kwargs)

    @shielded
    def _after_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        subject = self.roster.subject_of(optimizer)
        if subject is None:
            return
        if not self._stepped:
            self._next_depth = self._budget.depth(self._recorder.step + 1)
        if _closure(args, kwargs) is not None:
            self._gradients_ready(subject)
        self._in_step, self.is_deaf = True, False
        self._publish(AfterUpdate(subject, self.roster, self._depth, self._next_depth))
        self._stepped.append(subject)
        if self.blackbox is not None:
            self.blackbox.updated(self._recorder.step)
        if self._schedules.are_waiting:
            self._tell_of_schedules()

    @shielded
    def parameters_joined(self, optimizer: Optimizer) -> None:
        """An optimizer is new, or has got another group."""
        if self.roster.subject_of(optimizer) is not None:
            self.renew(self.roster.joined_by())
        elif self.scout is not None:
            self.scout.optimizer_made(optimizer)

    @shielded
    def before_any_step(self, optimizer: Optimizer, *_: Any) -> None:
        """The hook that torch calls for every optimizer there is."""
        if self.scout is not None:
            self.scout.before_step(optimizer)

    # The open step.

    @shielded
    def log(self, values: Mapping[str, Tensor]) -> None:
        """The loop has values for the open step."""
        self._publish(Logged(values))

    @shielded
    def finish(self) -> None:
        """Close the last step, if it was updated."""
        self._publish(Closing())
        self._tell_of_schedules()
        if self._stepped:
            self._close_step()

    def _tell_of_schedules(self) -> None:
        for found in self._schedules.began():
            self._recorder.event(found)

    def _close_step(self) -> None:
        """End the open step without a backward that opens another."""
        self._decide(training=False)
        if self._depth is Depth.NONE:
            self._passed_by()
        else:
            self._end_step()

    @property
    def _coming_step(self) -> int:
        """The step whose update is still to come."""
        return self._recorder.step + bool(self._stepped)

    def _attend(self, blackbox: BlackBox) -> None:
        optimizers = {
            subject.label: optimizer
            for subject in self.roster.subjects
            if (optimizer := subject.optimizer()) is not None
        }
        models = {model.label: model.module for model in self.roster.models}
        blackbox.attend(self._coming_step, models, optimizers)

    def _look_at_modes(self) -> None:
        self.is_evaluating = any(not model.module.training for model in self.roster.models)

    def _validation_loss(self, call: LossCall) -> None:
        self._validated = True
        loss = call.loss.mean()
        self._publish(
            ValidationLoss(
                call.function, loss, call.samples, call.arguments, call.has_graph, self.roster
            )
        )

    def _decide(self, *, training: bool) -> None:
        """Settle the last losses computed in eval mode: if training, they were trained on."""
        calls, self._undecided = self._undecided, {}
        for call in calls.values():
            if training:
                self._publish(LossComputed(call.function, call.loss, call.arguments))
            else:
                self._validation_loss(call)

    # What went wrong, and what stayed unseen.

    def blind_spots(self) -> list[str]:
        """What this training may have done that no tap can see."""
        spots = self._publisher.declined()
        if self._evaluated and not self._validated and self._recorder.steps:
            spots.append(
                "The model was evaluated, but no torch loss function was called while it was:"
                " validation losses computed by hand are not recorded."
            )
        return spots


def _closure(args: Any, kwargs: Any) -> Any:
    """The closure given to `optimizer.step()`; hooks see the optimizer itself as first argument."""
    given = kwargs.get("closure")
    return given if given is not None else next((a for a in args if callable(a)), None)
