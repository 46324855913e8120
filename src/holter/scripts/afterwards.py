"""After a script has ended: its model and its data sets are examined, as preflight would.

What needs neither a loss nor a training step is measured on what the script leaves: whether samples
of a batch mix, whether later inputs leak, what the data sets share. Weights, statistics, modes and
random numbers are put back: what the script has registered for its exit finds them as it left them.
"""

import contextlib
import io
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from holter.lab.batches import tensors
from holter.lab.experiments import Experiment
from holter.lab.experiments.augmentation import augmentation
from holter.lab.experiments.baseline import baseline
from holter.lab.experiments.causality import causality
from holter.lab.experiments.data import compare_rows, data
from holter.lab.experiments.eval_dropout import eval_dropout
from holter.lab.experiments.eval_gap import eval_gap
from holter.lab.experiments.gradient_paths import gradient_paths
from holter.lab.experiments.input_use import input_use
from holter.lab.experiments.padding import padding
from holter.lab.experiments.pairing import measure, pairing
from holter.lab.experiments.sample_mixing import sample_mixing
from holter.lab.inapplicable import InapplicableError
from holter.lab.setup import Setup
from holter.lab.state import State
from holter.lab.writing import Lab
from holter.record.events import ExperimentMade, NotApplicable
from holter.scripts.held_out import rows_setup
from holter.scripts.keepsake import Keepsake, TrainingCall
from holter.scripts.rows import ROLES
from holter.scripts.running_statistics import measured as running_statistics
from holter.scripts.scores import scored, scores_of
from holter.scripts.twins import compared

if TYPE_CHECKING:
    from holter.watching.watch import Watch

# Of the script's time, and seconds, that the data sets and the model may take each. Simple models
# may take what these two leave, and at least what they need: whether there is a comparison must not
# depend on how busy a machine is.
_SHARE, _LEAST, _MOST = 0.02, 0.5, 5.0
_SAMPLES = 1000  # of each data set
_BASELINE_ROWS = 1200
_SIMPLE_SECONDS = 0.5  # in which simple models can be fitted

_Planned = Iterator[tuple[Experiment, Callable[[Lab], None]]]


def examine(watch: "Watch", keepsake: Keepsake, path: Path, *, seconds: float) -> None:
    """Make the experiments that need no training step, and add them to the run.

    `seconds` is how long the script took. What cannot be made is noted in the run as such.
    """
    model, call = keepsake.model, keepsake.call
    if model is None or call is None:
        return
    limit = min(max(_SHARE * seconds, _LEAST), _MOST)
    setup = _setup(model, call, keepsake.loaders(*watch.splits()))
    with Lab(path) as lab, _quiet(), _restored(setup):
        if keepsake.initial is not None:
            for comparison in compared(model, keepsake.initial, keepsake.copies):
                lab.event(comparison)
        for name, module in model.named_modules():
            module.training = name in call.training
        _compare_statistics(model, call, lab, limit)
        given = _with_rows(setup, call, keepsake)
        began = time.thread_time()
        for planned in (_of_data(given, limit), _planned(setup, call, limit)):
            _make_all(planned, lab, limit)
        left = max(began + 2 * limit - time.thread_time(), _SIMPLE_SECONDS)
        _make_all(_compared(setup, call, keepsake, left), lab, left)


def _compare_statistics(model: nn.Module, call: TrainingCall, lab: Lab, limit: float) -> None:
    """Compare running statistics first: whatever calls the model in train mode updates them."""
    state = {name: each.clone() for name, each in model.named_buffers()}
    with _at_most(limit + 0.5), contextlib.suppress(Exception):  # of the script's own code
        for comparison in running_statistics(model, call.arguments):
            lab.event(comparison)
    for name, each in model.named_buffers():
        each.copy_(state[name])


def _make_all(planned: _Planned, lab: Lab, limit: float) -> None:
    until = time.thread_time() + limit
    with _at_most(limit + 0.5):
        for experiment, make in planned:
            if time.thread_time() > until:
                break
            _make(experiment, make, lab)


def _with_rows(setup: Setup, call: TrainingCall, keepsake: Keepsake) -> Setup:
    """Return a setup of the rows that the model was given, where no loader delivers any."""
    rows = {} if setup.loaders else keepsake.rows.batches()
    if not rows or keepsake.model is None:
        return setup
    given = _setup(keepsake.model, replace(call, loss=None), {})
    return replace(given, train=rows["train"], valid=rows.get("valid"), roles=ROLES)


def _make(experiment: Experiment, make: Callable[[Lab], None], lab: Lab) -> None:
    """Make an experiment; one that fails does so in the script's own code, most likely."""
    began = time.perf_counter()
    name, signals = experiment.name, tuple(each.name for each in experiment.emits)
    try:
        make(lab)
    except InapplicableError as reason:
        lab.event(NotApplicable(name, str(reason), signals))
    except _LateError:
        lab.event(
            NotApplicable(name, "it did not finish in time after the script had ended", signals)
        )
    except (Exception, SystemExit) as error:
        why = f"it failed after the script had ended ({type(error).__name__})"
        lab.event(NotApplicable(name, why, signals))
    lab.event(ExperimentMade(name, time.perf_counter() - began))


def _of_data(setup: Setup, limit: float) -> _Planned:
    """Read the data sets first: a model that takes long must not leave no time for them."""
    if setup.loaders:
        yield augmentation, partial(augmentation.function, setup, seconds=limit / 8, workers=False)
        some = {"samples": _SAMPLES, "seconds": limit / 2, "shown": 0}
        yield data, partial(data.function, setup, **some)
    elif setup.roles is ROLES:
        yield data, partial(compare_rows, setup, samples=_SAMPLES, seconds=limit / 2)


def _planned(setup: Setup, call: TrainingCall, limit: float) -> _Planned:
    if call.loss is not None:
        function, arguments = call.loss
        given = (call.arguments, call.output, function, arguments)
        yield pairing, lambda lab: measure(lab, *given)
    # Rows that are the same at every step may be linked, as the nodes of a graph are.
    if "train" in setup.loaders or call.varies:
        yield sample_mixing, partial(sample_mixing.function, setup, steps=0)
        yield input_use, partial(input_use.function, setup, steps=0, seconds=limit / 4)
    if call.loss is not None and scores_of(call.output, _loss_input(call)) is not None:
        before = float(getattr(nn.functional, call.loss[0])(**call.loss[1]).detach().mean())
        yield eval_gap, partial(eval_gap.function, setup, steps=0, passes=0, start=before)
    yield eval_dropout, partial(eval_dropout.function, setup)
    yield causality, partial(causality.function, setup, steps=0)
    yield padding, partial(padding.function, setup, steps=0)
    predictions = scored(call.output, _loss_input(call))
    if predictions is not None:
        some = {"output": predictions, "seconds": limit / 4}
        yield gradient_paths, partial(gradient_paths.function, setup, **some)


def _compared(setup: Setup, call: TrainingCall, keepsake: Keepsake, seconds: float) -> _Planned:
    """Fit simple models last: they need the most time, and the least of the script."""

    def make(lab: Lab) -> None:
        whole = rows_setup(setup, setup.model, call, keepsake.rows, seconds=0.3 * seconds)
        baseline.function(whole, lab, rows=_BASELINE_ROWS, seconds=0.7 * seconds)

    yield baseline, make


def _setup(model: nn.Module, call: TrainingCall, loaders: dict[str, Any]) -> Setup:
    """A setup whose step calls the model and the loss function as the training did."""
    scores = scores_of(call.output, _loss_input(call))

    def loss(model: nn.Module, batch: Any) -> Tensor:
        made = model(*batch["args"], **batch["kwargs"])
        if call.loss is None:
            return next((each.float().mean() for each in tensors(made)), torch.zeros(()))
        name, arguments = call.loss
        given = arguments if scores is None else {**arguments, "input": scores(made)}
        value: Tensor = getattr(nn.functional, name)(**given)
        return value

    args, kwargs = call.arguments
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    batch = {"args": args, "kwargs": kwargs}
    setup = Setup.of(model, optimizer, loss, [batch], valid=loaders.get("valid"))
    count, shuffled = call.samples or (None, False)
    return replace(
        setup, loaders=loaders, roles=call.roles, samples=count, samples_shuffled=shuffled
    )


def _loss_input(call: TrainingCall) -> Any:
    return None if call.loss is None else call.loss[1].get("input")


class _LateError(BaseException):
    """The time is over; no `except Exception` of a script may catch it."""


@contextlib.contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """Raise _LateError after so many seconds, where signals can do that.

    Seconds of this thread's work, or three times as many in all: what is found must not depend on
    what else a machine does.
    """
    if (
        not hasattr(signal, "setitimer")
        or threading.current_thread() is not threading.main_thread()
    ):
        yield
        return
    worked, waited = time.thread_time() + seconds, time.perf_counter() + 3 * seconds

    def look(*_: object) -> None:
        if time.thread_time() > worked or time.perf_counter() > waited:
            raise _LateError

    before = signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, seconds, seconds / 4)
    try:
        yield
    except _LateError:  # between two experiments
        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def _restored(setup: Setup) -> Iterator[None]:
    """Put everything back that a training step may change."""
    state = State(setup)
    try:
        yield
    finally:
        state.restore()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without what a model or a data set prints."""
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
        warnings.catch_warnings(action="ignore"),
    ):
        yield


def is_alone() -> bool:
    """Whether this process trains by itself: others would wait for calls that they do not make."""
    distributed = sys.modules.get("torch.distributed")
    grouped = (
        distributed is not None and distributed.is_available() and distributed.is_initialized()
    )
    return int(os.environ.get("WORLD_SIZE", "1")) == 1 and not grouped
