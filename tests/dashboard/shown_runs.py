"""Runs on disk for the dashboard."""

from pathlib import Path

import numpy as np

from holter.record import Writer
from holter.record.meta import Environment


def write_run(
    path: Path,
    losses: list[float],
    *,
    status: str = "finished",
    command: tuple[str, ...] = ("train.py",),
    signals: dict[str, float] | None = None,
) -> Path:
    """Write a run with these losses, and further signals of the step that stay the same."""
    writer = Writer(path, status=status, environment=Environment(command=command))
    extend(writer, losses, signals=signals)
    writer.close()
    return path


def extend(
    writer: Writer, losses: list[float], *, first: int = 0, signals: dict[str, float] | None = None
) -> None:
    """Write more steps."""
    given = signals or {}
    for step, loss in enumerate(losses, first):
        readings = {"loss": loss, **given}
        columns = [(name, ("",), np.array([value], np.float32)) for name, value in readings.items()]
        writer.write("steps", step, columns)
