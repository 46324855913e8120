"""A checkpoint for resuming has to hold the schedule."""

import numpy as np

from holter import Run, Series, check
from holter.record.signals import CHECKPOINT_SAVED


def checked(**saved: float):
    one = {name: Series(np.array([0]), np.array([value])) for name, value in saved.items()}
    return check(Run.of({CHECKPOINT_SAVED: one}), select=["incomplete-checkpoint"])


def test_all_that_is_used_is_saved() -> None:
    assert checked(optimizer=1, scheduler=1, scaler=1).findings == ()
    assert checked(optimizer=1).findings == ()


def test_what_is_missing_is_named() -> None:
    (finding,) = checked(optimizer=1, scheduler=0, scaler=0).findings
    assert "scheduler and scaler" in finding.summary
    assert "scheduler.state_dict()" in finding.fix
