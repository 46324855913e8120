"""A watch that a callback opens and closes, and its report at the end."""

import functools
import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer

from holter.diagnosis.engine import check
from holter.record import Run
from holter.record.notices import tell
from holter.reports import report
from holter.scripts.discovery import recording
from holter.watching.watch import Watch, watch


class Session:
    """What every callback holds: options of `holter.watch`, and the watch while it trains.

    Where holter records the whole script, as `holter run` and experiments do, it opens none.
    """

    def __init__(self, out: str | Path | None = None, *, show: bool = True, **options: Any) -> None:
        self.path: Path | None = None  # of the run, once there is one
        self._out, self._show, self._options = out, show, options
        self._watch: Watch | None = None
        self._has_run = False  # in `path`, of its own

    def begin(self, model: nn.Module, optimizers: Iterable[Optimizer]) -> None:
        """Open the watch; a second training goes on in the same run."""
        if self._watch is not None:
            return
        around = recording()
        if around is not None and not self._has_run:
            self.path = around.path
            return
        plain = [unwrapped(each) for each in optimizers]
        out = self.path if self._has_run else self._out
        self._watch = watch(model, plain, out, resume=self._has_run, **self._options)
        self.path, self._has_run = self._watch.path, True

    def log(self, **values: Tensor | float) -> None:
        """Record what the framework logs for the step; also where the whole script is recorded."""
        watch = recording() if self._watch is None else self._watch
        if watch is not None:
            watch.log(**values)

    def aside(self) -> AbstractContextManager[None]:
        """Record nothing meanwhile: experiments are no part of the training."""
        return nullcontext() if self._watch is None else self._watch.paused()

    def end(self, error: BaseException | None = None) -> None:
        """Close the watch, and print the report on the run; nothing if it is closed."""
        watch, self._watch = self._watch, None
        if watch is None:
            return
        watch.close(error=error)
        if self._show:
            try:
                run = Run.load(watch.path)
                sys.stderr.write(report("text")(run, check(run)) + "\n")
            except Exception as failure:  # a training must not end with an error of the report
                tell(f"no report on {watch.path}: {type(failure).__name__}: {failure}")


def ended_by_exceptions(
    owner: object,
    method: str,
    sessions: Callable[..., Iterable[Session]],
    *,
    begins: Callable[..., None] = lambda *_, **__: None,
) -> None:
    """Let an exception that leaves `owner.method`, which trains, end the sessions of the training.

    For frameworks without a hook that sees every exception. `sessions` is called with the arguments
    of the method once it has ended, `begins` before. What the method does and returns stays the
    same.
    """
    original = getattr(owner, method)

    @functools.wraps(original)
    def training(*args: Any, **kwargs: Any) -> Any:
        ended_by: BaseException | None = None
        begins(*args, **kwargs)
        try:
            return original(*args, **kwargs)
        except BaseException as error:
            ended_by = error
            raise
        finally:
            for session in sessions(*args, **kwargs):
                session.end(ended_by)

    setattr(owner, method, training)


def unwrapped(optimizer: Any) -> Optimizer:
    """The torch optimizer inside of those that Accelerate and Lightning wrap around it."""
    while not hasattr(optimizer, "_optimizer_step_pre_hooks") and hasattr(optimizer, "optimizer"):
        optimizer = optimizer.optimizer
    inner: Optimizer = optimizer
    return inner
