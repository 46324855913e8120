"""The batch is far larger than the noise of its gradients calls for."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import BATCH_NOISE_SCALE, BATCH_SIZE

_WIDE = 10  # upper end over lower: what lies between is not known


@rule(
    severity=Severity.INFO,
    level=Level.HYPERPARAMETER,
    needs=(BATCH_SIZE, BATCH_NOISE_SCALE),
    preview=True,
)
def inefficient_batch_size(facts: Facts, *, max_ratio: float = 10.0) -> Iterator[Verdict]:
    """The batch is far larger than the noise of its gradients calls for.

    ## What it does
    The gradient noise scale is the batch size at which the noise of a batch's gradient is as large
    as the gradient. The rule speaks where the batch is more than `max_ratio` times the upper end of
    its interval, at the start and after some training: then a tenth of the batch would give
    practically the same step.

    ## Why it matters
    Samples far above the noise scale cost computation and buy nothing. As many small steps in the
    same time would get further.

    ## What to do
    Take a batch nearer to the noise scale. With SGD the learning rate goes down in proportion to
    the batch as far as that is below the noise scale and stays as it is above; with Adam by about
    the square root.

    ## When it is wrong
    The noise scale grows while a training goes on, often tenfold and more: a batch that is too
    large for the first steps may be right for most of the training. A GPU that is not filled by a
    small batch takes as long for it as for a large one. Contrastive losses and batch norm need
    large batches for other reasons.

    ## How to confirm
    - Train for as many samples with a quarter of the batch: the loss should get further down.
    - Measure again from a checkpoint of the middle of the training.
    """
    batch = float(facts.run[BATCH_SIZE][""].values[-1])
    table = facts.run[BATCH_NOISE_SCALE]
    scale, lower, upper = (table[each] for each in ("estimate", "lower", "upper"))
    told = "; ".join(
        f"{_scale(value, low, high)} after {step} steps"
        for step, value, low, high in zip(
            scale.steps, scale.values, lower.values, upper.values, strict=True
        )
    )
    says = f"a batch of {batch:.0f}, a noise scale of {told}"
    if (batch > max_ratio * upper.values).all():
        high = float(upper.values.max())
        yield inefficient_batch_size.finding(
            f"{says}: the batch is over {batch / high:.0f} times as large as gradients need",
            confidence=Confidence.HINT,
            onset=0,
            evidence=(
                Evidence(BATCH_SIZE, (0, 0), f"{batch:.0f} samples a step"),
                Evidence(
                    BATCH_NOISE_SCALE, (scale.first, scale.last), f"at most {high:.3g}", "upper"
                ),
            ),
            fix=f"a batch of about {_power_of_two(high)} needs hardly more steps; it grows as"
            " training goes on, so measure again later",
        )
    elif batch > lower.values[-1] and upper.values[-1] > _WIDE * lower.values[-1]:
        yield inefficient_batch_size.not_examined(
            f"{says}: too uncertain to tell; more batches would (option batches)"
        )
    else:
        yield inefficient_batch_size.clear(says)


def _scale(value: float, low: float, high: float) -> str:
    if not np.isfinite(high):
        return f"over {low:.3g}"
    return f"{value:.3g} ({low:.3g} to {high:.3g})"


def _power_of_two(value: float) -> int:
    return int(2 ** np.ceil(np.log2(max(value, 1))))
