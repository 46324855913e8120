"""The optimizer steps without a new backward pass."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.membership import ends_outside_parameters
from holter.diagnosis.rule import rule
from holter.record import Series
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import BACKWARD_CALLS, GRAD_NORM, GRAD_TOTAL_NORM, UPDATE_RATIO

_RECENT = 400  # readings that are judged


@rule(severity=Severity.WARNING, level=Level.PROCEDURE, needs=(BACKWARD_CALLS,))
def step_without_backward(
    facts: Facts,
    *,
    min_steps: Annotated[int, "steps without a backward pass that are reported"] = 5,
    min_share: Annotated[float, "their share of the recent steps"] = 0.05,
    min_samples: Annotated[int, "sampled updates needed to tell that no weight moves"] = 5,
) -> Iterator[Verdict]:
    """The optimizer steps without a new backward pass.

    ## What it does
    Counts the calls of `backward()` between two steps, including calls in a closure passed to
    `step()`. It also reports if no parameter has a gradient at any step and no weight changes.

    ## Why it matters
    The optimizer applies whatever `.grad` holds. After `zero_grad()` that is nothing, so only
    momentum and weight decay act; without it, the last batch is applied twice.

    ## Example
    ```python
    loss.backward(); optimizer.zero_grad(); optimizer.step()  # bad
    optimizer.zero_grad(); loss.backward(); optimizer.step()  # good
    ```

    ## What to do
    Call `zero_grad()`, `backward()` and `step()` in this order, each once. Look for a second
    `step()`, for one in a helper function, or for a branch without `backward()`.

    ## When it is wrong
    The script writes gradients to `.grad` manually on some steps.

    ## How to confirm
    - Count the calls of `backward()` and of `step()` over an epoch.
    """
    calls = facts.run[BACKWARD_CALLS].get("")
    still = _still_samples(facts, min_samples)
    if still and ends_outside_parameters(facts):
        yield step_without_backward.clear(
            "backward() is called on a loss whose graph reaches no parameter: gradients are not"
            " cleared, they never exist"
        )
        return
    if calls is not None and len(calls) and still:
        yield _without_gradients(facts, calls, still)
        return
    if calls is None or len(calls) < min_steps:
        yield step_without_backward.not_examined(
            f"{0 if calls is None else len(calls)} of the {min_steps} steps needed"
        )
        return
    counted = ~np.isin(calls.steps, facts.skipped_steps)
    steps, bare = calls.steps[counted][-_RECENT:], calls.values[counted][-_RECENT:] == 0
    count = int(bare.sum())
    if count == len(bare):
        yield step_without_backward.not_examined(
            "backward() is never called: gradients come from torch.autograd.grad or are set by hand"
        )
        return
    if count < min_steps or count < min_share * len(bare):
        yield step_without_backward.clear(
            f"{len(bare) - count} of the last {len(bare)} steps had a backward pass"
        )
        return
    first, last = int(steps[bare.argmax()]), int(steps[-1])
    stale = _stale_steps(facts, steps[bare])
    yield step_without_backward.finding(
        f"{count} of {len(bare)} optimizer steps had no backward() since the previous step"
        + (f"; {stale} of them applied old gradients again" if stale else ""),
        confidence=Confidence.CERTAIN,
        onset=first,
        evidence=(Evidence(BACKWARD_CALLS, (first, last), f"0 on {count} of {len(bare)} steps"),),
        fix="call `optimizer.step()` once after each `backward()`, and nowhere else",
    )


def _without_gradients(facts: Facts, calls: Series, still: int) -> Verdict:
    span = 0, facts.run.steps - 1
    called = bool(np.median(calls.values) >= 1)
    why = "cleared before the step, or the loss is not connected to them" if called else "not made"
    return step_without_backward.finding(
        f"backward() is {'called' if called else 'never called'}, but no parameter has a gradient"
        f" at optimizer.step(), and no weight moved in {still} sampled updates: gradients are"
        f" {why}",
        severity=Severity.ERROR,
        confidence=Confidence.LIKELY,
        onset=0,
        evidence=(
            Evidence(
                BACKWARD_CALLS, span, f"{int(calls.values.sum())} calls on {len(calls)} steps"
            ),
            Evidence(UPDATE_RATIO, span, f"0 in all {still} sampled updates"),
        ),
        fix="call `zero_grad()` before `backward()` or after `step()`, never in between, and use"
        " only differentiable operations"
        if called
        else "call `loss.backward()` (with parentheses) before `optimizer.step()`",
    )


def _still_samples(facts: Facts, min_samples: int) -> int:
    """Number of sampled updates in which nothing moved, if no parameter ever had a gradient."""
    if GRAD_NORM in facts.run or GRAD_TOTAL_NORM in facts.run or UPDATE_RATIO not in facts.run:
        return 0
    rows = facts.run[UPDATE_RATIO].rows()
    if len(rows.steps) < min_samples or (rows.values[rows.present] != 0).any():
        return 0
    return len(rows.steps)


def _stale_steps(facts: Facts, steps: np.ndarray) -> int:
    """Number of these steps at which nonzero gradients were there."""
    if GRAD_TOTAL_NORM not in facts.run:
        return 0
    return sum(
        int((np.isin(norm.steps, steps) & (norm.values > 0)).sum())
        for norm in facts.run[GRAD_TOTAL_NORM].values()
    )
