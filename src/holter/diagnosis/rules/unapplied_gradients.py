"""Gradients are computed, but no optimizer ever steps."""

from collections.abc import Iterator
from typing import Annotated

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.events import GradientsUnapplied
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import BACKWARD_CALLS


@rule(severity=Severity.ERROR, level=Level.PROCEDURE, needs=())
def unapplied_gradients(
    facts: Facts, *, min_calls: Annotated[int, "calls of backward() without a step"] = 10
) -> Iterator[Verdict]:
    """Gradients are computed, but no optimizer ever steps.

    ## What it does
    Reports a training that calls `backward()` and has an optimizer, but ends without a single
    `optimizer.step()`.

    ## Why it matters
    Nothing is learned: all weights keep their initial values.

    ## Example
    ```python
    if (batch + 1) % 64 == 0: optimizer.step()  # with 40 batches an epoch  # bad
    if (batch + 1) % 64 == 0 or batch + 1 == len(loader): optimizer.step()  # good
    ```

    ## What to do
    Call `optimizer.step()` after `backward()`. If gradients are accumulated, check that the
    condition of the step ever becomes true: its counter may restart in every epoch.

    ## When it is wrong
    Gradients are computed for another purpose, such as saliency maps, and the optimizer is a
    leftover.

    ## How to confirm
    - Add a print next to `optimizer.step()`: it never runs.
    """
    unapplied = facts.run.events_of(GradientsUnapplied)
    if facts.run.steps or not unapplied:
        yield unapplied_gradients.clear(f"{facts.run.steps} steps were taken")
        return
    calls = unapplied[-1].what.backwards
    if calls < min_calls:
        yield unapplied_gradients.not_examined(f"{calls} of the {min_calls} backward passes needed")
        return
    yield unapplied_gradients.finding(
        f"backward() was called {calls:,} times, but no optimizer stepped: the weights keep their"
        " initial values",
        confidence=Confidence.LIKELY,
        onset=0,
        evidence=(Evidence(BACKWARD_CALLS, (0, 0), f"{calls:,} calls before the first step"),),
        fix="call `optimizer.step()` after `backward()`; if it is inside an `if`, make sure that"
        " its condition becomes true",
    )
