"""The loss compares the maximum of each sample's outputs with the target."""

from collections.abc import Iterator
from typing import Annotated

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import LOSS_LARGEST_OUTPUT


@rule(
    severity=Severity.WARNING,
    level=Level.PROCEDURE,
    needs=(LOSS_LARGEST_OUTPUT,),
    preview=True,
)
def maximum_in_loss(
    facts: Facts, *, min_readings: Annotated[int, "sampled steps needed"] = 8
) -> Iterator[Verdict]:
    """The loss compares the maximum of each sample's outputs with the target.

    ## What it does
    Determines from the graph of a regression loss which output of a sample is compared with the
    target. It reports if that is the maximum on every sampled step, regardless of which action,
    class or item the target belongs to.

    ## Why it matters
    The target is the value of one output: of the action that was taken, of the item that was shown.
    If it is always compared with the maximum, the values of different actions are mixed up, and the
    argmax is meaningless. The loss falls nevertheless.

    ## Example
    ```python
    values = model(states).max(dim=1).values                        # bad
    values = model(states).gather(1, actions[:, None]).squeeze(1)   # good
    ```

    ## What to do
    Select the output by the index that the target belongs to, with `gather` or
    `outputs[torch.arange(n), index]`. Use the maximum only for the next state in the target, under
    `torch.no_grad()`.

    ## When it is wrong
    The outputs are instances or time steps of one sample, and the target applies to the maximum.

    ## How to confirm
    - Print how often `model(states).argmax(1) == actions`: in all other cases the wrong output is
      trained.
    """
    largest = facts.run[LOSS_LARGEST_OUTPUT].get("")
    if largest is None or len(largest) < min_readings:
        yield maximum_in_loss.not_examined("too few sampled steps of a regression on one output")
        return
    if not largest.values.all():
        yield maximum_in_loss.clear(
            f"a chosen output on {int((largest.values == 0).sum())} of {len(largest)} sampled steps"
        )
        return
    span = (largest.first, largest.last)
    says = f"the largest output of each sample on all {len(largest)} sampled steps"
    yield maximum_in_loss.finding(
        f"the loss compares {says} with the target, whichever output the target belongs to",
        confidence=Confidence.HINT,
        onset=largest.first,
        evidence=(Evidence(LOSS_LARGEST_OUTPUT, span, says),),
        fix="select the output that the target belongs to: `model(states).gather(1, actions[:,"
        " None]).squeeze(1)`",
    )
