"""Watch: a recording in progress, from the first hook to the last record."""

import contextlib
import os
import sys
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, get_args

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.utils.data import DataLoader

from holter.record import environment
from holter.record.events import GradientsUnapplied, NotApplicable, OptimizerSeen
from holter.record.folders import new_folder
from holter.record.notices import tell
from holter.watching.blackbox.alarms import Alarm
from holter.watching.blackbox.box import BlackBox, NonfiniteError, OnNonfinite
from holter.watching.collectors import Collector, all_collectors
from holter.watching.collectors.hyperparameters import Hyperparameters
from holter.watching.collectors.lane import LightCollector
from holter.watching.collectors.optimizer_state import OptimizerState
from holter.watching.collectors.roster import Roster
from holter.watching.endings import ending
from holter.watching.frames import Chain
from holter.watching.listening.checkpoints import CheckpointListener
from holter.watching.listening.forward import ForwardListener
from holter.watching.listening.groups import GroupListener
from holter.watching.listening.unseen_updates import UnseenOptimizer, UnseenUpdates
from holter.watching.listening.updates import UpdateListener
from holter.watching.loop import Loop, OtherProcesses, Scout
from holter.watching.old_tasks import OldTasks, Task
from holter.watching.recorder import Recorder
from holter.watching.summaries import summary
from holter.watching.taps.autograd import tap_autograd, tap_derivatives
from holter.watching.taps.checkpoints import tap_checkpoints
from holter.watching.taps.clipping import tap_clipping
from holter.watching.taps.groups import tap_groups
from holter.watching.taps.loaders import tap_loaders
from holter.watching.taps.losses import tap_losses
from holter.watching.taps.modules import tap_modules
from holter.watching.taps.optimizers import tap_optimizers, tap_schedulers
from holter.watching.taps.pauses import tap_pauses
from holter.watching.taps.transfers import tap_transfers

Models = nn.Module | Sequence[nn.Module] | Mapping[str, nn.Module]
Optimizers = Optimizer | Sequence[Optimizer] | Mapping[str, Optimizer]
Named = Iterable[tuple[str, Tensor]]

_NO_SAMPLES = (
    "No samples are stored: the black box keeps no batches, and a failure cannot be replayed from"
    " this run."
)


class Watch:
    """A recording in progress. Use it as a context manager, or call `close()`."""

    def __init__(
        self,
        recorder: Recorder,
        *,
        collectors: Iterable[Collector | LightCollector] | None = None,
        budget: float | None = 0.01,
        announce: bool = True,
        black_box: bool = True,
        on_nonfinite: OnNonfinite = "record",
        capture_at: int | None = None,
        samples: bool = True,
        rank: int = 0,
        silence: float | None = None,
        also: Mapping[str, Task] | None = None,
    ) -> None:
        self._recorder = recorder
        self.at_close: list[Callable[[Path], object]] = []  # called with the folder of the run
        chosen = all_collectors() if collectors is None else collectors
        self._loop = Loop(recorder, chosen, budget=budget)
        self._updates = UpdateListener(self._loop)
        self._optimizers: weakref.WeakSet[Optimizer] = weakref.WeakSet()  # that were recorded
        self._old_tasks = OldTasks(self._loop, also) if also else None
        if self._old_tasks is not None:
            self._loop.streak.is_allowed = False  # they are evaluated between steps
            self._loop.at_epoch.append(self._old_tasks.mark)
        self._unseen = UnseenUpdates(self._loop, self._updates, self._tapped)
        if black_box or on_nonfinite != "record":
            self._loop.black_box = BlackBox(
                recorder.path,
                about=lambda: recorder.meta,
                share=budget,
                event=recorder.event,
                note=self.note,
                on_nonfinite=on_nonfinite,
                capture_at=capture_at,
                rank=rank,
                announce=announce,
                samples=samples,
            )
            recorder.see = self._loop.black_box.see
            recorder.see_loss = self._loop.black_box.see_loss
        if not samples:
            self.note(_NO_SAMPLES)
        forward = self._forward = ForwardListener(self._loop)
        self._is_on_gpu = False  # copies to it and from it are tapped
        self._group = GroupListener(self._loop, silence=silence)
        self.other_processes = OtherProcesses(self._loop)
        self._handles: list[Any] = [
            *tap_groups(self._group),
            *tap_checkpoints(CheckpointListener(self._loop)),
            *tap_loaders(self._loop.interludes),
            *tap_modules(forward),
            *tap_losses(forward),
            # The first one ends a step before another begins.
            *tap_autograd(self._unseen, self._loop.streak, minds_grad=self.trains_by_hand),
            *tap_derivatives(forward),
            *tap_clipping(self._loop.interludes),
            *tap_optimizers(self._updates),
            *tap_schedulers(self._loop.interludes),
            *tap_pauses(forward),
        ]
        if announce:
            tell(f"recording to {self.path}")

    @property
    def path(self) -> Path:
        """The folder of the run."""
        return self._recorder.path

    @property
    def is_open(self) -> bool:
        """Whether it records, in this process."""
        shield = self._loop.shield
        return not shield.is_closed and not shield.home.is_left

    @property
    def steps(self) -> int:
        """Number of steps recorded so far."""
        return self._recorder.steps

    @property
    def coming_step(self) -> int:
        """Number of the step whose update is still to come."""
        self._unseen.look()
        return self._loop.stepper.coming_step

    @property
    def has_trained(self) -> bool:
        """Whether weights were updated, in a step that may still be open."""
        self._unseen.look()
        return self._loop.stepper.has_trained

    def trains_by_hand(self) -> bool:
        """Whether there is no torch optimizer: whatever gives gradients may be training."""
        made = (each for each in self._updates.made if not isinstance(each, UnseenOptimizer))
        return not self._unseen.is_deaf and next(made, None) is None

    @property
    def backwards(self) -> int:
        """Number of calls of backward."""
        self._loop.streak.settle()
        return max(self._unseen.backwards, self._updates.backwards)

    @property
    def roster(self) -> Roster:
        """The models and optimizers that are watched."""
        return self._loop.stepper.roster

    def add(self, models: Models, optimizers: Optimizers) -> None:
        """Watch further models and optimizers; those of a mapping are named by its keys."""
        if self._loop.shield.is_closed:
            return
        fresh = [
            (label, optimizer)
            for label, optimizer in labelled(optimizers)
            if self.roster.subject_of(optimizer) is None
        ]
        self._loop.join(self.roster.joined_by(labelled(models), fresh))
        for _, optimizer in fresh:
            self._handles += (
                optimizer.register_step_pre_hook(self._loop.streak.before_step),
                optimizer.register_step_post_hook(self._loop.streak.after_step),
            )
            if self._old_tasks is not None:
                before = self._old_tasks.before_step
                self._handles.append(optimizer.register_step_pre_hook(before))
            weakref.finalize(optimizer, self._loop.let_go).atexit = False
            self._note_optimizer(optimizer)
        if not self._is_on_gpu and self._loop.shield.is_on_cuda:
            self._is_on_gpu = True
            self._handles += tap_transfers(self._forward)
        self._recorder.update_meta(seed=torch.initial_seed(), **summary(self.roster))

    def replace(self, models: Sequence[nn.Module], fresh: Sequence[nn.Module]) -> None:
        """Watch models that have taken the place of others in the training."""
        self._loop.renew(self.roster.without(models))
        self.add(fresh, [])

    def _note_optimizer(self, optimizer: Optimizer) -> None:
        """Record an optimizer once; of two for the same parameters each may be added in turn."""
        subject = self.roster.subject_of(optimizer)
        if subject is not None and optimizer not in self._optimizers:
            self._optimizers.add(optimizer)
            self._recorder.event(OptimizerSeen(subject.label, type(optimizer).__name__))

    def follow(self, models: Models, families: Iterable[Named], *, by: str) -> None:
        """Watch families of parameters that `by` updates without a torch optimizer."""
        optimizers = [UnseenOptimizer(family, by=by) for family in families]
        self.add(models, optimizers)
        for optimizer in optimizers:
            self._unseen.follow(optimizer)

    def release(self) -> None:
        """Stop following parameters, because a torch optimizer was made."""
        if self._unseen.release() and not self.steps:
            self._loop.renew(Roster())  # what was followed was no training

    def _tapped(self, taps: Sequence[Any]) -> None:
        self._handles += taps

    def send(self, scout: Scout) -> None:
        """Let a scout find models and optimizers by itself."""
        self._loop.scout = scout
        hook: Any = self._updates.before_any_step
        self._handles.append(register_optimizer_step_pre_hook(hook))

    def log(
        self,
        *,
        loss: Tensor | float | None = None,
        val_loss: Tensor | float | None = None,
        **metrics: Tensor | float,
    ) -> None:
        """Record values for the open step, without waiting for a device.

        Metrics such as `val_accuracy` are compared with those that holter computes itself.
        """
        given = {"loss": loss, "val_loss": val_loss, **metrics}
        self._loop.log(
            {
                name: torch.as_tensor(value, dtype=torch.float32).detach().mean()
                for name, value in given.items()
                if value is not None
            }
        )

    def hear_loaders(self, listener: Callable[[DataLoader[Any], Chain, bool], None]) -> None:
        """Call a listener when a pass over a loader begins: where, and whether in evaluation."""
        self._loop.at_loader.append(listener)

    def splits(self) -> tuple[Chain | None, list[Chain]]:
        """Return where passes over training data were begun, and those over other data since."""
        return self._loop.passes.splits()

    def note(self, sentence: str) -> None:
        """Add a sentence about what could not be recorded; reports show it."""
        self._loop.shield.notes.append(sentence)

    def capture(self) -> Path | None:
        """Write the last steps and the state before them to the run, for `holter try replay`.

        Return the folder, or None if the black box is off or still writing.
        """
        box, alarm = self._loop.black_box, Alarm("asked", self._recorder.step, "asked for")
        return None if box is None else box.capture(alarm)

    def paused(self) -> contextlib.AbstractContextManager[None]:
        """Record nothing while it lasts: for steps that are no part of the training."""
        return self._loop.paused()

    def close(self, *, error: BaseException | None = None) -> None:
        """Write the open step and remove every hook; safe to call twice."""
        if not self.is_open:
            return
        self._unseen.look()
        if self._old_tasks is not None:
            self._old_tasks.evaluate()
        self._loop.finish()
        subjects = self.roster.subjects
        if subjects and self._updates.backwards and not self._loop.stepper.has_trained:
            self._recorder.event(GradientsUnapplied(self._updates.backwards, subjects[0].label))
        for updater in self._unseen.updaters:
            why = (
                f"{updater} updates the weights itself, without a torch optimizer: learning rate"
                " and optimizer state are not recorded."
            )
            self.note(why)
            names = tuple(each.name for each in (*Hyperparameters.emits, *OptimizerState.emits))
            self._recorder.event(NotApplicable("watch", why.rstrip("."), names))
        box = self._loop.black_box
        if box is not None:
            if isinstance(error, Exception) and not isinstance(error, NonfiniteError):
                sentence = f"the training ended with {type(error).__name__}"
                box.capture(Alarm("exception", self._recorder.step, sentence))
            box.close()
        self._loop.shield.is_closed = True
        self._group.close()
        for handle in reversed(self._handles):
            handle.remove()
        self._handles.clear()
        status, events = ending(error, self.roster, self._loop.shield.fail)
        for event in events:
            self._recorder.event(event)
        self._recorder.update_meta(notes=(*self._loop.shield.notes, *self._loop.blind_spots()))
        self._recorder.close(status)
        self._loop.black_box = self._recorder.see = self._recorder.see_loss = None
        self._loop.renew(Roster())
        for finish in self.at_close:
            finish(self.path)

    def __enter__(self) -> "Watch":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close(error=error)


def watch(
    model: Models,
    optimizer: Optimizers,
    out: str | Path | None = None,
    *,
    budget: float | None = 0.01,
    resume: bool = False,
    quiet: bool = False,
    black_box: bool = True,
    on_nonfinite: OnNonfinite = "record",
    silence: float | None = None,
    also: Mapping[str, Task] | None = None,
    samples: bool = True,
    to: str | None = None,
) -> Watch:
    """Record the training of `model` by `optimizer` to the folder `out`.

    By default that is a new folder in `holter-runs`; `resume` continues the run in `out`. Several
    models or optimizers may be given as a list, or as a mapping of names; give none (`[]`) for
    weights that the training updates without a torch optimizer. Holter aims at the share `budget`
    of the training time by sampling expensive signals less often; short runs are read whole, at a
    cost of at most 5 % of any run longer than forty seconds. `budget=None` reads everything at
    every step.

    The black box keeps the last steps and snapshots of the state, and writes them to the run when
    something breaks. When gradients are not finite, `on_nonfinite` can also "skip" the step,
    "raise" a NonfiniteError or "stop" the training, each before the weights are updated; then every
    step waits for its gradients.

    In a process group of torch.distributed, a process that does nothing for `silence` seconds
    writes its stack to the run; by default that depends on how long its steps take.

    `also` names tasks that the model should not forget, each with a function that returns its loss,
    or with batches of inputs and targets. They are evaluated before the first step, after each
    epoch and at the end.

    Captures of the black box hold the batches of the last steps. With `samples=False` none are
    written: the run holds statistics and salted hashes only.

    `to` names a tracker that is sent signals, findings and the report when the watch is closed:
    tensorboard, wandb, mlflow or trackio.
    """
    if budget is not None and not 0 < budget <= 1:
        raise ValueError(f"budget is a share of the time between 0 and 1, or None; not {budget}")
    if on_nonfinite not in get_args(OnNonfinite):
        raise ValueError(f"on_nonfinite is one of {get_args(OnNonfinite)}, not {on_nonfinite!r}")
    folder = Path(out) if out is not None else new_folder(Path(sys.argv[0]).stem or "run")
    rank = int(os.environ.get("RANK", "0"))
    recorder = Recorder(folder, rank=rank, environment=environment.describe(), resume=resume)
    made = Watch(
        recorder,
        budget=budget,
        announce=not quiet and rank == 0,
        black_box=black_box,
        on_nonfinite=on_nonfinite,
        samples=samples,
        rank=rank,
        silence=silence,
        also=also,
    )
    if to is not None and rank == 0:
        # By name, since trackers lie above the watch and are optional.
        made.at_close.append(import_module("holter.integrations.trackers").sender(to))
    made.add(model, optimizer)
    if not labelled(optimizer):
        families = [module.named_parameters() for _, module in labelled(model)]
        made.follow([], families, by="The script")
    return made


def labelled(things: Any) -> list[tuple[str, Any]]:
    """Return each of some models or optimizers with its name, which may be empty."""
    if isinstance(things, Mapping):
        return list(things.items())
    if isinstance(things, nn.Module | Optimizer):
        return [("", things)]
    return [("", thing) for thing in things]
