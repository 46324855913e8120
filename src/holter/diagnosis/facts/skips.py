"""Steps that trained nothing: skipped by a GradScaler, or discarded by the script."""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from holter.record import Series
from holter.record.signals import AMP_SKIPPED, BACKWARD_CALLS, GRAD_TOTAL_NORM, LOSS

if TYPE_CHECKING:
    from holter.diagnosis.facts import Facts

Steps = npt.NDArray[np.int64]

_RARE = 0.1  # largest share of the steps that a guard against rare bad batches discards


def skipped_steps(facts: "Facts") -> Steps:
    """Return the steps whose update a GradScaler skipped; empty without AMP.

    A log does not say which steps were skipped, but what follows does.
    """
    if facts.run.meta.source is not None and LOSS in facts.run:
        return _survived_in_log(facts)
    if AMP_SKIPPED not in facts.run:
        return np.empty(0, np.int64)
    skipped = facts.run[AMP_SKIPPED][""]
    return skipped.steps[skipped.values > 0]


def skipped_by(facts: "Facts") -> str:
    """Return who skipped these steps, as far as it is known."""
    return "GradScaler" if facts.run.meta.source is None else "the training"


def discarded_steps(facts: "Facts") -> Steps:
    """Return the steps with a non-finite loss whose gradients the script itself discarded.

    Such a step has one backward pass more than the median, and the gradients that reached the
    optimizer are finite; where they were not read, a later loss is finite. The last loss of a
    training has no step after it: it counts if others were discarded before. Empty if there are
    many: that is no guard against a rare bad batch.
    """
    none = np.empty(0, np.int64)
    if not all(signal in facts.run for signal in (LOSS, BACKWARD_CALLS, GRAD_TOTAL_NORM)):
        return none
    calls = facts.run[BACKWARD_CALLS][""]
    losses = [loss for loss in facts.run[LOSS].values() if len(loss)]
    norms = [norm for norm in facts.run[GRAD_TOTAL_NORM].values() if len(norm)]
    if not len(calls) or not losses or not norms:
        return none
    if not all(np.isfinite(norm.values).all() for norm in norms):
        return none
    repeated = calls.steps[calls.values > np.median(calls.values)]
    bad = np.unique(np.concatenate([loss.steps[~np.isfinite(loss.values)] for loss in losses]))
    harmless = np.concatenate([norm.steps for norm in norms] + [_survived(loss) for loss in losses])
    guarded = np.isin(bad, harmless) & np.isin(bad, repeated)
    if len(bad) > 1 and bad[-1] == max(loss.last for loss in losses):
        guarded[-1] = True
    if not guarded.all() or len(bad) > _RARE * max(map(len, losses)):
        return none
    return bad


def _survived_in_log(facts: "Facts") -> Steps:
    """Return the steps of a log with a non-finite loss or gradient and a finite loss later on.

    An update by such a gradient makes weights non-finite, and every later loss with them.
    """
    finite = [loss.steps[np.isfinite(loss.values)] for loss in facts.run[LOSS].values()]
    last = max((int(steps[-1]) for steps in finite if len(steps)), default=-1)
    read = [
        series
        for signal in (LOSS, GRAD_TOTAL_NORM)
        if signal in facts.run
        for series in facts.run[signal].values()
    ]
    bad = np.concatenate([series.steps[~np.isfinite(series.values)] for series in read])
    return np.unique(bad[bad < last])


def _survived(loss: Series) -> Steps:
    """Return the steps with a non-finite loss after which a loss is finite again."""
    finite = np.isfinite(loss.values)
    last = int(loss.steps[finite].max(initial=-1))
    return loss.steps[~finite & (loss.steps < last)]
