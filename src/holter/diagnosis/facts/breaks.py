"""Whether a training that broke had been on its course until then."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from holter.record import Run
from holter.record.band import WINDOW, Band
from holter.record.events import CaptureWritten
from holter.record.signals import GRAD_TOTAL_NORM, LOSS

_LONG = 32  # losses before a failure that tell whether it was sudden
_LATE = 8  # values right before a failure
_STEEP = 10.0  # times the median gradient norm, up to which a gradient is ordinary


def breaks_suddenly(run: Run) -> bool:
    """Whether loss and gradients were in their band until a captured value that is not finite.

    What had held for long by then, and never made the loss rise, did not cause it.
    """
    captured = (event.what for event in run.events_of(CaptureWritten))
    failing = min((each.of for each in captured if each.alarm == "nonfinite"), default=None)
    if failing is None:
        return False
    before = {
        signal: [
            values
            for series in run[signal].values()
            if len(values := series.values[(series.steps < failing) & np.isfinite(series.values)])
        ]
        for signal in (LOSS, GRAD_TOTAL_NORM)
        if signal in run
    }
    losses = before.get(LOSS, [])
    return (
        bool(losses)
        and all(len(values) >= _LONG and _is_level(values, Band.ceiling) for values in losses)
        and all(
            _is_level(values, lambda band: _STEEP * band.median)
            for values in before.get(GRAD_TOTAL_NORM, [])
        )
    )


def _is_level(values: npt.NDArray[np.floating], limit: Callable[[Band], float]) -> bool:
    """Whether the last values stay below a limit that those before them set."""
    early, late = values[-WINDOW:-_LATE], values[-_LATE:]
    return len(early) > 0 and float(late.max()) <= limit(Band.of(early))
