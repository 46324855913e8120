"""Ignite: `attach(trainer, model, optimizer)`."""

from pathlib import Path
from typing import Any

from ignite.engine import Engine, Events
from torch import nn
from torch.optim import Optimizer

from holter.integrations._session import Session, ended_by_exceptions


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

    def pause() -> None:
        interruptions.append(True)

    def ending(*_: Any, **__: Any) -> list[Session]:  # an interrupted run is resumed
        return [] if interruptions and interruptions.pop() else [session]

    interruptions: list[bool] = []
    trainer.add_event_handler(Events.STARTED, begin)
    trainer.add_event_handler(Events.COMPLETED, end)
    trainer.add_event_handler(Events.TERMINATE, end)
    trainer.add_event_handler(Events.INTERRUPT, pause)
    # A handler of exceptions would decide whether they leave the engine.
    ended_by_exceptions(trainer, "run", ending)
    return session
