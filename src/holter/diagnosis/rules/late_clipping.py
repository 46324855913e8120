"""Gradients are clipped after the optimizer step."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.prevalence import prevails
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import CLIP_LATE, CLIP_LIMIT, CLIP_NORM


@rule(severity=Severity.WARNING, level=Level.PROCEDURE, needs=(CLIP_LATE,))
def late_clipping(
    facts: Facts,
    *,
    min_steps: Annotated[int, "late calls that are reported"] = 5,
    min_share: Annotated[float, "their share of the recent clipped steps"] = 0.9,
) -> Iterator[Verdict]:
    """Gradients are clipped after the optimizer step.

    ## What it does
    Looks for calls of `clip_grad_norm_` or `clip_grad_value_` that come after `optimizer.step()`
    with no `backward()` in between. A call with an infinite limit only measures the norm and does
    not count.

    ## Why it matters
    The update has already used the unclipped gradients, and the next `zero_grad()` discards the
    clipped ones. Training runs without clipping, unnoticed until a large gradient occurs.

    ## Example
    ```python
    optimizer.step(); clip_grad_norm_(model.parameters(), 1.0)  # bad
    clip_grad_norm_(model.parameters(), 1.0); optimizer.step()  # good
    ```

    ## What to do
    Order the loop: `zero_grad()`, `backward()`, (`scaler.unscale_`), `clip_grad_norm_`, `step()`.

    ## When it is wrong
    The call after the step only serves to read the norm it returns, or the script makes a manual
    update from `.grad` after the step.

    ## How to confirm
    - Print the gradient norm right before `optimizer.step()`: it should never exceed the limit.
    """
    late = facts.run[CLIP_LATE].get("")
    if late is None or len(late) < min_steps:
        yield late_clipping.not_examined(
            f"{0 if late is None else len(late)} of the {min_steps} clipped steps needed"
        )
        return
    is_late = late.values > 0
    count = int(is_late.sum())
    if not prevails(is_late, min_steps=min_steps, min_share=min_share):
        yield late_clipping.clear(
            f"gradients were clipped before the update on {len(late) - count} of {len(late)} steps"
        )
        return
    first = int(late.steps[is_late.argmax()])
    exceeding = list(_exceeding(facts))
    yield late_clipping.finding(
        f"gradients are clipped after optimizer.step() on {count} of {len(late)} steps, so no"
        " update is limited" + "".join(f"; {evidence.says}" for evidence in exceeding),
        confidence=Confidence.CERTAIN,
        onset=first,
        evidence=(
            Evidence(
                CLIP_LATE, (first, late.last), f"late on {count} of {len(late)} clipped steps"
            ),
            *exceeding,
        ),
        fix="move `clip_grad_norm_` between `backward()` and `optimizer.step()`",
    )


def _exceeding(facts: Facts) -> Iterator[Evidence]:
    """How many norms the limit should have cut."""
    norm = facts.run[CLIP_NORM].get("") if CLIP_NORM in facts.run else None
    limit = facts.run[CLIP_LIMIT].get("") if CLIP_LIMIT in facts.run else None
    if norm is not None and limit is not None and len(norm) and len(limit):
        bound = float(np.median(limit.values))
        count = int((norm.values > bound).sum())
        says = f"{count} of {len(norm)} norms exceed the limit of {bound:.3g}"
        yield Evidence(CLIP_NORM, (norm.first, norm.last), says)
