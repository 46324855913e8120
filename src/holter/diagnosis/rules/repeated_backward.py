"""The same loss goes through backward more than once a step."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import BACKWARD_CALLS, BACKWARD_REPEATED

_RECENT = 200  # readings that are judged
_MOST = 0.9  # share of them that has to agree


@rule(
    severity=Severity.WARNING,
    level=Level.PROCEDURE,
    needs=(BACKWARD_REPEATED,),
)
def repeated_backward(facts: Facts, *, min_steps: int = 5) -> Iterator[Verdict]:
    """The same loss goes through backward more than once a step.

    ## What it does
    Counts the calls of `backward()` on a loss that backward was called on before, in the same step.
    It speaks where there are some on at least `min_steps` steps and on 9 of 10 recent ones.
    `torch.autograd.grad`, as gradient penalties and second derivatives use it, is not counted.

    ## Why it matters
    `backward()` adds to the gradients. Two calls on one loss double them: SGD learns at twice its
    learning rate, clipping bites twice as often, and each step takes a second backward's time.

    ## What to do
    Remove one of the calls. `retain_graph=True` is often the trace of it: torch refuses a second
    backward without, and the flag silences the refusal.

    ## When it is wrong
    Two calls with `inputs=` that give each part of a model its own gradients, or with `zero_grad()`
    in between on purpose.

    ## How to confirm
    - Print a gradient's norm after the first and after the second `backward()`: it doubles.
    """
    repeated = facts.run[BACKWARD_REPEATED].get("")
    if repeated is None or len(repeated) < min_steps:
        yield repeated_backward.not_examined(
            f"{0 if repeated is None else len(repeated)} of the {min_steps} steps needed"
        )
        return
    again = repeated.values > 0
    count = int(again.sum())
    if count < min_steps or again[-_RECENT:].mean() < _MOST:
        yield repeated_backward.clear(
            f"backward met a loss again on {count} of {len(repeated)} steps"
        )
        return
    first, times = int(repeated.steps[again.argmax()]), float(np.median(repeated.values[again]))
    yield repeated_backward.finding(
        f"backward() is called on the same loss {times + 1:.0f} times a step, on {count} of"
        f" {len(repeated)} steps: its gradients are counted {times + 1:.0f} times",
        confidence=Confidence.CERTAIN,
        onset=first,
        evidence=(
            Evidence(BACKWARD_REPEATED, (first, repeated.last), f"median {times:.0f} a step"),
            *_calls(facts),
        ),
        fix="call backward() once for each loss, without retain_graph",
    )


def _calls(facts: Facts) -> Iterator[Evidence]:
    calls = facts.run[BACKWARD_CALLS].get("") if BACKWARD_CALLS in facts.run else None
    if calls is not None and len(calls):
        says = f"{float(np.median(calls.values)):.0f} calls a step"
        yield Evidence(BACKWARD_CALLS, (calls.first, calls.last), says)
