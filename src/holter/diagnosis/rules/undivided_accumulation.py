"""Gradients of several batches are accumulated without dividing the loss by their number."""

from collections.abc import Iterator
from typing import Annotated

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
)


@rule(
    severity=Severity.WARNING,
    level=Level.PROCEDURE,
    needs=(BACKWARD_CALLS, DATA_BATCHES, LOSS_ROOT_SHARE),
)
def undivided_accumulation(
    facts: Facts,
    *,
    min_steps: Annotated[int, "steps needed"] = 10,
    min_share: Annotated[float, "share of the steps that must accumulate undivided"] = 0.9,
    tolerance: Annotated[float, "deviation from 1 of an undivided loss"] = 0.01,
) -> Iterator[Verdict]:
    """Gradients of several batches are accumulated without dividing the loss by their number.

    ## What it does
    Looks at runs in which every step takes two or more batches and as many calls of `backward()`.
    If `backward()` is called on the mean loss of one batch, the sum was not divided. Losses that
    are sums over samples are not judged: a sum of sums is correct.

    ## Why it matters
    The gradient is K times that of one large batch. With SGD the effective learning rate is K times
    the configured one, clipping is more frequent, and the logged loss depends on K.

    ## Example
    ```python
    loss.backward()  # bad
    (loss / accumulation_steps).backward()  # good
    ```

    ## What to do
    Call `(loss / K).backward()`. If batches have different numbers of targets, divide the sum of
    losses by the number of targets of the whole step.

    ## When it is wrong
    The learning rate was chosen for the sum. Adam cancels the factor: the finding is then a hint,
    because only clipping, L2 weight decay and logs are affected.

    ## How to confirm
    - Compare the gradient norm of one step with that of one batch as large as all of them: they
      should agree.
    """
    calls, share = facts.run[BACKWARD_CALLS].get(""), facts.run[LOSS_ROOT_SHARE].get("")
    fetched = max(facts.run[DATA_BATCHES].values(), key=len)
    if calls is None or share is None:
        yield undivided_accumulation.not_examined("no loss function was seen before backward()")
        return
    losses = [loss for loss in facts.run[LOSS].values() if len(loss)] if LOSS in facts.run else []
    if len(losses) > 1:
        yield undivided_accumulation.not_examined(f"{len(losses)} optimizers have their own losses")
        return
    steps, batches, backwards = _together(fetched, calls)
    if len(steps) < min_steps:
        yield undivided_accumulation.not_examined(
            f"{len(steps)} of the {min_steps} steps needed with a loader"
        )
        return
    accumulates = (batches == backwards) & (backwards >= 2)
    if accumulates.mean() < min_share:
        yield undivided_accumulation.clear(
            f"a step takes {float(np.median(backwards)):.0f} backward() and"
            f" {float(np.median(batches)):.0f} batches"
        )
        return
    count = float(np.median(backwards[accumulates]))
    shares = share.values[np.isfinite(share.values)]
    if len(shares) < min_steps or (np.abs(shares - 1) <= tolerance).mean() < min_share:
        yield undivided_accumulation.clear(
            f"a step takes {count:.0f} batches, and backward() is called on"
            f" {float(np.median(shares)):.3g} of each loss"
            if len(shares)
            else "no loss function was seen before backward()"
        )
        return
    window = int(steps[0]), int(steps[-1])
    yield undivided_accumulation.finding(
        f"gradients of {count:.0f} batches are added for each step and the loss is not divided: the"
        f" gradient is {count:.0f} times that of the whole batch",
        confidence=Confidence.LIKELY if steps_follow_gradients(facts) else Confidence.HINT,
        onset=window[0],
        evidence=(
            Evidence(BACKWARD_CALLS, window, f"{count:.0f} per step"),
            Evidence(LOSS_ROOT_SHARE, window, f"{float(np.median(shares)):.3g}: not divided"),
        ),
        fix=f"call `(loss / {count:.0f}).backward()`",
    )


def _together(one: Series, other: Series) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The steps at which both were read, and both readings."""
    steps, first, second = np.intersect1d(one.steps, other.steps, return_indices=True)
    return steps, one.values[first], other.values[second]
