"""Steps from which nothing was learned: skipped by a GradScaler, or thrown away by the script."""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from holter.record.signals import AMP_SKIPPED, BACKWARD_CALLS, GRAD_TOTAL_NORM, LOSS

if TYPE_CHECKING:
    from holter.diagnosis.facts import Facts

_RARE = 0.1  # share of the steps up to which a script may throw losses away as a matter of course


def skipped_steps(facts: "Facts") -> npt.NDArray[np.int64]:
    """Steps whose update the GradScaler left out; none where AMP was not used."""
    if AMP_SKIPPED not in facts.run:
        return np.empty(0, np.int64)
    series = facts.run[AMP_SKIPPED][""]
    return series.steps[series.values > 0]


def discarded_steps(facts: "Facts") -> npt.NDArray[np.int64]:
    """Steps with a loss that was not finite, whose gradients the script itself threw away.

    Such a step has a backward more than usual, and the gradients that the optimizer did get are
    finite. None where they are many: that is no guard against a rare batch.
    """
    if not all(signal in facts.run for signal in (LOSS, BACKWARD_CALLS, GRAD_TOTAL_NORM)):
        return np.empty(0, np.int64)
    calls = facts.run[BACKWARD_CALLS][""]
    if not len(calls):
        return np.empty(0, np.int64)
    again = calls.steps[calls.values > np.median(calls.values)]
    losses = [each for each in facts.run[LOSS].values() if len(each)]
    lost = [each.steps[~np.isfinite(each.values)] for each in losses]
    norms = list(facts.run[GRAD_TOTAL_NORM].values())
    fine = [each.steps[np.isfinite(each.values)] for each in norms]
    spoiled = [each.steps[~np.isfinite(each.values)] for each in norms]
    if not lost or not fine or any(len(each) for each in spoiled):
        return np.empty(0, np.int64)
    bad = np.unique(np.concatenate(lost))
    known = np.isin(bad, np.concatenate(fine)) & np.isin(bad, again)
    if not known.all() or len(bad) > _RARE * max(map(len, losses)):
        return np.empty(0, np.int64)
    return bad
