"""Transformers: `Trainer(callbacks=[HolterCallback()])`.

The Trainer logs means over many steps, from which `logging_nan_inf_filter` has removed NaN; the run
holds the loss of every step as it was.
"""

from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from holter.integrations._session import Session


class HolterCallback(TrainerCallback):
    """Records the training of a Trainer, and prints the diagnosis at its end.

    Takes the options of `holter.watch`; with `show=False` the report is not printed. The run is in
    the folder `path`. A Trainer has no hook for exceptions: a training that one ends has its run,
    but no report; `holter check` gives it.
    """

    def __init__(self, out: str | Path | None = None, *, show: bool = True, **options: Any) -> None:
        self._session = Session(out, show=show, **options)

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
