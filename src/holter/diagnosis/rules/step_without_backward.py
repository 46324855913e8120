"""The optimizer steps without the gradients of a backward."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import BACKWARD_CALLS, GRAD_NORM, GRAD_TOTAL_NORM, UPDATE_RATIO

_RECENT = 400  # readings that are judged


@rule(
    severity=Severity.WARNING,
    level=Level.PROCEDURE,
    needs=(BACKWARD_CALLS,),
)
def step_without_backward(
    facts: Facts, *, min_steps: int = 5, min_share: float = 0.05
) -> Iterator[Verdict]:
    """The optimizer steps without the gradients of a backward.

    ## What it does
    Looks for steps in which no `backward()` was called since the step before: at least `min_steps`
    of them and `min_share` of the last 400 that were read. Where no step has a backward at all, the
    gradients are made in another way (`torch.autograd.grad`, by hand) and nothing is said. A
    closure that calls backward inside `step()` counts as a backward. It also speaks where no
    parameter ever holds a gradient at `step()` and no weight moves, whether backward is called or
    not: gradients are then cleared in between, or never made.

    ## Why it matters
    The optimizer applies the gradients that are there. After `zero_grad()` there are none, and only
    momentum and weight decay act; otherwise the last batch is applied twice.

    ## What to do
    Call `zero_grad()`, `backward()` and `step()` in this order, each once: look for a second
    `step()`, for one in a helper that the loop calls as well, or for a branch without backward.

    ## When it is wrong
    Gradients that are written into `.grad` by hand on some of the steps.

    ## How to confirm
    - Count the calls of `backward()` and of `step()` over an epoch.
    """
    calls = facts.run[BACKWARD_CALLS].get("")
    still = _still(facts)
    if calls is not None and len(calls) and still:
        called = bool(np.median(calls.values) >= 1)
        why = "cleared in between, or the loss has no path to them" if called else "never made"
        yield step_without_backward.finding(
            f"backward() is {'called' if called else 'never called'}, no parameter has a gradient"
            f" when the optimizer steps, and no weight moved in {still} sampled updates: gradients"
            f" are {why}",
            severity=Severity.ERROR,
            confidence=Confidence.LIKELY,
            onset=0,
            evidence=(
                Evidence(
                    BACKWARD_CALLS,
                    (0, facts.run.steps - 1),
                    f"{int(calls.values.sum())} calls of backward on {len(calls)} steps",
                ),
                Evidence(
                    UPDATE_RATIO, (0, facts.run.steps - 1), f"0 in all {still} sampled updates"
                ),
            ),
            fix="call zero_grad() before backward() or after step(), not in between; and see that"
            " the loss is made of differentiable operations"
            if called
            else "call loss.backward(), with its parentheses, before optimizer.step()",
        )
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
        yield step_without_backward.not_examined("no step has a backward: gradients come otherwise")
        return
    if count < min_steps or count < min_share * len(bare):
        yield step_without_backward.clear(
            f"{len(bare) - count} of the last {len(bare)} steps had a backward"
        )
        return
    first, last = int(steps[bare.argmax()]), int(steps[-1])
    stale = _stale(facts, steps[bare])
    yield step_without_backward.finding(
        f"{count} of {len(bare)} optimizer steps had no backward() since the step before"
        + (f"; on {stale} of them old gradients were applied again" if stale else ""),
        confidence=Confidence.CERTAIN,
        onset=first,
        evidence=(Evidence(BACKWARD_CALLS, (first, last), f"0 on {count} of {len(bare)} steps"),),
        fix="call optimizer.step() once after each backward(), and nowhere else",
    )


def _still(facts: Facts, *, min_samples: int = 5) -> int:
    """In how many sampled updates nothing moved, where no parameter ever had a gradient."""
    if GRAD_NORM in facts.run or GRAD_TOTAL_NORM in facts.run or UPDATE_RATIO not in facts.run:
        return 0
    rows = facts.run[UPDATE_RATIO].rows()
    if len(rows.steps) < min_samples or (rows.values[rows.present] != 0).any():
        return 0
    return len(rows.steps)


def _stale(facts: Facts, steps: np.ndarray) -> int:
    """At how many of these steps gradients that are not zero were there."""
    if GRAD_TOTAL_NORM not in facts.run:
        return 0
    return sum(
        int((np.isin(norm.steps, steps) & (norm.values > 0)).sum())
        for norm in facts.run[GRAD_TOTAL_NORM].values()
    )
