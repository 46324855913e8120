"""After a script has ended: its model and its data sets are examined, as preflight would.

What needs neither a loss nor a training step is measured on what the script leaves: whether samples
of a batch mix, whether later inputs leak, what the data sets share. Nothing of the script runs any
more, so there is nothing that this could change.
"""

import contextlib
import copy
import io
import os
import signal
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from holter.lab.batches import cloned, tensors
from holter.record.signals import Signal
from holter.watching.collectors import Reading
from holter.watching.collectors.calls import Calls, is_compiled
from holter.watching.collectors.inputs import roots
from holter.watching.collectors.moments import (
    AfterUpdate,
    BackwardBegins,
    Closing,
    Depth,
    Joined,
    LossComputed,
)
from holter.watching.collectors.roster import Roster

if TYPE_CHECKING:
    from holter.lab.experiments import Experiment
    from holter.lab.setup import Setup
    from holter.watching.frames import Chain
    from holter.watching.watch import Watch

_KEPT = 2**28  # bytes of a model that is kept after the script has dropped it
_CALL = 2**26  # bytes of the arguments of one call
_TRIES = 6  # steps in which a call of a whole model is looked for
_LOADERS = 4  # that are kept
_SHARE, _LEAST, _MOST = 0.02, 0.5, 5.0  # of the script's time, and seconds, that this may take
_SAMPLES = 1000  # of each data set

_Arguments = tuple[tuple[Any, ...], dict[str, Any]]
_Moment = Joined | AfterUpdate | LossComputed | BackwardBegins | Closing


@dataclass(frozen=True, slots=True)
class _Call:
    """A call of a model in training, and of the loss function after it.

    `repeats` if a later step gives the model the same again, as all nodes of a graph; None if there
    was no later one.
    """

    arguments: _Arguments
    loss: tuple[str, dict[str, Any]] | None
    repeats: bool | None = None


class Keepsake:
    """Keeps a model, one of its calls in training and the loaders until the script has ended.

    A model of moderate size is kept even if the script drops it, others only as long as it lives.
    It listens to the first steps alone.
    """

    emits: ClassVar[tuple[Signal, ...]] = ()
    at: ClassVar[tuple[type, ...]] = (Joined, AfterUpdate, LossComputed, BackwardBegins, Closing)
    depth: ClassVar[Depth] = Depth.FULL
    wakes_at: ClassVar[tuple[type, ...]] = ()

    def __init__(self) -> None:
        self.declined: list[str] = []
        self.call: _Call | None = None
        self._model: nn.Module | weakref.ref[nn.Module] | None = None
        self._calls: Calls[str] = Calls(self._heard, self._returned)
        self._tries = _TRIES
        self._found: tuple[nn.Module, _Arguments] | None = None
        self._loss: tuple[str, dict[str, Any]] | None = None
        self._loaders: dict[tuple[Chain, bool], DataLoader[Any]] = {}

    @property
    def spent(self) -> float:
        """Seconds inside the hooks, which no moment sees."""
        return self._calls.spent

    @property
    def model(self) -> nn.Module | None:
        """The model that was called, if it is still there."""
        return self._model() if isinstance(self._model, weakref.ref) else self._model

    def loader_begins(self, loader: DataLoader[Any], chain: "Chain", aside: bool) -> None:
        """Keep a copy in the place of the loader that was used there before.

        Not the loader itself: the recording tells from its end that another takes its place.
        """
        self._loaders.pop((chain, aside), None)
        twin = copy.copy(loader)
        twin.__dict__["_iterator"] = None  # and its workers
        self._loaders[chain, aside] = twin
        if len(self._loaders) > _LOADERS:
            del self._loaders[next(iter(self._loaders))]

    def loaders(self, training: "Chain | None", others: Iterable["Chain"]) -> dict[str, Any]:
        """The loaders of training and of validation, as far as they are known."""
        found = {} if training is None else {"train": self._loaders.get((training, False))}
        aside = (self._loaders.get((chain, True)) for chain in others)
        found["valid"] = next((each for each in aside if each is not None), None)
        return {name: loader for name, loader in found.items() if loader is not None}

    def read(self, moment: _Moment) -> Iterable[Reading]:
        """Listen to the calls of a step until one of a whole model was heard."""
        if not self._tries:
            return ()
        if isinstance(moment, LossComputed):
            self._loss = moment.function, dict(moment.arguments)
        elif isinstance(moment, BackwardBegins):
            if moment.opens_step and self._calls.listens:
                self._keep()
        else:
            self._forget()
            if isinstance(moment, Closing):
                return ()
            depth = moment.depth if isinstance(moment, Joined) else moment.next_depth
            if depth >= self.depth:
                self._listen(moment.roster)
        return ()

    def _listen(self, roster: Roster) -> None:
        if not any(is_compiled(model.module) for model in roster.models):
            self._calls.know(roots(roster))
            self._calls.listen()

    def _forget(self) -> None:
        self._calls.stop()
        self._found = self._loss = None

    def _heard(self, _: str, module: nn.Module, __: Any) -> bool:
        return not torch.is_grad_enabled() or not module.training or self._found is not None

    def _returned(self, _: str, module: nn.Module, arguments: tuple[Any, Any], __: Any) -> None:
        if self._found is None and _bytes(arguments) <= _CALL:
            self._found = module, cloned(arguments)

    def _keep(self) -> None:
        found, loss = self._found, self._loss
        self._forget()
        self._tries -= 1
        if found is None:
            return
        model, arguments = found
        if self.call is not None:
            self.call = replace(self.call, repeats=_are_equal(arguments, self.call.arguments))
            self._tries = 0
            return
        small = _bytes(list(model.parameters())) <= _KEPT
        self._model = model if small else weakref.ref(model)
        self.call = _Call(arguments, loss and (loss[0], cloned(loss[1])))


def examine(watch: "Watch", keepsake: Keepsake, path: Path, *, seconds: float) -> None:
    """Make the experiments that need no training step, and add them to the run.

    `seconds` is how long the script took. What cannot be made is noted in the run as such.
    """
    from holter.lab.experiments.augmentation import augmentation
    from holter.lab.experiments.causality import causality
    from holter.lab.experiments.data import data
    from holter.lab.experiments.padding import padding
    from holter.lab.experiments.sample_mixing import sample_mixing
    from holter.lab.inapplicable import InapplicableError
    from holter.lab.writing import Lab
    from holter.record.events import ExperimentMade, NotApplicable

    limit = min(max(_SHARE * seconds, _LEAST), _MOST)
    model = keepsake.model
    if model is None or keepsake.call is None:
        return
    setup = _setup(model, keepsake.call, keepsake.loaders(*watch.splits()))
    trained = {"steps": 0}  # none before the measurement
    reading = {"samples": _SAMPLES, "seconds": limit / 4, "shown": 0}
    planned: list[tuple[Experiment, dict[str, Any]]] = [(causality, trained), (padding, trained)]
    if "train" in setup.loaders or keepsake.call.repeats is False:
        # Rows that are the same at every step may be linked, as the nodes of a graph are.
        planned.insert(0, (sample_mixing, trained))
    if setup.loaders:
        planned += [(data, reading), (augmentation, {"seconds": limit / 8, "workers": False})]
    until = time.perf_counter() + limit
    with Lab(path) as lab, _quiet(), _at_most(2 * limit + 1.0):
        for experiment, options in planned:
            name, began = experiment.name, time.perf_counter()
            if began > until:
                break
            signals = tuple(each.name for each in experiment.emits)
            try:
                experiment.function(setup, lab, **options)
            except InapplicableError as reason:
                lab.event(NotApplicable(name, str(reason), signals))
            except (Exception, _LateError) as error:  # of the script's own code, most likely
                why = f"it failed after the script had ended ({type(error).__name__})"
                lab.event(NotApplicable(name, why, signals))
            lab.event(ExperimentMade(name, time.perf_counter() - began))


def _setup(model: nn.Module, call: _Call, loaders: dict[str, Any]) -> "Setup":
    """A setup whose step calls the model and the loss function as the training did."""
    from holter.lab.setup import Setup

    def loss(model: nn.Module, batch: Any) -> Tensor:
        made = model(*batch["args"], **batch["kwargs"])
        value = next((each.float().mean() for each in tensors(made)), torch.zeros(()))
        if call.loss is not None:
            name, arguments = call.loss
            getattr(nn.functional, name)(**arguments)  # for those that look for its arguments
        return value

    args, kwargs = call.arguments
    batch = {"args": args, "kwargs": kwargs}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    valid = loaders.get("valid")
    setup = Setup.of(model, optimizer, loss, [batch], valid=valid)
    return replace(setup, loaders=loaders)


class _LateError(BaseException):
    """The time is over; no `except Exception` of a script may catch it."""


@contextlib.contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """Raise _LateError after so many seconds, where signals can do that."""
    if (
        not hasattr(signal, "setitimer")
        or threading.current_thread() is not threading.main_thread()
    ):
        yield
        return

    def late(*_: object) -> None:
        raise _LateError

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    except _LateError:  # between two experiments
        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without what a model or a data set prints."""
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
        warnings.catch_warnings(action="ignore"),
    ):
        yield


def _are_equal(one: _Arguments, other: _Arguments) -> bool:
    pairs = zip(tensors(one), tensors(other), strict=False)
    return all(a.shape == b.shape and torch.equal(a, b) for a, b in pairs)


def _bytes(value: Any) -> int:
    return sum(each.numel() * each.element_size() for each in tensors(value))


def is_alone() -> bool:
    """Whether this process trains by itself: others would wait for calls that they do not make."""
    distributed = sys.modules.get("torch.distributed")
    grouped = (
        distributed is not None and distributed.is_available() and distributed.is_initialized()
    )
    return int(os.environ.get("WORLD_SIZE", "1")) == 1 and not grouped
