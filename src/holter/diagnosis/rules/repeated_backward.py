"""backward() is called on the same loss more than once per step."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.prevalence import prevails
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import BACKWARD_CALLS, BACKWARD_REPEATED


@rule(severity=Severity.WARNING, level=Level.PROCEDURE, needs=(BACKWARD_REPEATED,))
def repeated_backward(
    facts: Facts,
    *,
    min_steps: Annotated[int, "steps with a repeated call that are reported"] = 5,
    min_share: Annotated[float, "their share of the recent steps"] = 0.9,
) -> Iterator[Verdict]:
    """backward() is called on the same loss more than once per step.

    ## What it does
    Counts `backward()` calls on a loss on which it was already called in the same step.
    `torch.autograd.grad`, used for gradient penalties and second derivatives, is not counted.

    ## Why it matters
    `backward()` adds to the gradients. Two calls on one loss double them: SGD trains at twice its
    learning rate, clipping acts more often, and each step pays for a second backward pass.

    ## Example
    ```python
    loss.backward(retain_graph=True); loss.backward()  # bad
    loss.backward()  # good
    ```

    ## What to do
    Remove one of the calls. Look for `retain_graph=True`: torch refuses a second backward without
    it.

    ## When it is wrong
    Two calls with `inputs=` that compute the gradients of different parts of a model, or calls with
    an intended `zero_grad()` in between.

    ## How to confirm
    - Print a gradient norm after the first and after the second `backward()`: it doubles.
    """
    repeated = facts.run[BACKWARD_REPEATED].get("")
    if repeated is None or len(repeated) < min_steps:
        yield repeated_backward.not_examined(
            f"{0 if repeated is None else len(repeated)} of the {min_steps} steps needed"
        )
        return
    again = repeated.values > 0
    count = int(again.sum())
    if not prevails(again, min_steps=min_steps, min_share=min_share):
        yield repeated_backward.clear(
            f"backward() was repeated on the same loss on {count} of {len(repeated)} steps"
        )
        return
    first, times = int(repeated.steps[again.argmax()]), float(np.median(repeated.values[again])) + 1
    yield repeated_backward.finding(
        f"backward() is called on the same loss {times:.0f} times per step, on {count} of"
        f" {len(repeated)} steps: its gradients are {times:.0f} times too large",
        confidence=Confidence.CERTAIN,
        onset=first,
        evidence=(
            Evidence(
                BACKWARD_REPEATED, (first, repeated.last), f"median {times - 1:.0f} extra per step"
            ),
            *_calls(facts),
        ),
        fix="call `backward()` once for each loss, without `retain_graph`",
    )


def _calls(facts: Facts) -> Iterator[Evidence]:
    calls = facts.run[BACKWARD_CALLS].get("") if BACKWARD_CALLS in facts.run else None
    if calls is not None and len(calls):
        says = f"{float(np.median(calls.values)):.0f} calls per step"
        yield Evidence(BACKWARD_CALLS, (calls.first, calls.last), says)
