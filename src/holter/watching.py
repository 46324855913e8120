"""Watch: attaches collectors to a live training, closes its steps, hands readings over."""

import functools
import os
import sys
import time
import traceback
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec

import torch
from torch import Tensor, nn
from torch.amp import GradScaler
from torch.optim import Optimizer
from torch.utils.data import DataLoader, RandomSampler

from holter import environment
from holter.collectors import STEP, Collector, Reading, all_collectors
from holter.collectors.moments import (
    AfterUpdate,
    BackwardBegins,
    BackwardEnds,
    BatchFetched,
    BeforeUpdate,
    Clipped,
    GradientsReady,
    Logged,
    Moment,
    ScalerStepped,
    SchedulerStepped,
    StepEnds,
    ValidationLoss,
)
from holter.collectors.roster import Roster, Subject
from holter.notices import tell
from holter.recording import Recorder, new_folder
from holter.signals import WATCH_TIME
from holter.tapping import LossCall, tap_everything

Models = nn.Module | Sequence[nn.Module] | Mapping[str, nn.Module]
Optimizers = Optimizer | Sequence[Optimizer] | Mapping[str, Optimizer]

_P = ParamSpec("_P")
_ALL_SAMPLED = 10  # first steps of which everything is read
_MOST_LOADERS = 16


def _shielded(
    method: Callable[Concatenate["Watch", _P], None],
) -> Callable[Concatenate["Watch", _P], None]:
    """What torch calls: never raises into training, counts its own time, is deaf once closed."""

    @functools.wraps(method)
    def guarded(self: "Watch", *args: _P.args, **kwargs: _P.kwargs) -> None:
        if self._closed or self._busy:
            return
        began = time.perf_counter()
        self._busy = True
        try:
            method(self, *args, **kwargs)
        except Exception as error:
            self._fail(method.__name__, error)
        finally:
            self._busy = False
            self._spent += time.perf_counter() - began

    return guarded


class Watch:
    """A recording in progress. Use it as a context manager, or call `close()`.

    A step runs from the first backward after one `optimizer.step()` to the first backward after
    the next. So `log(loss=...)` may stand on either side of `optimizer.step()`, accumulation is one
    step, evaluation is none, and two optimizers stepped after one backward share a step.
    """

    def __init__(
        self,
        recorder: Recorder,
        *,
        collectors: Iterable[Collector] | None = None,
        sample_every: int = 10,
        announce: bool = True,
    ) -> None:
        self._recorder = recorder
        self._sample_every = max(1, sample_every)
        # Whoever finds models by itself is asked before a backward, and told of new optimizers.
        self.before_backward: Callable[[], None] = lambda: None
        self.on_unknown_optimizer: Callable[[Optimizer], None] = lambda _: None
        self._collectors: dict[type, list[Collector]] = {}
        for collector in all_collectors() if collectors is None else collectors:
            for kind in collector.at:
                self._collectors.setdefault(kind, []).append(collector)
        self._roster = Roster()
        self._closed = self._busy = False
        self._process = os.getpid()
        self._readings: list[Reading] = []
        self._spent = 0.0
        self._in_step = False  # a backward or an update of the open step has been seen
        self._stepped: list[Subject] = []  # optimizers stepped in the open step
        self._read: set[Subject] = set()  # those whose gradients of the step were read
        self._scaled: list[tuple[Tensor, Tensor]] = []  # scaled losses and what they were
        self._scaler: Callable[[], GradScaler | None] = lambda: None
        self._unscaled: set[int] = set()
        self._undecided: list[LossCall] = []  # losses in eval mode with a graph: training or not?
        self._loaders: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self._modes: dict[int, bool] = {}
        self._notes: list[str] = []
        self._evaluated = self._validated = False
        self._handles: list[Any] = []
        self._handles += tap_everything(self)
        if announce:
            tell(f"recording to {self.path}")

    @property
    def path(self) -> Path:
        """The folder of the run."""
        return self._recorder.path

    @property
    def steps(self) -> int:
        """Number of steps recorded so far."""
        return self._recorder.steps

    def add(self, models: Models, optimizers: Optimizers) -> None:
        """Watch further models and optimizers; those of a mapping are named by its keys."""
        fresh = [
            (label, each)
            for label, each in _labelled(optimizers)
            if self._roster.subject_of(each) is None
        ]
        self._renew(self._roster.joined_by(_labelled(models), fresh))
        for _, optimizer in fresh:
            self._handles.append(optimizer.register_step_pre_hook(self._before_step))
            self._handles.append(optimizer.register_step_post_hook(self._after_step))

    @property
    def roster(self) -> Roster:
        """The models and optimizers that are watched."""
        return self._roster

    def log(
        self, *, loss: Tensor | float | None = None, val_loss: Tensor | float | None = None
    ) -> None:
        """File values under the open step, without waiting for a device."""
        given = {"loss": loss, "val_loss": val_loss}
        values = {
            name: torch.as_tensor(value, dtype=torch.float32).detach().mean()
            for name, value in given.items()
            if value is not None
        }
        self._logged(values)

    @_shielded
    def shielded(self, function: Callable[..., None], *arguments: Any) -> None:
        """Call a function as the watch calls its own: it cannot raise into training."""
        function(*arguments)

    def keep(self, handle: Any) -> None:
        """Remove this handle, too, when the watch closes."""
        self._handles.append(handle)

    def note(self, sentence: str) -> None:
        """Keep a sentence about what could not be seen; reports show it."""
        self._notes.append(sentence)

    def close(self, *, error: BaseException | None = None) -> None:
        """Write the open step and remove every hook; safe to call twice."""
        if self._closed or os.getpid() != self._process:
            return
        self._finish()
        self._closed = True
        for handle in reversed(self._handles):
            handle.remove()
        self._handles.clear()
        status = "finished"
        if error is not None and not _is_exit(error):
            status = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
            self._recorder.event(
                "exception", type=type(error).__name__, message=str(error), where=_where(error)
            )
        self._recorder.update_meta(notes=self._notes + self._blind_spots())
        self._recorder.close(status)

    def __enter__(self) -> "Watch":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close(error=error)

    # What torch tells: the methods of `tapping.Listener`, and the hooks of the optimizers.

    @_shielded
    def backward_begins(self, roots: Sequence[Tensor]) -> None:
        """Open a step if the last one has been updated."""
        self.before_backward()
        self._decide(training=self._is_evaluating())
        if self._stepped:
            self._end_step()
        self._read.clear()  # of micro-batches clipped one by one, the last reading counts
        scalars = tuple(self._without_scale(root) for root in roots if root.numel() == 1)
        opens, self._in_step = not self._in_step, True
        self._publish(BackwardBegins(scalars, opens, self._roster))
        self._scaled.clear()

    @_shielded
    def backward_ends(self) -> None:
        """Let collectors look at what backward left."""
        self._publish(BackwardEnds())

    @_shielded
    def clip_begins(self, parameters: Iterable[Tensor]) -> None:
        """Read gradients before they are clipped."""
        for subject in self._roster.subjects_holding(parameters):
            self._gradients_ready(subject)

    @_shielded
    def clip_ends(self, norm: Tensor | None, limit: float) -> None:
        """Keep what the script's clipping measured."""
        self._publish(Clipped(norm, limit))

    @_shielded
    def loss_scaled(self, scaler: GradScaler, loss: Tensor, scaled: Tensor) -> None:
        """Remember which loss a scaled loss stands for."""
        self._scaler = weakref.ref(scaler)
        self._scaled = [*self._scaled[-7:], (scaled, loss.detach())]

    @_shielded
    def gradients_unscaled(self, optimizer: Optimizer) -> None:
        """Gradients of this optimizer are free of the scale from here on."""
        self._unscaled.add(id(optimizer))

    @_shielded
    def scaler_stepped(self, optimizer: Optimizer) -> None:
        """A step that the optimizer's hooks did not see was skipped."""
        subject = self._roster.subject_of(optimizer)
        if subject is None:
            return
        skipped = subject not in self._stepped
        if skipped:
            self._gradients_ready(subject)
            self._stepped.append(subject)
            self._recorder.event("skipped step", optimizer=subject.label)
        scale = self._scale()
        if scale is not None:
            self._publish(ScalerStepped(scale, skipped))

    @_shielded
    def scheduler_stepped(self) -> None:
        """Count it; a scheduler steps itself once when it is made, before all training."""
        if self._recorder.steps or self._stepped:
            self._publish(SchedulerStepped())

    @_shielded
    def loss_computed(self, call: LossCall) -> None:
        """Tell the loss of a validation batch from one that is trained on."""
        if not call.has_graph and not torch.is_grad_enabled():
            self._validation_loss(call)
        elif call.has_graph and self._is_evaluating():
            detached = LossCall(call.function, call.loss.detach(), call.samples, call.summed, True)
            self._undecided.append(detached)

    @_shielded
    def loader_begins(self, loader: DataLoader[Any]) -> None:
        """Name a loader, and write down each pass over it."""
        label = self._loaders.get(loader)
        if label is None:
            number = len(set(self._loaders.values()))
            label = f"loader {number}" if number < _MOST_LOADERS else "other loaders"
            self._loaders[loader] = label
            self._recorder.event("loader", **_loader_facts(loader), loader=label)
        self._recorder.event("pass", loader=label)

    @_shielded
    def batch_fetched(self, loader: DataLoader[Any], batch: object, waited: float) -> None:
        """Keep size and wait of a batch."""
        label = self._loaders.get(loader)
        if label is not None:
            self._publish(BatchFetched(label, _samples(batch), waited))

    @_shielded
    def mode_changed(self, module: nn.Module) -> None:
        """Write down when a model goes from training to eval mode or back."""
        for model in self._roster.models:
            if model.module is module:
                self._evaluated |= not module.training
                if self._modes.get(id(module)) != module.training:
                    self._modes[id(module)] = module.training
                    self._recorder.event("mode", model=model.label, training=module.training)

    @_shielded
    def _before_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        subject = self._roster.subject_of(optimizer)
        if subject is None:
            return
        closure = _closure(args, kwargs) is not None
        # The same optimizer again without a backward, or a closure that will call backward itself.
        if subject in self._stepped or (closure and self._stepped):
            self._decide(training=False)
            self._end_step()
        step = self._recorder.step
        sampled = self._recorder.steps < _ALL_SAMPLED or step % self._sample_every == 0
        if sampled and self._roster.is_outdated():
            self._renew(self._roster.joined_by([], []))
            subject = self._roster.subject_of(optimizer) or subject
        if not closure:
            self._gradients_ready(subject)
        self._publish(BeforeUpdate(subject, optimizer, sampled, self._roster))

    @_shielded
    def _after_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        subject = self._roster.subject_of(optimizer)
        if subject is None:
            return
        if _closure(args, kwargs) is not None:
            self._gradients_ready(subject)
        self._in_step = True
        self._publish(AfterUpdate(subject))
        self._stepped.append(subject)

    @_shielded
    def parameters_joined(self, optimizer: Optimizer) -> None:
        """An optimizer is new, or has got another group."""
        if self._roster.subject_of(optimizer) is None:
            self.on_unknown_optimizer(optimizer)
        else:
            self._renew(self._roster.joined_by([], []))

    # The open step.

    def _renew(self, roster: Roster) -> None:
        """Go on with another roster; what was seen of the open step stays seen."""
        renewed = {subject.index: subject for subject in roster.subjects}
        self._stepped = [renewed.get(each.index, each) for each in self._stepped]
        self._read = {renewed.get(each.index, each) for each in self._read}
        self._roster = roster
        self._recorder.update_meta(seed=torch.initial_seed(), **_summary(roster))

    @_shielded
    def _logged(self, values: Mapping[str, Tensor]) -> None:
        self._publish(Logged(values))

    @_shielded
    def _finish(self) -> None:
        self._decide(training=False)
        if self._stepped:
            self._end_step()

    def _publish(self, moment: Moment) -> None:
        for collector in self._collectors.get(type(moment), ()):
            try:
                self._readings.extend(collector.read(moment))
            except Exception as error:
                self._collectors[type(moment)].remove(collector)
                self._fail(f"the collector {type(collector).__name__.lower()}", error)

    def _gradients_ready(self, subject: Subject) -> None:
        if subject in self._read:
            return
        self._read.add(subject)
        scale = None if id(subject.optimizer()) in self._unscaled else self._scale()
        self._publish(GradientsReady(subject, scale))

    def _end_step(self) -> None:
        self._publish(StepEnds(self._stepped))
        self._readings.append(Reading(WATCH_TIME, STEP, [self._spent]))
        self._spent = 0.0
        readings, self._readings = self._readings, []
        self._stepped, self._in_step = [], False
        self._read.clear()
        self._unscaled.clear()
        self._scaler = lambda: None
        self._recorder.write_step(readings)

    def _scale(self) -> Tensor | None:
        """The loss scale of the open step as a device tensor; None where none is in use."""
        scaler = self._scaler()
        if scaler is None or not scaler.is_enabled():
            return None
        device = self._roster.parameters[0].device if self._roster.parameters else "cpu"
        scale: Tensor = scaler.scale(torch.ones((), device=device))
        return scale

    def _without_scale(self, root: Tensor) -> Tensor:
        return next((loss for scaled, loss in self._scaled if scaled is root), root)

    def _is_evaluating(self) -> bool:
        return any(not model.module.training for model in self._roster.models)

    def _validation_loss(self, call: LossCall) -> None:
        self._validated = True
        with torch.no_grad():
            loss = call.loss.sum() / call.samples if call.summed else call.loss.mean()
        self._publish(ValidationLoss(call.function, loss, call.samples))

    def _decide(self, *, training: bool) -> None:
        """Settle the losses computed in eval mode: if training, the last of each was trained on."""
        calls, self._undecided = self._undecided, []
        last = {call.function: call for call in calls} if training else {}
        for call in calls:
            if last.get(call.function) is not call:
                self._validation_loss(call)

    # What went wrong, and what stayed unseen.

    def _blind_spots(self) -> list[str]:
        """What this training may have done that no tap can see."""
        spots = []
        if self._evaluated and not self._validated and self.steps:
            spots.append(
                "The model was evaluated, but no torch loss function was called while it was:"
                " validation losses computed by hand are not recorded."
            )
        return spots

    def _fail(self, where: str, error: Exception) -> None:
        trace = "".join(traceback.format_exception(error))
        self._recorder.event("holter failed", where=where, error=repr(error), trace=trace)
        sentence = f"{where} failed ({error!r}); training goes on without it"
        if sentence not in self._notes:
            self._notes.append(sentence)
            tell(sentence + ".")


def watch(
    model: Models,
    optimizer: Optimizers,
    path: str | Path | None = None,
    *,
    sample_every: int = 10,
    resume: bool = False,
    quiet: bool = False,
) -> Watch:
    """Record the training of `model` by `optimizer`; by default to a new folder in `holter-runs`.

    Several models or optimizers may be given as a list, or as a mapping of names. Signals that are
    dear to read are read on the first steps and on every `sample_every`-th. `resume` continues the
    run in `path`.
    """
    folder = Path(path) if path is not None else new_folder(Path(sys.argv[0]).stem or "run")
    rank = int(os.environ.get("RANK", "0"))
    recorder = Recorder(folder, rank=rank, meta=environment.describe(), resume=resume)
    made = Watch(recorder, sample_every=sample_every, announce=not quiet and rank == 0)
    made.add(model, optimizer)
    return made


def _labelled(things: Any) -> list[tuple[str, Any]]:
    if isinstance(things, Mapping):
        return list(things.items())
    if isinstance(things, nn.Module | Optimizer):
        return [("", things)]
    return [("", each) for each in things]


def _closure(args: Any, kwargs: Any) -> Any:
    """The closure given to `optimizer.step()`; hooks see the optimizer itself as first argument."""
    given = kwargs.get("closure")
    return given if given is not None else next((a for a in args if callable(a)), None)


def _samples(batch: object) -> int:
    """Length of the first tensor in a batch, whatever it is wrapped in; 0 where there is none."""
    if isinstance(batch, Tensor):
        return len(batch) if batch.dim() else 1
    parts = batch.values() if isinstance(batch, Mapping) else batch
    if isinstance(parts, str | bytes) or not isinstance(parts, Iterable):
        return 0
    return next((size for part in parts if (size := _samples(part))), 0)


def _loader_facts(loader: DataLoader[Any]) -> dict[str, Any]:
    try:
        batches = len(loader)
    except TypeError:  # an iterable dataset without a length
        batches = None
    return {
        "batches": batches,
        "batch_size": loader.batch_size,
        "workers": loader.num_workers,
        "shuffled": isinstance(loader.sampler, RandomSampler),
        "drop_last": loader.drop_last,
    }


def _summary(roster: Roster) -> dict[str, Any]:
    models = [
        {
            "name": model.label,
            "class": type(model.module).__name__,
            "parameters": sum(each.numel() for each in model.module.parameters()),
            "trainable": sum(e.numel() for e in model.module.parameters() if e.requires_grad),
            "mode_dependent_modules": len(model.mode_dependent),
        }
        for model in roster.models
    ]
    optimizers = [
        {"label": subject.label, "class": type(optimizer).__name__, "groups": len(subject.groups)}
        for subject in roster.subjects
        if (optimizer := subject.optimizer()) is not None
    ]
    parameters = {
        name: [list(each.shape), str(each.dtype).removeprefix("torch.")]
        for name, each in zip(roster.names, roster.parameters, strict=True)
    }
    return {"model": models, "optimizers": optimizers, "parameters": parameters}


def _is_exit(error: BaseException) -> bool:
    return isinstance(error, SystemExit) and error.code in (None, 0)


def _where(error: BaseException) -> str | None:
    frames = traceback.extract_tb(error.__traceback__)
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else None
