"""The steps that a GradScaler skipped: nothing was learned from them."""

import numpy as np
import numpy.typing as npt

from holter.run import Run
from holter.signals import AMP_SKIPPED


def skipped_steps(run: Run) -> npt.NDArray[np.int64]:
    """Steps whose update the GradScaler left out; none where AMP was not used."""
    if AMP_SKIPPED not in run:
        return np.empty(0, np.int64)
    series = run[AMP_SKIPPED][""]
    return series.steps[series.values > 0]
