"""The optimizer forgets its state again and again."""

from collections.abc import Iterator

import numpy as np

from holter.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.rules import rule
from holter.rules._wording import of
from holter.run import Run, Series
from holter.signals import OPTIMIZER_AGE


@rule(
    severity=Severity.WARNING,
    level=Level.PROCEDURE,
    needs=(OPTIMIZER_AGE,),
    explains=(
        "loss-plateau",
        "oscillating-loss",
        "diverging-loss",
        "loss-spike",
        "underfitting",
        "erratic-validation",
        "huge-updates",
    ),
)
def reset_optimizer_state(run: Run, *, min_resets: int = 3) -> Iterator[Verdict]:
    """The optimizer forgets its state again and again.

    ## What it does
    Optimizers such as Adam count the steps that their state has seen. Between two readings of one
    optimizer that count has to rise. It speaks where it fell back, or did not rise, at least
    `min_resets` times: the state was thrown away, mostly because the optimizer is made anew.

    ## Why it matters
    Adam without its memory makes steps of full length in the direction of a single batch's sign.
    Each reset is a small warm-up without a warm-up, and a schedule that holds the old optimizer
    turns a knob that nobody reads.

    ## What to do
    Make the optimizer once, before the loop over epochs. To change the learning rate, set it in
    `optimizer.param_groups` or use a scheduler.

    ## When it is wrong
    Training in many stages that restarts the optimizer on purpose, as in some federated, cyclic and
    meta-learning. One or two resets are taken for stages of a training.

    ## How to confirm
    - Print `id(optimizer)` once an epoch: it has to stay the same.
    """
    told = False
    for owner, age in run[OPTIMIZER_AGE].items():
        if len(age) < 2:
            continue
        told = True
        at = _resets(age)
        if len(at) < min_resets:
            yield reset_optimizer_state.clear(
                f"the state{of(owner)} has seen {age.values[-1]:.0f} steps and was reset"
                f" {len(at)} times"
            )
            continue
        every = f"about every {np.median(np.diff(at)):.0f} steps" if len(at) > 1 else ""
        yield reset_optimizer_state.finding(
            f"the optimizer's state{of(owner)} was thrown away {len(at)} times, {every}: it never"
            f" saw more than {age.values.max():.0f} steps of {run.steps}",
            confidence=Confidence.CERTAIN,
            onset=int(at[0]),
            evidence=(
                Evidence(
                    OPTIMIZER_AGE,
                    (age.first, age.last),
                    f"its own count of steps fell back at steps"
                    f" {', '.join(str(step) for step in at[:4])}" + (" ..." * (len(at) > 4)),
                    owner,
                ),
            ),
            fix="make the optimizer once, before the loop, and change its learning rate in place",
        )
    if not told:
        yield reset_optimizer_state.not_examined("the optimizer's own count was read only once")


def _resets(age: Series) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """The steps at which the count had not risen since the reading before."""
    return age.steps[1:][np.diff(age.values) <= 0]
