"""The batch size is far above the gradient noise scale."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import BATCH_NOISE_SCALE, BATCH_SIZE


@rule(
    severity=Severity.INFO,
    level=Level.HYPERPARAMETER,
    needs=(BATCH_SIZE, BATCH_NOISE_SCALE),
    preview=True,
)
def inefficient_batch_size(
    facts: Facts,
    *,
    max_ratio: Annotated[float, "batch size over the gradient noise scale"] = 10.0,
    max_width: Annotated[float, "upper over lower end of an interval that can be judged"] = 10.0,
) -> Iterator[Verdict]:
    """The batch size is far above the gradient noise scale.

    ## What it does
    The gradient noise scale is the batch size at which the noise of the batch gradient is as large
    as the gradient itself. The rule reports a batch size many times above the upper end of its
    interval, at the start and after some training.

    ## Why it matters
    Samples beyond the noise scale cost computation but hardly improve the gradient. More steps with
    smaller batches reach a lower loss in the same time.

    ## Example
    ```python
    loader = DataLoader(train_set, batch_size=4096, shuffle=True)  # bad
    loader = DataLoader(train_set, batch_size=128, shuffle=True)   # good
    ```

    ## What to do
    Use a batch size near the noise scale. With SGD, lower the learning rate in proportion to the
    batch size below the noise scale, and keep it above; with Adam, by about the square root.

    ## When it is wrong
    The noise scale grows during training, often ten times and more: a batch that is too large for
    the first steps may be right later. On a GPU that a small batch does not saturate, it takes as
    long as a large one. Contrastive losses and batch norm need large batches for other reasons.

    ## How to confirm
    - Train for as many samples with a quarter of the batch: the loss should end lower.
    - Measure again from a checkpoint in the middle of training.
    """
    batch = float(facts.run[BATCH_SIZE][""].values[-1])
    table = facts.run[BATCH_NOISE_SCALE]
    scale, lower, upper = (table[name] for name in ("estimate", "lower", "upper"))
    intervals = "; ".join(
        f"{_scale(value, low, high)} after {step} steps"
        for step, value, low, high in zip(
            scale.steps, scale.values, lower.values, upper.values, strict=True
        )
    )
    measured = f"batch size {batch:.0f}, noise scale {intervals}"
    if (batch > max_ratio * upper.values).all():
        high = float(upper.values.max())
        yield inefficient_batch_size.finding(
            f"the batch is over {batch / high:.0f} times the gradient noise scale: {measured}",
            confidence=Confidence.HINT,
            onset=0,
            evidence=(
                Evidence(BATCH_SIZE, (0, 0), f"{batch:.0f} samples a step"),
                Evidence(
                    BATCH_NOISE_SCALE, (scale.first, scale.last), f"at most {high:.3g}", "upper"
                ),
            ),
            fix=f"set `batch_size={_power_of_two(high)}`; the noise scale grows during training, so"
            " measure again later",
        )
    elif batch > lower.values[-1] and upper.values[-1] > max_width * lower.values[-1]:
        yield inefficient_batch_size.not_examined(
            f"too uncertain, repeat it with more `batches`: {measured}"
        )
    else:
        yield inefficient_batch_size.clear(measured)


def _scale(value: float, low: float, high: float) -> str:
    if not np.isfinite(high):
        return f"over {low:.3g}"
    return f"{value:.3g} ({low:.3g} to {high:.3g})"


def _power_of_two(value: float) -> int:
    return int(2 ** np.ceil(np.log2(max(value, 1))))
