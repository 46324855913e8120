"""Every gradient is exactly zero."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.streaks import trailing
from holter.diagnosis.rule import exception, rule
from holter.diagnosis.wording import of
from holter.record import Series
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import GRAD_TOTAL_NORM, LOSS

_CONTEXT = 20  # steps before the first zero that the evidence shows


@exception
def zero_loss(facts: Facts, owner: str, norm: Series, count: int, limit: float) -> str | None:
    """The loss has reached 0, so there is nothing left to learn."""
    if count == len(norm) or LOSS not in facts.run or owner not in facts.run[LOSS]:
        return None
    loss = facts.run[LOSS][owner]
    values = np.abs(loss.values[np.isin(loss.steps, norm.steps[-count:])])
    if not len(values) or not (values < limit).all():
        return None
    return f"all gradients{of(owner)} are 0 since step {norm.steps[-count]}, and so is the loss"


@rule(
    severity=Severity.ERROR,
    level=Level.ARCHITECTURE,
    needs=(GRAD_TOTAL_NORM,),
    symptom=True,
    exceptions=(zero_loss,),
)
def all_zero_gradients(
    facts: Facts,
    *,
    min_steps: Annotated[int, "last steps on which all gradients are 0"] = 5,
    no_loss: Annotated[float, "magnitude below which a loss counts as 0"] = 1e-12,
) -> Iterator[Verdict]:
    """Every gradient is exactly zero.

    ## What it does
    Reports optimizers whose total gradient norm is exactly 0 on the last steps, and since when.
    Zeros followed by nonzero gradients are only noted: single batches may hold nothing to learn.

    ## Why it matters
    A zero gradient does not recover by itself: the weights do not change (except by weight decay),
    so the next gradient is zero as well. All further training is wasted.

    ## Example
    ```python
    loss = criterion(torch.round(torch.sigmoid(model(x))), y)   # bad
    loss = criterion(torch.sigmoid(model(x)), y)                # good
    ```

    ## What to do
    Zero from the first step: search between the model's last layer and the loss for an operation
    whose derivative is 0 (`round`, `sign`, `floor`, `argmax` turned back into a float), a saturated
    `clamp` or a final ReLU that is dead for every sample. Zero later: the units died, usually by
    one update that was too large; lower the learning rate or use a leaky activation.

    ## When it is wrong
    Losses with a flat bottom above 0: an absolute error of a single number at the median of the
    targets, or a satisfied margin loss to which a constant is added. Half-precision gradients can
    also underflow to 0 in a sound network; a `GradScaler` prevents that.

    ## How to confirm
    - Walk back from the loss: call `retain_grad()` on the output of each layer for one batch; the
      last one with a nonzero gradient is just after the operation that blocks it.
    - Start again with a tenth of the learning rate: if the gradients survive the step named, an
      update killed the units.
    """
    for owner, norm in facts.run[GRAD_TOTAL_NORM].items():
        if len(norm) < min_steps:
            yield all_zero_gradients.not_examined(
                f"{len(norm)} of the {min_steps} steps needed with gradients{of(owner)}"
            )
            continue
        count = trailing(norm.values == 0)
        if count < min_steps:
            yield from _not_for_long(owner, norm)
            continue
        excuse = all_zero_gradients.excused(facts, owner, norm, count, no_loss)
        yield excuse or _finding(owner, norm, count)


def _not_for_long(owner: str, norm: Series) -> Iterator[Verdict]:
    zero = norm.values == 0
    if zero.any():
        yield all_zero_gradients.normal(
            f"all gradients{of(owner)} are 0 on {int(zero.sum())} of {len(norm)} steps, the first"
            f" at step {int(norm.steps[zero.argmax()])}; others follow"
        )
    yield all_zero_gradients.clear(
        f"gradients{of(owner)} are nonzero on {int((~zero).sum())} of {len(norm)} steps"
    )


def _finding(owner: str, norm: Series, count: int) -> Verdict:
    from_the_start = count == len(norm)
    first, last = int(norm.steps[-count]), norm.last
    since = "from the first step" if from_the_start else f"from step {first}"
    before = "" if from_the_start else f"; the norm before is {norm.values[-count - 1]:.3g}"
    return all_zero_gradients.finding(
        f"all gradients{of(owner)} are exactly 0 {since} to step {last}",
        confidence=Confidence.CERTAIN,
        onset=first,
        evidence=(
            Evidence(
                GRAD_TOTAL_NORM,
                (max(first - _CONTEXT, 0), last),
                f"exactly 0 on the last {count} of {len(norm)} steps{before}",
                owner,
            ),
        ),
        fix="remove the operation without a gradient between the weights and the loss: `round`,"
        " `argmax`, a saturated `clamp`, a dead ReLU"
        if from_the_start
        else f"resume from before step {first} with a lower learning rate or `nn.LeakyReLU()`",
    )
