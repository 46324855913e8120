"""ForwardListener: what a training loop does before it calls backward."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from holter.record.events import DeviceRead, ModeChanged, PassBegan
from holter.record.signals import Signal
from holter.watching.collectors.graphs.constants import keep_loss
from holter.watching.collectors.lane import Delivery, Evaluated
from holter.watching.collectors.moments import (
    Attended,
    EvaluationBegins,
    LossComputed,
    NonfiniteReplaced,
    Rectified,
)
from holter.watching.evaluating import EvaluatedLoss
from holter.watching.frames import Frames, place
from holter.watching.item_counts import items_of
from holter.watching.loaders import Iteration, Loaders, facts, samples
from holter.watching.loop import Loop
from holter.watching.orders import Orders
from holter.watching.shield import shielded
from holter.watching.taps import Interest, TappedLoss

_MOST_READS = 16  # lines that are recorded


class _Losses:
    """Whether loss functions are of interest: in evaluation, and where a collector reads them."""

    __slots__ = ("_evaluation", "_is_grad_enabled", "_open", "_publisher")

    def __init__(self, loop: Loop) -> None:
        self._evaluation, self._open = loop.evaluation, loop.stepper.open
        self._publisher, self._is_grad_enabled = loop.stepper.publisher, torch.is_grad_enabled

    @property
    def is_on(self) -> bool:
        if self._evaluation.is_on or not self._is_grad_enabled():
            return True
        return LossComputed in self._publisher.heard[self._open.forward_depth]


class ForwardListener:
    """Hears of batches, modes, losses, and of some functions that models call."""

    def __init__(self, loop: Loop) -> None:
        self.shield = loop.shield
        self._loop, self._stepper, self._open = loop, loop.stepper, loop.stepper.open
        self._loaders, self._orders, self._passes = Loaders(), Orders(), loop.passes
        self._lane, self.losses = loop.stepper.lane, _Losses(loop)
        self._frames = Frames()
        self._reads: set[tuple[str, str]] = set()  # of the GPU: call, file and line
        loop.interludes.fetches = self

    @property
    def is_evaluating(self) -> bool:
        """Whether a model is in eval mode."""
        return self._loop.evaluation.is_on

    @property
    def forward(self) -> Interest:
        """Whether everything is read of the step that this forward pass belongs to."""
        return self._open.forward

    @shielded
    def loader_begins(self, loader: DataLoader[Any], iterator: object) -> None:
        """Name a loader, and record each pass over it."""
        chain, step = self._passes.chain(), self._stepper.coming_step
        label, is_new = self._loaders.begin(loader, iterator, chain=chain, step=step)
        if is_new:
            self._loop.recorder.event(facts(label, loader))
        self._loop.recorder.event(PassBegan(label))
        self._orders.begin(label, self._stepper.coming_step)
        if not self.is_evaluating:
            self._begin_epoch()
        for listener in self._loop.at_loader:
            listener(loader, chain, self.is_evaluating or not torch.is_grad_enabled())
        if self._loop.black_box is not None and self._open.is_ahead:
            self._loop.black_box.pass_begins(label)

    def _begin_epoch(self) -> None:
        for listener in self._loop.at_epoch:
            listener()

    @shielded
    def batch_fetched(self, iterator: object, batch: object, waited: float) -> None:
        """Publish size and wait of a batch; keep a training batch in the black box."""
        iteration = self._loaders.iteration_of(iterator)
        if iteration is None:
            return
        step, evaluating = self._stepper.coming_step, self.is_evaluating
        self._passes.fetched(iteration, step, evaluating=evaluating)
        count = samples(batch)
        self._lane.tell(self._lane.at_fetch, iteration.label, count, waited)
        if not torch.is_grad_enabled() or evaluating:
            evaluated = Evaluated(iteration.label, batch, self._stepper.roster, self._foresee)
            self._lane.tell(self._lane.at_evaluated, evaluated)
            return
        self.deliver(iteration, batch, count, step)

    def iteration_of(self, iterator: object) -> Iteration | None:
        """Return the pass that an iterator makes."""
        return self._loaders.iteration_of(iterator)

    def deliver(self, iteration: Iteration, batch: object, count: int, step: int) -> None:
        """Pass on a batch of training, of so many samples, that comes before a step."""
        delivery = Delivery(iteration.label, iteration, iteration.batches, count, batch)
        self._lane.tell(self._lane.at_batch, delivery)
        order = self._orders.see(iteration.label, batch, step, iteration.batches)
        if order is not None:
            self._loop.recorder.event(order)
        if self._loop.black_box is not None:
            self._loop.black_box.fetched(step, iteration.label, batch)

    @shielded
    def paused(self, signal: Signal, seconds: float) -> None:
        """Pass on how long a checkpoint or a garbage collection took."""
        self._lane.tell(self._lane.at_pause, signal, seconds)

    @shielded
    def device_read(self, call: str, seconds: float) -> None:
        """Pass on how long the host waited for the GPU; record each line that waits once."""
        self._lane.tell(self._lane.at_sync, seconds)
        if len(self._reads) < _MOST_READS:
            where = next((place(frame) for frame in self._frames.all()), "")
            if where and (call, where) not in self._reads:
                self._reads.add((call, where))
                self._loop.recorder.event(DeviceRead(call, where))

    @shielded
    def copied_to_device(self, before: Any, after: Any) -> None:
        """Pass on the events around a copy."""
        self._lane.tell(self._lane.at_copy, before, after)

    @shielded
    def nonfinite_replaced(self, tensor: Tensor) -> None:
        """Publish what `nan_to_num` is called on."""
        moment = NonfiniteReplaced(tensor, self._open.is_ahead, self._stepper.roster)
        self._stepper.publish_forward(moment)

    @shielded
    def rectified(self, output: Tensor) -> None:
        """Publish what a ReLU that is no module returned."""
        if self._open.is_ahead:
            self._stepper.publish_forward(Rectified(output))

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
        """Publish the inputs of attention."""
        if self._open.is_ahead and not self.is_evaluating:
            self._stepper.publish_forward(Attended(query, key, mask, is_causal, scale))

    @shielded
    def modes_changed(self, modules: Sequence[nn.Module]) -> None:
        """Record when a model changes between train and eval mode."""
        self._lane.tell(self._lane.at_mode)
        roster, evaluation = self._stepper.roster, self._loop.evaluation
        models = {id(model.module): model for model in roster.models}
        for model in [models[id(module)] for module in modules if id(module) in models]:
            evaluation.look_at(roster.models)
            is_change = evaluation.mode_changed(model.module)
            if not model.module.training:
                self._stepper.publish(EvaluationBegins(roster))
                for listener in self._loop.at_evaluation:
                    listener(model.module)
            elif is_change:
                self._begin_epoch()
            if is_change:
                self._loop.recorder.event(ModeChanged(model.label, model.module.training))

    @shielded
    def loss_computed(self, call: TappedLoss) -> None:
        """Tell the loss of a validation batch from one that is trained on."""
        self._loop.has_called_loss |= call.has_graph
        if not call.has_graph and (self.is_evaluating or not torch.is_grad_enabled()):
            self._lane.tell(self._lane.at_scored)
            self._loop.validation_loss(self._evaluated(call))
        elif call.has_graph and self.is_evaluating:
            self._lane.tell(self._lane.at_scored)
            before = self._loop.evaluation.postpone(self._evaluated(call))
            if before is not None:
                self._loop.validation_loss(before)
        elif call.has_graph:
            self._passes.trained()
            self._loop.loss_function = call.function
            keep_loss(call.loss)
            kept = call.detached()
            if self._loop.black_box is not None:
                self._loop.black_box.loss_computed(call.function)
            self._stepper.publish_forward(
                LossComputed(kept.function, kept.loss, kept.samples, kept.arguments)
            )

    @property
    def is_deaf(self) -> bool:
        """Whether a derivative is of no interest: no loss waits to be told from one of training."""
        return not self._loop.evaluation.undecided

    @shielded
    def derivative_asked(self) -> None:
        """Forget a loss in eval mode whose graph the script needs: for an attack, or a saliency."""
        self._loop.evaluation.take_undecided()

    def _foresee(self, function: str, arguments: Mapping[str, Any]) -> Callable[[Tensor], None]:
        """Return what publishes a loss of the batch that was fetched last."""
        scores: Tensor = arguments["input"]
        call = TappedLoss(function, scores, len(scores), has_graph=False, arguments=arguments)
        data = self._evaluated(call).data

        def publish(loss: Tensor) -> None:
            self._loop.validation_loss(EvaluatedLoss(replace(call, loss=loss), data))

        return publish

    def _evaluated(self, call: TappedLoss) -> EvaluatedLoss:
        step, evaluating = self._stepper.coming_step, self.is_evaluating
        data = self._passes.data_of(call, step, evaluating=evaluating)
        from_training = self._loop.evaluation.is_from_training(call)
        return EvaluatedLoss(call.detached(), data, items_of(call, self._frames), from_training)
