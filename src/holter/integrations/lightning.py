"""Lightning: `Trainer(callbacks=[HolterCallback()])`.

Works with `lightning` and with `pytorch_lightning`, whichever the script has imported.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holter.integrations._session import Session

if TYPE_CHECKING or "pytorch_lightning" not in sys.modules:
    from lightning.pytorch.callbacks import Callback
else:
    from pytorch_lightning.callbacks import Callback


class HolterCallback(Callback):
    """Records the training of a LightningModule, and prints the diagnosis at its end.

    Takes the options of `holter.watch`; with `show=False` the report is not printed. The run is in
    the folder `path`. Validation that Lightning runs before training, to test it, is no part of it.
    """

    def __init__(self, out: str | Path | None = None, *, show: bool = True, **options: Any) -> None:
        super().__init__()
        self._session = Session(out, show=show, **options)

    @property
    def path(self) -> Path | None:
        """The folder of the run, once training has begun."""
        return self._session.path

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Open the watch: the optimizers exist from here on."""
        self._session.begin(pl_module, trainer.optimizers)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        """Close the watch."""
        self._session.end()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:  # noqa: ARG002
        """Close the watch with what ended the training; Ctrl-C is among it."""
        self._session.end(exception)
