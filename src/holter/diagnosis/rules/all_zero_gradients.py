"""Every gradient is exactly zero."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.streaks import trailing
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import of
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import GRAD_TOTAL_NORM, LOSS

_NO_LOSS = 1e-12  # a loss under this leaves nothing to learn


@rule(
    severity=Severity.ERROR,
    level=Level.ARCHITECTURE,
    needs=(GRAD_TOTAL_NORM,),
    symptom=True,
)
def all_zero_gradients(facts: Facts, *, min_steps: int = 5) -> Iterator[Verdict]:
    """Every gradient is exactly zero.

    ## What it does
    Looks for optimizers whose total gradient norm is exactly 0 on at least the last `min_steps`
    steps, and tells whether it was so from the first step or since when. Zeros that are followed
    by other gradients are noted, not reported: a batch may have had nothing to learn from. Zeros
    together with a loss of 0 are success, everything is fitted, but not from the first step on.

    ## Why it matters
    A zero gradient does not come back by itself: the weights stay as they are (weight decay
    aside), so the next gradient is zero as well. All further training is wasted.

    ## What to do
    Zero from the first step: look between the model's last layer and the loss for an operation
    whose derivative is 0 (`round`, `sign`, `floor`, `argmax` turned back into a float), a `clamp`
    that is saturated or a final ReLU that is dead for every sample. Zero later on: the units died,
    mostly by one update that was too large; lower the learning rate or use a leaky activation.

    ## When it is wrong
    Losses with a flat bottom above 0: an absolute error of a single number at the median of the
    targets, or a satisfied margin loss to which a constant is added. The model is then as good as
    this loss can make it. Half-precision gradients can also be rounded to 0 although the network
    is sound; a `GradScaler` mends that.

    ## How to confirm
    - Walk back from the loss: call `retain_grad()` on the output of each layer for one batch; the
      last one with a gradient that is not 0 sits just after the guilty operation.
    - Start again with a tenth of the learning rate: if the gradients live on past the step named,
      an update killed the units.
    """
    for owner, norm in facts.run[GRAD_TOTAL_NORM].items():
        if len(norm) < min_steps:
            yield all_zero_gradients.not_examined(
                f"{len(norm)} of the {min_steps} steps needed with gradients{of(owner)}"
            )
            continue
        zero = norm.values == 0
        count = trailing(zero)
        if count < min_steps:
            if zero.any():
                yield all_zero_gradients.normal(
                    f"all gradients{of(owner)} are 0 on {int(zero.sum())} of {len(norm)} steps,"
                    f" first at step {int(norm.steps[zero.argmax()])}, and not for long"
                )
            yield all_zero_gradients.clear(
                f"gradients{of(owner)} are not 0 on {int((~zero).sum())} of {len(norm)} steps"
            )
            continue
        from_the_start = count == len(norm)
        first, last = int(norm.steps[-count]), norm.last
        since = "from the first step" if from_the_start else f"from step {first}"
        before = "" if from_the_start else f"; the norm before: {norm.values[-count - 1]:.4g}"
        evidence = Evidence(
            GRAD_TOTAL_NORM,
            (max(first - 20, 0), last),
            f"exactly 0 on the last {count} of {len(norm)} steps{before}",
            owner,
        )
        if not from_the_start and _nothing_left(facts, owner, norm.steps[-count:]):
            yield all_zero_gradients.normal(
                f"all gradients{of(owner)} are 0 {since} on, and so is the loss: nothing is left"
                " to learn",
                (evidence,),
            )
            yield all_zero_gradients.clear(f"the loss{of(owner)} is 0 wherever its gradient is")
            continue
        yield all_zero_gradients.finding(
            f"all gradients{of(owner)} are exactly 0 {since} to step {last}: nothing is learned",
            confidence=Confidence.CERTAIN,
            onset=first,
            evidence=(evidence,),
            fix="remove what has no gradient between the weights and the loss: rounding, argmax, a"
            " saturated clamp, a dead ReLU"
            if from_the_start
            else f"resume from before step {first} with a lower learning rate or leaky activations",
        )


def _nothing_left(facts: Facts, owner: str, steps: npt.NDArray[np.int64]) -> bool:
    """Whether the loss is known to be 0 on these steps."""
    if LOSS not in facts.run or owner not in facts.run[LOSS]:
        return False
    loss = facts.run[LOSS][owner]
    values = np.abs(loss.values[np.isin(loss.steps, steps)])
    return len(values) > 0 and bool((values < _NO_LOSS).all())
