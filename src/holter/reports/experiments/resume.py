"""The steps after a checkpoint: uninterrupted, resumed, and resumed without a part."""

from holter.record import Run
from holter.record.signals import (
    CHECKPOINT_SAVED,
    RESUME_DEVIATION,
    RESUME_LOSS,
    RESUME_RATE,
    Signal,
)
from holter.reports.experiments import ResultTable


def results(run: Run) -> list[ResultTable]:
    """Return loss, learning rate and deviation of each trial, and what the checkpoint holds."""
    if RESUME_DEVIATION not in run:
        return []
    rows = tuple(
        (
            trial,
            _last(run, RESUME_LOSS, trial),
            _last(run, RESUME_RATE, trial),
            100 * float(series.values[-1]),
        )
        for trial, series in run[RESUME_DEVIATION].items()
    )
    saved = run[CHECKPOINT_SAVED].items() if CHECKPOINT_SAVED in run else ()
    states = {part: bool(series.values[-1]) for part, series in saved}
    held = [part for part, is_held in states.items() if is_held]
    lacking = [part for part, is_held in states.items() if not is_held]
    notes = [f"the script's checkpoint holds: model, {', '.join(held)}"] if held else []
    notes += [f"the script's checkpoint lacks: {', '.join(lacking)}"] if lacking else []
    columns = ("checkpoint", "loss of the same batch", "learning rate", "% deviation")
    title = "the next two steps after a checkpoint"
    return [ResultTable("resume", title, columns, rows, tuple(notes))]


def _last(run: Run, signal: Signal, trial: str) -> float | None:
    series = run[signal].get(trial) if signal in run else None
    return None if series is None else float(series.values[-1])
