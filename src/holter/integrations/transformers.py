"""Transformers: `Trainer(callbacks=[HolterCallback()])`.

The Trainer logs means over many steps, from which `logging_nan_inf_filter` has removed NaN; the run
holds the loss of every step as it was.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from transformers import Trainer, TrainerCallback

from holter.integrations._session import Session, ended_by_exceptions


class HolterCallback(TrainerCallback):
    """Records the training of a Trainer, and prints the diagnosis at its end.

    Takes the options of `holter.watch`; with `show=False` the report is not printed. The run is in
    the folder `path`. An exception ends it, Ctrl-C included: a Trainer has no hook for them, so
    that `Trainer.train` is wrapped.
    """

    def __init__(self, out: str | Path | None = None, *, show: bool = True, **options: Any) -> None:
        self._session = Session(out, show=show, **options)
        ended_by_exceptions(Trainer, "train", _sessions)

    @property
    def path(self) -> Path | None:
        """The folder of the run, once training has begun."""
        return self._session.path

    def on_train_begin(self, args: Any, state: Any, control: Any, **objects: Any) -> None:  # noqa: ARG002
        """Open the watch: the optimizer exists from here on."""
        self._session.begin(objects["model"], [objects["optimizer"]])

    def on_train_end(self, args: Any, state: Any, control: Any, **objects: Any) -> None:  # noqa: ARG002
        """Close the watch."""
        self._session.end()


def _sessions(trainer: Trainer, *_: Any, **__: Any) -> Iterator[Session]:
    for callback in trainer.callback_handler.callbacks:
        if isinstance(callback, HolterCallback):
            yield callback._session  # noqa: SLF001
