"""The loss takes the logarithm or the square root of zero, or divides by it."""

from collections.abc import Iterator
from typing import Annotated, NamedTuple

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record import Series
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    GRAD_TOTAL_NORM,
    LOSS,
    LOSS_DIVISOR,
    LOSS_LOG_ARGUMENT,
    LOSS_ROOT_ARGUMENT,
    Signal,
)


class _Operation(NamedTuple):
    signal: Signal
    takes: str
    fix: str


_OPERATIONS = (
    _Operation(
        LOSS_LOG_ARGUMENT,
        "takes the logarithm of",
        "use `F.log_softmax` or `F.logsigmoid` of the logits, or set a floor:"
        " `p.clamp_min(1e-7).log()`",
    ),
    _Operation(
        LOSS_ROOT_ARGUMENT,
        "takes the square root of",
        "add an epsilon inside the root, whose gradient is infinite at 0: `(x + 1e-12).sqrt()`",
    ),
    _Operation(
        LOSS_DIVISOR,
        "divides by",
        "set a floor to the divisor: `total / count.clamp(min=1)`",
    ),
)


@rule(
    severity=Severity.ERROR,
    level=Level.NUMERICS,
    needs=(LOSS, GRAD_TOTAL_NORM),
)
def singular_operations(
    facts: Facts,
    *,
    tiny: Annotated[float, "size from which on the next step may reach zero"] = 1e-30,
    near: Annotated[int, "largest number of steps between a tiny number and the failure"] = 50,
) -> Iterator[Verdict]:
    """The loss takes the logarithm or the square root of zero, or divides by it.

    ## What it does
    Reads the autograd graph between the model and the loss: the smallest number whose logarithm or
    square root is taken, and the smallest divisor. It reports a zero at the step at which the loss
    or a gradient becomes non-finite, or a number close to zero shortly before.

    ## Why it matters
    `log(0)` is -Inf, and `0 * log(0)` is NaN. The value of `sqrt(0)` is 0, but its gradient is
    infinite: backward turns it into NaN while the loss still looks fine. In float32 a probability
    is exactly 0 once its logit is below -104, and exactly 1 above 17.

    ## Example
    ```python
    loss = -(y * p.log() + (1 - y) * (1 - p).log()).mean()   # bad
    loss = F.binary_cross_entropy_with_logits(logits, y)     # good
    ```

    ## What to do
    Use a function that takes logits (`F.cross_entropy`, `F.binary_cross_entropy_with_logits`,
    `F.log_softmax`, `F.logsigmoid`), or put a floor inside: `p.clamp_min(1e-7).log()`,
    `(x + 1e-12).sqrt()`, `total / count.clamp(min=1)`.

    ## When it is wrong
    The weights diverged before, and zero is a consequence: the report then names that cause.
    Operations inside the model are not examined.

    ## How to confirm
    - Run `holter try replay`: it repeats the last steps and names operation, line and sample.
    """
    failing = _failure(facts)
    seen = [
        (operation, series)
        for operation in _OPERATIONS
        if operation.signal in facts.run
        and (series := facts.run[operation.signal].get("")) is not None
        and np.isfinite(series.values).any()
    ]
    if not seen:
        yield singular_operations.not_examined(
            "the loss takes no logarithm, root or quotient that its graph shows"
        )
        return
    for operation, series in seen:
        finite = series.values[np.isfinite(series.values)]
        read = None if failing is None else _before(series, failing)
        if failing is None or read is None:
            yield singular_operations.clear(
                f"the loss {operation.takes} numbers of {finite.min():.3g} or more"
                + ("" if failing is not None else ", and loss and gradients are finite")
            )
            continue
        step, value = read
        is_zero = step == failing and value <= 0
        if not is_zero and (abs(value) > tiny or failing - step > near):
            yield singular_operations.clear(
                f"the loss {operation.takes} {value:.3g} at step {step},"
                f" {failing - step} before the failure"
            )
            continue
        when = f"at step {step}" if is_zero else f"{failing - step} steps before step {failing}"
        yield singular_operations.finding(
            f"the loss {operation.takes} {value:.3g} {when}, where it or its gradient becomes"
            " non-finite",
            confidence=Confidence.CERTAIN if is_zero else Confidence.LIKELY,
            onset=failing,
            evidence=(
                Evidence(
                    operation.signal,
                    (series.first, failing),
                    f"{value:.3g} at step {step}, {finite[0]:.3g} initially",
                ),
            ),
            fix=operation.fix,
        )


def _failure(facts: Facts) -> int | None:
    """Return the first step with a loss or gradient that is not finite and was used, or None."""
    steps = [
        int(step)
        for signal in (LOSS, GRAD_TOTAL_NORM)
        for series in facts.run[signal].values()
        for step in series.steps[~np.isfinite(series.values)]
        if step not in facts.skipped_steps and step not in facts.discarded_steps
    ]
    return min(steps, default=None)


def _before(series: Series, failing: int) -> tuple[int, float] | None:
    """Return the last step and number that were read until the failure, if it is finite."""
    until = series.steps <= failing
    if not until.any() or not np.isfinite(series.values[until][-1]):
        return None
    return int(series.steps[until][-1]), float(series.values[until][-1])
