"""Lightning: `Trainer(callbacks=[HolterCallback()])`.

Works with `lightning` and with `pytorch_lightning`, whichever the script has imported.
"""

import inspect
import sys
import warnings
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor
from torch.optim import Optimizer

from holter.integrations._session import Session
from holter.lab.calls import with_entry
from holter.lab.setup import Batches, KnowsSetup, Setup
from holter.lab.state import kept
from holter.record.errors import HolterError

if TYPE_CHECKING or "pytorch_lightning" not in sys.modules:
    from lightning.pytorch.callbacks import Callback
else:
    from pytorch_lightning.callbacks import Callback


class HolterCallback(Callback, KnowsSetup):
    """Records the training of a LightningModule, and prints the diagnosis at its end.

    Takes the options of `holter.watch`; with `show=False` the report is not printed. The run is in
    the folder `path`. Validation that Lightning runs before training, to test it, is no part of it.
    """

    def __init__(self, out: str | Path | None = None, *, show: bool = True, **options: Any) -> None:
        super().__init__()
        self._session = Session(out, show=show, **options)
        self._trainer: weakref.ref[Any] | None = None  # that trains, or has trained last

    @property
    def path(self) -> Path | None:
        """The folder of the run, once training has begun."""
        return self._session.path

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Open the watch: the optimizers exist from here on."""
        self._trainer = weakref.ref(trainer)
        self._session.begin(pl_module, trainer.optimizers)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        """Close the watch."""
        self._session.end()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:  # noqa: ARG002
        """Close the watch with what ended the training; Ctrl-C is among it."""
        self._session.end(exception)

    def training_setup(self) -> Setup:
        """Return the training of the Trainer that has this callback; it must have begun."""
        trainer = None if self._trainer is None else self._trainer()
        if trainer is None:
            raise HolterError(
                "The Trainer has not started training: use `setup_of(module, loader)`."
            )
        valid = trainer.val_dataloaders
        made = _setup(
            trainer.lightning_module,
            (trainer.optimizers, [config.scheduler for config in trainer.lr_scheduler_configs]),
            trainer.train_dataloader,
            valid[0] if isinstance(valid, list | tuple) else valid,
            max_norm=trainer.gradient_clip_val,
        )
        steps = trainer.accumulate_grad_batches
        return replace(made, accumulation=steps, aside=self._session.aside)


def setup_of(
    module: Any, train: Batches, valid: Batches | None = None, *, max_norm: float | None = None
) -> Setup:
    """Return the training of a LightningModule as a setup for experiments.

    The loss is that of `training_step`, the optimizer that of `configure_optimizers`. `max_norm` is
    `gradient_clip_val` of the Trainer.
    """
    return _setup(module, _configured(module), train, valid, max_norm=max_norm)


def _setup(
    module: Any,
    configured: tuple[Sequence[Optimizer], Sequence[Any]],
    train: Batches,
    valid: Batches | None,
    *,
    max_norm: float | None,
) -> Setup:
    optimizers, schedulers = configured
    if not module.automatic_optimization:
        raise HolterError(
            f"{type(module).__name__} has automatic_optimization=False: build the setup from"
            " phases, `holter.Setup(models, phases, train)`."
        )
    if len(optimizers) != 1:
        raise HolterError(
            f"configure_optimizers returns {len(optimizers)} optimizers: build the setup from"
            " phases, `holter.Setup(models, phases, train)`."
        )
    numbered = len(inspect.signature(module.training_step).parameters) > 1

    def loss(module: Any, batch: Any) -> Tensor:
        moved = module.transfer_batch_to_device(batch, module.device, 0)
        with _without_logging(module):
            told = module.training_step(moved, 0) if numbered else module.training_step(moved)
        computed: Tensor = told if isinstance(told, Tensor) else told["loss"]
        return computed

    made = Setup.of(module, optimizers[0], loss, train, valid=valid, max_norm=max_norm)
    made = replace(made, schedulers=tuple(schedulers))
    with kept(made):
        return with_entry(made, made.batches(1)[0])


def _configured(module: Any) -> tuple[list[Optimizer], list[Any]]:
    """Return the optimizers and the schedulers of a module, in whatever form it gives them."""
    optimizers: list[Optimizer] = []
    schedulers: list[Any] = []

    def take(part: Any) -> None:
        if isinstance(part, Mapping | list | tuple):
            for inner in part.values() if isinstance(part, Mapping) else part:
                take(inner)
        elif isinstance(part, Optimizer):
            optimizers.append(part)
        elif hasattr(part, "state_dict"):  # not the settings of a scheduler
            schedulers.append(part)

    take(module.configure_optimizers())
    return optimizers, schedulers


@contextmanager
def _without_logging(module: Any) -> Iterator[None]:
    """Take the module from its Trainer: without one, `self.log` does nothing but warn."""
    try:
        trainer = module.trainer
    except RuntimeError:  # it has none
        trainer = None
    module.trainer = None
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        module.trainer = trainer
