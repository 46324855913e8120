"""Loop: a training loop that is watched: who is trained, the step that is open, how it ends."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils.data import DataLoader

from holter.record.events import HandwrittenLoss
from holter.record.writer import Row
from holter.watching.blackbox.box import BlackBox
from holter.watching.collectors import Collector
from holter.watching.collectors.calls import silence
from holter.watching.collectors.graphs.terms import handwritten
from holter.watching.collectors.lane import LightCollector
from holter.watching.collectors.moments import (
    Closing,
    Depth,
    Joined,
    Logged,
    LossComputed,
    ValidationLoss,
)
from holter.watching.collectors.roster import Roster
from holter.watching.evaluating import EvaluatedLoss, Evaluation
from holter.watching.frames import Chain, Frames, place
from holter.watching.interludes import Interludes
from holter.watching.passes import Passes
from holter.watching.recorder import Recorder
from holter.watching.schedules import Schedules
from holter.watching.shield import Shield, shielded
from holter.watching.stepping import Stepper
from holter.watching.streak import Streak


class Scout(Protocol):
    """Finds models and optimizers by itself, and adds them to the watch in time."""

    def optimizer_made(self, optimizer: Optimizer) -> None:
        """An optimizer that is not watched was given parameters."""

    def before_backward(self) -> None:
        """A backward is about to begin."""

    def before_step(self, optimizer: Optimizer) -> None:
        """Any optimizer, watched or not, is about to step."""

    def after_unseen_backward(self, known: set[int], leaves: Callable[[], list[Tensor]]) -> None:
        """A backward has ended, and no torch optimizer is watched.

        `known` are the identities of parameters that are watched nevertheless; `leaves` finds the
        tensors that this backward gave gradients.
        """


class Loop:
    """What the listeners share: they tell it of losses, and when a step is over."""

    def __init__(
        self,
        recorder: Recorder,
        collectors: Iterable[Collector | LightCollector],
        *,
        budget: float | None,
    ) -> None:
        chosen = list(collectors)
        self.recorder = recorder
        self.shield = Shield(recorder)
        self.stepper = Stepper(recorder, chosen, budget=budget, shield=self.shield)
        self.evaluation = Evaluation()
        self.passes = Passes()
        self.schedules = Schedules()
        self.black_box: BlackBox | None = None
        self.scout: Scout | None = None
        self._reads_graphs = True
        self._handwritten: set[str] = set()  # loss functions that the script computes itself
        self._frames = Frames()
        light = {type(each): each for each in chosen if isinstance(each, LightCollector)}
        self.interludes = Interludes(
            self.stepper.open, self.shield, self.passes, self.schedules, light
        )
        self.streak = Streak(
            recorder,
            self.stepper,
            self.shield,
            self.evaluation,
            interludes=self.interludes,
            black_box=lambda: self.black_box,
            collectors=light,
        )
        self.has_called_loss = False  # a torch loss function, since the last backward
        self.loss_function = ""  # the last torch loss function that was trained with
        self.at_epoch: list[
            Callable[[], None]
        ] = []  # called when an epoch begins or evaluation ends
        self.at_evaluation: list[Callable[[nn.Module], None]] = []  # a model is put into eval mode
        # Called when a pass over a loader begins: with where that is, and whether in evaluation.
        self.at_loader: list[Callable[[DataLoader[Any], Chain, bool], None]] = []

    def renew(self, roster: Roster) -> None:
        """Continue with another roster; what was seen of the open step stays seen."""
        self.streak.settle()
        self.stepper.renew(roster)
        self.shield.is_on_cuda = any(parameter.is_cuda for parameter in roster.parameters)
        self.evaluation.look_at(roster.models)
        if self.black_box is not None:
            optimizers = {
                subject.label: optimizer
                for subject in roster.subjects
                if (optimizer := subject.optimizer()) is not None
            }
            models = {model.label: model.module for model in roster.models}
            self.black_box.attend(self.stepper.coming_step, models, optimizers)

    def join(self, roster: Roster) -> None:
        """Register new models or optimizers; if no step is open, the next forward pass starts one.

        Not shielded, because a scout calls this from within a call that is.
        """
        self.renew(roster)
        self.stepper.alert()
        if not self.stepper.open.has_begun:
            self.stepper.publish(Joined(roster, self.stepper.open.depth))

    @shielded
    def let_go(self) -> None:
        """Drop optimizers that no longer exist, and the models that only they trained."""
        self.renew(self.stepper.roster.without_dead())

    @shielded
    def log(self, values: Mapping[str, Tensor]) -> None:
        """Publish values that the script gives for the open step."""
        lane = self.stepper.lane
        lane.tell(lane.at_log, values)
        if values.keys() != {"loss"}:
            self.stepper.publish(Logged(values))

    @shielded
    def finish(self) -> None:
        """Close the last step, if it was updated."""
        self.stepper.publish(Closing())
        self.stepper.lane.tell(self.stepper.lane.at_close)
        self.record_schedules()
        if self.stepper.open.is_updated:
            self.close_step()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Record nothing while it lasts: what torch tells is no part of the training."""
        self.streak.settle()
        before = self.shield.is_closed, self.black_box
        self.shield.is_closed, self.black_box = True, None
        try:
            with silence():
                yield
        finally:
            self.shield.is_closed, self.black_box = before
            self.stepper.open.began = None  # the pause is no part of a step

    def close_step(self) -> None:
        """End the open step without a backward that opens another."""
        self.decide(training=False)
        self.end_if_updated()

    def end_if_updated(self, *, in_eval: bool = False) -> None:
        """End the open step if its update is over."""
        if self.stepper.open.is_updated:
            self.stepper.end_step(in_eval=in_eval)

    def decide(self, *, training: bool) -> None:
        """Settle whether the last losses computed in eval mode were trained on."""
        for loss in self.evaluation.take_undecided():
            call = loss.call
            if training:
                self.passes.trained()
                moment = LossComputed(call.function, call.loss, call.samples, call.arguments)
                self.stepper.publish(moment)
            else:
                self.validation_loss(loss)

    def see_handwritten(self, roots: Sequence[Tensor]) -> None:
        """Publish what the script computes itself in the place of a torch loss function."""
        is_wanted = self._reads_graphs and self.stepper.open.depth is Depth.FULL
        if is_wanted and not self.has_called_loss:
            try:
                moments = handwritten(roots)
            except Exception as error:  # what torch saves in a graph is no public interface
                self._reads_graphs, moments = False, []
                self.shield.fail("reading the graph of the loss", error)
            for moment in moments:
                self._note_handwritten(moment.function)
                self.stepper.publish(moment)
        self.has_called_loss = False

    def _note_handwritten(self, function: str) -> None:
        if function not in self._handwritten:
            self._handwritten.add(function)
            where = next((place(frame) for frame in self._frames.all()), "")
            self.recorder.event(HandwrittenLoss(function, where))

    def validation_loss(self, loss: EvaluatedLoss) -> None:
        """Publish the loss of a validation batch."""
        call, data, items, from_training = loss
        self.evaluation.was_validated = True
        self.stepper.lane.tell(self.stepper.lane.at_validation)
        news = data.news()
        if news is not None:
            self.recorder.event(news)
        moment = ValidationLoss(
            call.function,
            call.loss,
            call.samples,
            call.arguments,
            call.has_graph,
            data.name,
            "train" if data.is_trained_on else data.split,
            self.stepper.roster,
            items,
            from_training,
        )
        self.stepper.publish(moment)

    def record_schedules(self) -> None:
        """Record the schedulers that were stepped before the first update."""
        for schedule in self.schedules.began():
            self.recorder.event(schedule)

    def blind_spots(self) -> list[str]:
        """What this training may have done that no tap can see, a sentence each."""
        spots = self.stepper.declined()
        if self.evaluation.is_blind and self.recorder.steps:
            spots.append(
                "The model was evaluated, but no torch loss function was called while it was:"
                " validation losses computed by hand are not recorded."
            )
        return spots


class OtherProcesses:
    """Evaluation passes of a process whose children train: after them, and none before."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._evaluated_before = False

    def note_start(self) -> None:
        """Note that the script starts a process which may train, after what was evaluated."""
        self._evaluated_before |= self._loop.evaluation.was_validated

    def evaluated_after(self) -> list[Row]:
        """Return what was read of evaluation passes since the other processes have trained.

        Nothing if this one has evaluated before that, too: the passes would be mixed.
        """
        self._loop.decide(training=False)
        return [] if self._evaluated_before else self._loop.stepper.evaluated()
