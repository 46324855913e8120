"""What was read of data sets, for the rules that judge it."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from holter.record import Run, Series
from holter.record.events import ExperimentsChosen, NotApplicable, SamplesFound
from holter.record.signals import (
    DATASET_DIMENSIONS,
    DATASET_DISTINCT,
    DATASET_EXAMINED,
    DATASET_LENGTH,
    DATASET_VALUES,
    Signal,
)

_SHADES = 32  # different values of pixels: fewer may be the planes of a board, or one-hot letters


def measured(run: Run, signal: Signal, trial: str) -> float | None:
    """What an experiment measured in a trial, if it did."""
    found = series(run, signal, trial)
    return float(found.values[-1]) if found is not None else None


def series(run: Run, signal: Signal, trial: str) -> Series | None:
    """The readings of a trial, if there are any."""
    if signal not in run or trial not in run[signal] or not len(run[signal][trial]):
        return None
    return run[signal][trial]


def why_absent(run: Run, signal: Signal, otherwise: str) -> str:
    """What an experiment says of a signal that it did not measure."""
    for event in run.events_of(NotApplicable):
        if signal.name in event.what.signals:
            return event.what.why
    return otherwise


def was_asked_for(run: Run) -> bool:
    """Whether `holter try` was asked about the data; otherwise they are read after each script."""
    return any(True for _ in run.events_of(ExperimentsChosen))


def unread(run: Run, split: str) -> float:
    """How many samples of a split there are for each that was read."""
    length, examined = measured(run, DATASET_LENGTH, split), measured(run, DATASET_EXAMINED, split)
    return max(length / examined, 1.0) if length and examined else 1.0


def is_continuous(run: Run, split: str) -> bool:
    """Whether inputs have so many values that two equal ones are no coincidence."""
    values, distinct = measured(run, DATASET_VALUES, split), measured(run, DATASET_DISTINCT, split)
    if values is None or distinct is None:
        return False
    images = (measured(run, DATASET_DIMENSIONS, split) or 0) > 1
    return values >= 0.5 * distinct or (images and values >= _SHADES)


def named(run: Run, what: str, split: str | None = None) -> list[Any]:
    """The indices of samples that were written down for something."""
    for event in run.events_of(SamplesFound):
        if event.what.what == what and (split is None or event.what.split == split):
            return list(event.what.pairs if split is None else event.what.indices)
    return []


def listed(indices: Sequence[object], count: float, *, limit: int = 4) -> str:
    """A few indices, and that there are more: `3, 17, 40, 41, ...`."""
    shown = ", ".join(str(index) for index in indices[:limit])
    return shown + (", ..." if count > len(indices[:limit]) else "")


def spread(n: float, share: float, m: float) -> float:
    """The standard deviation of hits among `n`, of a share that is known from `m`."""
    return float(np.sqrt(n * share * (1 - share) * (1 + n / m) + 1))
