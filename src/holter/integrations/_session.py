"""A watch that a callback opens and closes, and its report at the end."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from torch import nn
from torch.optim import Optimizer

from holter.diagnosis.engine import check
from holter.record import Run
from holter.reports import report
from holter.watching.watch import Watch, watch


class Session:
    """What every callback holds: options of `holter.watch`, and the watch while it trains."""

    def __init__(self, out: str | Path | None = None, *, show: bool = True, **options: Any) -> None:
        self.path: Path | None = None  # of the run, once there is one
        self._out, self._show, self._options = out, show, options
        self._watch: Watch | None = None

    def begin(self, model: nn.Module, optimizers: Iterable[Optimizer]) -> None:
        """Open the watch; a second training goes on in the same run."""
        if self._watch is None:
            plain = [unwrapped(each) for each in optimizers]
            resume = self.path is not None
            out = self.path or self._out
            self._watch = watch(model, plain, out, resume=resume, **self._options)
            self.path = self._watch.path

    def end(self, error: BaseException | None = None) -> None:
        """Close the watch, and print the report on the run."""
        watch, self._watch = self._watch, None
        if watch is None:
            return
        watch.close(error=error)
        if self._show:
            run = Run.load(watch.path)
            sys.stderr.write(report("text")(run, check(run)) + "\n")


def unwrapped(optimizer: Any) -> Optimizer:
    """The torch optimizer inside of those that Accelerate and Lightning wrap around it."""
    while not hasattr(optimizer, "_optimizer_step_pre_hooks") and hasattr(optimizer, "optimizer"):
        optimizer = optimizer.optimizer
    inner: Optimizer = optimizer
    return inner
