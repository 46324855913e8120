"""Conditions that hold for consecutive readings."""

import numpy as np
import numpy.typing as npt


def trailing(holds: npt.NDArray[np.bool_]) -> int:
    """Return the number of consecutive readings at the end for which a condition holds."""
    breaks = np.flatnonzero(~holds)
    return len(holds) - 1 - int(breaks[-1]) if len(breaks) else len(holds)
