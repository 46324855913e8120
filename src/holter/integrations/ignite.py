"""Ignite: `attach(trainer, model, optimizer)`."""

from pathlib import Path
from typing import Any

from ignite.engine import Engine, Events
from torch import nn
from torch.optim import Optimizer

from holter.integrations._session import Session


def attach(
    trainer: Engine,
    model: nn.Module,
    *optimizers: Optimizer,
    out: str | Path | None = None,
    show: bool = True,
    **options: Any,
) -> Session:
    """Record every run of the engine `trainer`; options are those of `holter.watch`.

    The folder of the run is in `path` of what is returned, once training has begun.
    """
    session = Session(out, show=show, **options)

    def begin() -> None:  # handlers without parameters: ignite passes an engine to others
        session.begin(model, optimizers)

    def end() -> None:
        session.end()

    def failed(_: Engine, error: BaseException) -> None:
        session.end(error)
        raise error

    trainer.add_event_handler(Events.STARTED, begin)
    trainer.add_event_handler(Events.COMPLETED, end)
    trainer.add_event_handler(Events.TERMINATE, end)
    trainer.add_event_handler(Events.EXCEPTION_RAISED, failed)
    return session
