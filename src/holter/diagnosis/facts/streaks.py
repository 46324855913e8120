"""Conditions that hold for several readings in a row."""

import numpy as np
import numpy.typing as npt


def trailing(holds: npt.NDArray[np.bool_]) -> int:
    """How many of the last readings a condition holds for, without a break up to the end."""
    breaks = np.flatnonzero(~holds)
    return len(holds) - 1 - int(breaks[-1]) if len(breaks) else len(holds)
