"""Conditions that hold on nearly all recent steps."""

import numpy as np
import numpy.typing as npt

RECENT = 200  # readings that are judged


def prevails(
    holds: npt.NDArray[np.bool_], *, min_steps: int, min_share: float, recent: int = RECENT
) -> bool:
    """Whether a condition held on `min_steps` readings and on `min_share` of the recent ones."""
    return bool(holds.sum() >= min_steps and holds[-recent:].mean() >= min_share)
