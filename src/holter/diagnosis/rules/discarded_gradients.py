"""Most gradients are cleared before an optimizer uses them."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import percent
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import DATA_BATCHES, GRAD_DISCARDED

_MORE = 1.1  # backward passes for each batch that are one


@rule(
    severity=Severity.ERROR,
    level=Level.PROCEDURE,
    needs=(GRAD_DISCARDED,),
    preview=True,
)
def discarded_gradients(
    facts: Facts,
    *,
    min_steps: Annotated[int, "steps needed"] = 3,
    min_share: Annotated[float, "share of the batches whose gradients are lost"] = 0.5,
    many: Annotated[float, "passes before a step that are reported where no loader is read"] = 8,
) -> Iterator[Verdict]:
    """Most gradients are cleared before an optimizer uses them.

    ## What it does
    Counts the backward passes whose gradients `zero_grad()` clears before any optimizer step, and
    compares them with the batches read for the step. Several passes over one batch, as in
    adversarial training, are not reported. Without a loader it is a hint.

    ## Why it matters
    The computation is wasted: only the last batch before each step trains the model. With one step
    per epoch, a run of 20 epochs has 20 steps.

    ## Example
    ```python
    for x, y in loader: opt.zero_grad(); loss(x, y).backward()  # and opt.step() after it  # bad
    for x, y in loader: opt.zero_grad(); loss(x, y).backward(); opt.step()                 # good
    ```

    ## What to do
    Call `optimizer.step()` in the same loop as `backward()`. To accumulate gradients over several
    batches, call `zero_grad()` only after each step.

    ## When it is wrong
    Gradients of further batches are computed for another purpose, such as an attack on the inputs
    or a statistic of the gradients.

    ## How to confirm
    - Count `optimizer.step()` calls: there should be one for each batch, or for each group of
      batches that is accumulated.
    """
    for owner, series in facts.run[GRAD_DISCARDED].items():
        lost, steps = float(series.values.sum()), len(series)
        each = float(np.median(series.values)) if steps else 0.0
        measured = f"{int(lost):,} backward passes in {steps:,} steps are cleared without a step"
        batches = _batches(facts)
        if steps < min_steps:
            yield discarded_gradients.not_examined(f"{steps} of the {min_steps} steps needed")
        elif batches is None and each < many:
            yield discarded_gradients.clear(f"{measured}; no loader is read")
        elif batches is not None and (each < 1 or lost < min_share * batches):
            yield discarded_gradients.clear(measured)
        elif batches is not None and lost + steps > _MORE * batches:  # as an attack makes
            yield discarded_gradients.clear(f"{measured}, with {int(batches):,} batches read")
        else:
            share = lost / (lost + steps)
            yield discarded_gradients.finding(
                f"{measured}: {percent(share)} of the gradients are never used",
                confidence=Confidence.HINT if batches is None else Confidence.CERTAIN,
                onset=series.first,
                evidence=(
                    Evidence(
                        GRAD_DISCARDED,
                        (series.first, series.last),
                        f"a median of {each:.3g} passes before each step",
                        owner,
                    ),
                ),
                fix="call `optimizer.step()` after each `backward()`, in the same loop, or"
                " `zero_grad()` only after a step",
            )


def _batches(facts: Facts) -> float | None:
    """Return how many batches loaders delivered for training, or None if none was read."""
    if DATA_BATCHES not in facts.run:
        return None
    return sum(float(np.nansum(series.values)) for series in facts.run[DATA_BATCHES].values())
