"""Transformers: `Trainer(callbacks=[HolterCallback()])`.

The Trainer logs means over many steps, from which `logging_nan_inf_filter` has removed NaN; the run
holds the loss of every step as it was.
"""

import weakref
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor, nn
from transformers import Trainer, TrainerCallback

from holter.integrations._session import Session, ended_by_exceptions, unwrapped
from holter.lab.batches import changed
from holter.lab.setup import KnowsSetup, Setup
from holter.record.errors import HolterError


class HolterCallback(TrainerCallback, KnowsSetup):
    """Records the training of a Trainer, and prints the diagnosis at its end.

    Takes the options of `holter.watch`; with `show=False` the report is not printed. The run is in
    the folder `path`. An exception ends it, Ctrl-C included: a Trainer has no hook for them, so
    that `Trainer.train` is wrapped.
    """

    def __init__(self, out: str | Path | None = None, *, show: bool = True, **options: Any) -> None:
        self._session = Session(out, show=show, **options)
        self._trainer: weakref.ref[Any] | None = None  # that trains, or has trained last

    @property
    def path(self) -> Path | None:
        """The folder of the run, once training has begun."""
        return self._session.path

    def on_train_begin(self, args: Any, state: Any, control: Any, **objects: Any) -> None:  # noqa: ARG002
        """Open the watch: the optimizer exists from here on."""
        self._session.begin(objects["model"], [objects["optimizer"]])

    def on_log(self, args: Any, state: Any, control: Any, **objects: Any) -> None:  # noqa: ARG002
        """Record the loss that the Trainer logs: it may hide NaN."""
        logged = (objects.get("logs") or {}).get("loss")
        if isinstance(logged, float | int | Tensor):
            self._session.log(loss=logged)

    def on_train_end(self, args: Any, state: Any, control: Any, **objects: Any) -> None:  # noqa: ARG002
        """Close the watch."""
        self._session.end()

    def training_setup(self) -> Setup:
        """Return the training of the Trainer that has this callback; it must have begun."""
        trainer = None if self._trainer is None else self._trainer()
        if trainer is None:
            raise HolterError("The Trainer has not started training: use `setup_of(trainer)`.")
        return replace(setup_of(trainer), aside=self._session.aside)


def _of(trainer: Any) -> list[HolterCallback]:
    callbacks = trainer.callback_handler.callbacks
    return [callback for callback in callbacks if isinstance(callback, HolterCallback)]


def _sessions(trainer: Any, *_: Any, **__: Any) -> Iterator[Session]:
    for callback in _of(trainer):
        yield callback._session  # noqa: SLF001


def _begins(trainer: Any, *_: Any, **__: Any) -> None:
    for callback in _of(trainer):
        callback._trainer = weakref.ref(trainer)  # noqa: SLF001


ended_by_exceptions(Trainer, "train", _sessions, begins=_begins)


def setup_of(trainer: Any) -> Setup:
    """Return the training of a Trainer as a setup for experiments.

    The loss is that of `trainer.compute_loss`. Experiments leave the Trainer as it is.
    """
    model, arguments = trainer.model, trainer.args
    optimizer = unwrapped(trainer.optimizer or trainer.create_optimizer())

    def loss(model: nn.Module, batch: Any) -> Tensor:
        inputs = changed(dict(batch), lambda tensor: tensor.to(arguments.device))
        with trainer.accelerator.autocast():
            computed: Tensor = trainer.compute_loss(model, inputs)
        return computed

    made = Setup.of(
        model,
        optimizer,
        loss,
        trainer.get_train_dataloader(),
        valid=None if trainer.eval_dataset is None else trainer.get_eval_dataloader(),
        scheduler=trainer.lr_scheduler,
        max_norm=arguments.max_grad_norm or None,
    )
    return replace(made, accumulation=arguments.gradient_accumulation_steps)
