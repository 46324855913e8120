"""Gradients of past steps are not cleared."""

from collections.abc import Iterator
from functools import partial
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.prevalence import prevails
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import of, percent
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import GRAD_CARRIED_FRACTION, GRAD_TOTAL_NORM

_RECENT = 50  # readings that are judged
_ALL = 0.99  # share of the parameters that counts as all of them


@rule(severity=Severity.ERROR, level=Level.PROCEDURE, needs=(GRAD_CARRIED_FRACTION,))
def uncleared_gradients(
    facts: Facts,
    *,
    min_steps: Annotated[int, "steps with old gradients that are reported"] = 5,
    min_share: Annotated[float, "their share of the last 50 steps"] = 0.9,
    min_whole: Annotated[float, "the same where all parameters keep theirs, also of all"] = 0.6,
) -> Iterator[Verdict]:
    """Gradients of past steps are not cleared.

    ## What it does
    Measures how many parameters still held the gradient of the previous optimizer step when it
    stepped again, and reports if some do at nearly all steps, or all do at most steps. Accumulation
    (several `backward()`, then one `step()` and `zero_grad()`) reads 0.

    ## Why it matters
    `backward()` adds to `.grad`. Without `zero_grad()` every step uses the sum of all gradients so
    far (or of the epoch, if it is called once per epoch): the updates follow outdated directions
    and grow, and the loss oscillates or diverges.

    ## Example
    ```python
    loss.backward(); optimizer.step()  # bad
    optimizer.zero_grad(); loss.backward(); optimizer.step()  # good
    ```

    ## What to do
    Call `optimizer.zero_grad()` once per step, before `backward()` or right after
    `optimizer.step()`. If only some gradients are carried over, the call misses some parameters:
    clear those of every module in this optimizer.

    ## When it is wrong
    The loop keeps gradients across steps by design, such as manual momentum in `.grad`.

    ## How to confirm
    - Print `next(model.parameters()).grad` right before `backward()` in the second step: it should
      be `None` or 0.
    - Add `optimizer.zero_grad()` right before `backward()` and compare the first 50 losses.
    """
    for owner, carried in facts.run[GRAD_CARRIED_FRACTION].items():
        # Nothing can be carried into an optimizer's first step.
        since = 1 if len(carried) and carried.values[0] == 0 else 0
        steps, share = carried.steps[since:], carried.values[since:]
        if len(share) < min_steps:
            yield uncleared_gradients.not_examined(
                f"{len(share)} of the {min_steps} steps needed after the first{of(owner)}"
            )
            continue
        judge = partial(prevails, min_steps=min_steps, min_share=min_share, recent=_RECENT)
        at_most = partial(prevails, min_steps=min_steps, min_share=min_whole)
        every = share >= _ALL
        # Cleared now and then, as once per epoch; a gradient of zeros reads as a cleared one.
        mostly = all(at_most(every, recent=count) for count in (_RECENT, len(every)))
        whole = mostly or judge(every)
        kept = every if whole else share > 0
        count = int(kept.sum())
        if not whole and not judge(kept):
            yield uncleared_gradients.clear(
                f"gradients{of(owner)} were cleared before {len(share) - count} of"
                f" {len(share)} steps"
            )
            continue
        first, last = int(steps[kept.argmax()]), int(steps[-1])
        typical = float(np.median(share[-_RECENT:]))
        between = "steps" if kept[kept.argmax() :].mean() >= _ALL else "most steps"
        which = "all parameters" if whole else f"{percent(typical)} of the parameters"
        yield uncleared_gradients.finding(
            f"gradients{of(owner)} are not cleared between {between}: {which} keep theirs"
            f" on {count} of {len(share)} steps since step {first}",
            confidence=Confidence.CERTAIN if whole else Confidence.LIKELY,
            onset=first,
            evidence=(
                Evidence(
                    GRAD_CARRIED_FRACTION,
                    (max(first - 1, 0), last),
                    f"median {typical:.2f} over the last {min(len(share), _RECENT)} steps; 0 when"
                    " gradients are cleared",
                    owner,
                ),
                *_growth(facts, owner),
            ),
            fix="call `optimizer.zero_grad()` before every `backward()`"
            if whole
            else "call `zero_grad()` on the optimizer, not on a part of the model",
        )


def _growth(facts: Facts, owner: str) -> Iterator[Evidence]:
    """The gradient norm of the first five steps and of the last five."""
    if GRAD_TOTAL_NORM not in facts.run or owner not in facts.run[GRAD_TOTAL_NORM]:
        return
    norm = facts.run[GRAD_TOTAL_NORM][owner]
    finite = norm.values[np.isfinite(norm.values)]
    if len(finite) >= 10:
        first, last = np.median(finite[:5]), np.median(finite[-5:])
        yield Evidence(
            GRAD_TOTAL_NORM,
            (norm.first, norm.last),
            f"median {first:.3g} in the first 5 steps, {last:.3g} in the last 5",
            owner,
        )
