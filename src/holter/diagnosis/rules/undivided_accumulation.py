"""Gradients of several batches are added up, and the loss is not divided by their number."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.progress import steps_follow_gradients
from holter.diagnosis.rule import rule
from holter.record import Series
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    BACKWARD_CALLS,
    DATA_BATCHES,
    LOSS,
    LOSS_ROOT_SHARE,
    LOSS_SUMMED,
)

_MOST = 0.9  # share of the steps that has to agree
_NEAR = 0.01  # by which a loss that goes into backward as it is may miss 1


@rule(
    severity=Severity.WARNING,
    level=Level.PROCEDURE,
    needs=(BACKWARD_CALLS, DATA_BATCHES, LOSS_ROOT_SHARE),
)
def undivided_accumulation(facts: Facts, *, min_steps: int = 10) -> Iterator[Verdict]:
    """Gradients of several batches are added up, and the loss is not divided by their number.

    ## What it does
    Looks at runs in which, on 9 of 10 steps and at least `min_steps`, as many batches of the
    training loader as calls of `backward()` make one step, two or more. Where what backward is
    called on is, within 1 %, the mean loss of one batch, the sum was not divided. Losses that are
    sums over samples, and several losses of one batch (as of a GAN), are left out.

    ## Why it matters
    The gradient is K times that of one large batch. With SGD the learning rate is K times what was
    set; clipping acts K times as often; the loss that is logged depends on K.

    ## What to do
    Call `(loss / K).backward()`; where batches have different numbers of targets, divide the sum of
    losses by the number of all targets of the step.

    ## When it is wrong
    A learning rate that was chosen for the sum. Adam divides the factor out: there it is a hint,
    and only clipping, weight decay by L2 and logs are affected.

    ## How to confirm
    - Compare the gradient norm of one step with that of one batch as large as all of them: they
      should agree.
    """
    calls, share = facts.run[BACKWARD_CALLS].get(""), facts.run[LOSS_ROOT_SHARE].get("")
    fetched = max(facts.run[DATA_BATCHES].values(), key=len)
    if calls is None or share is None:
        yield undivided_accumulation.not_examined("no loss function was seen before backward")
        return
    owners = [each for each in facts.run[LOSS].values() if len(each)] if LOSS in facts.run else []
    if len(owners) > 1:
        yield undivided_accumulation.not_examined(f"{len(owners)} optimizers have losses")
        return
    steps, batches, backwards = _together(fetched, calls)
    if len(steps) < min_steps:
        yield undivided_accumulation.not_examined(
            f"{len(steps)} of the {min_steps} steps needed with a loader"
        )
        return
    several = (batches == backwards) & (backwards >= 2)
    if several.mean() < _MOST:
        yield undivided_accumulation.clear(
            f"a step is made of {float(np.median(backwards)):.0f} backward and"
            f" {float(np.median(batches)):.0f} batches"
        )
        return
    summed = LOSS_SUMMED in facts.run and any(
        each.values.any() for each in facts.run[LOSS_SUMMED].values()
    )
    if summed:
        yield undivided_accumulation.not_examined("the loss is a sum over the batch")
        return
    count = float(np.median(backwards[several]))
    finite = share.values[np.isfinite(share.values)]
    whole = np.abs(finite - 1) <= _NEAR
    if len(finite) < min_steps or whole.mean() < _MOST:
        yield undivided_accumulation.clear(
            f"{count:.0f} batches make a step, and {float(np.median(finite)):.3g} of each loss goes"
            " into backward"
            if len(finite)
            else "no loss function was seen before backward"
        )
        return
    follows = steps_follow_gradients(facts)
    window = int(steps[0]), int(steps[-1])
    yield undivided_accumulation.finding(
        f"gradients of {count:.0f} batches are added up for each step, and each loss goes into"
        f" backward undivided: the gradient is {count:.0f} times that of the whole batch",
        confidence=Confidence.LIKELY if follows else Confidence.HINT,
        onset=window[0],
        evidence=(
            Evidence(BACKWARD_CALLS, window, f"{count:.0f} a step"),
            Evidence(LOSS_ROOT_SHARE, window, f"{float(np.median(finite)):.3f}: not divided"),
        ),
        fix=f"call (loss / {count:.0f}).backward()",
    )


def _together(one: Series, other: Series) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The steps at which both were read, and both readings."""
    steps, first, second = np.intersect1d(one.steps, other.steps, return_indices=True)
    return steps, one.values[first], other.values[second]
