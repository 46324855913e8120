"""Gradients are clipped after the update that they were meant to limit."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import CLIP_LATE, CLIP_LIMIT, CLIP_NORM

_RECENT = 200  # readings that are judged
_MOST = 0.9  # share of them that has to agree


@rule(
    severity=Severity.WARNING,
    level=Level.PROCEDURE,
    needs=(CLIP_LATE,),
)
def late_clipping(facts: Facts, *, min_steps: int = 5) -> Iterator[Verdict]:
    """Gradients are clipped after the update that they were meant to limit.

    ## What it does
    Looks at where the script clips: after `optimizer.step()` with no `backward()` in between, on
    at least `min_steps` steps and on 9 of 10 recent ones that clip. An infinite limit only measures
    the norm, and is no clipping.

    ## Why it matters
    The update has used the gradients as they were. What is clipped afterwards is thrown away by the
    next `zero_grad()`, so training runs without any clipping, and nothing looks wrong before the
    first large gradient.

    ## What to do
    Order the loop: `zero_grad()`, `backward()`, (`scaler.unscale_`), `clip_grad_norm_`, `step()`.

    ## When it is wrong
    A call after the step that is there for its return value only, with a limit that does not
    matter. An update made by hand from `.grad` after the step.

    ## How to confirm
    - Print the norm that `clip_grad_norm_` returns and the gradient norm right before
      `optimizer.step()`: the latter should never exceed the limit.
    """
    late = facts.run[CLIP_LATE].get("")
    if late is None or len(late) < min_steps:
        yield late_clipping.not_examined(
            f"{0 if late is None else len(late)} of the {min_steps} clipped steps needed"
        )
        return
    is_late = late.values > 0
    count = int(is_late.sum())
    if count < min_steps or is_late[-_RECENT:].mean() < _MOST:
        yield late_clipping.clear(
            f"gradients were clipped before the update on {len(late) - count} of {len(late)} steps"
        )
        return
    first = int(late.steps[is_late.argmax()])
    over, limit = _over(facts)
    limits = facts.run[CLIP_LIMIT].get("") if CLIP_LIMIT in facts.run else None
    if limits is not None and np.isinf(limits.values).all():
        yield late_clipping.clear("the limit is infinite: the norms are only measured")
        return
    yield late_clipping.finding(
        f"gradients are clipped after optimizer.step() on {count} of {len(late)} steps: no update"
        f" is limited{over}",
        confidence=Confidence.CERTAIN,
        onset=first,
        evidence=(
            Evidence(CLIP_LATE, (first, late.last), f"1 on {count} of {len(late)} clipped steps"),
            *limit,
        ),
        fix="move clip_grad_norm_ between backward() and optimizer.step()",
    )


def _over(facts: Facts) -> tuple[str, tuple[Evidence, ...]]:
    """How many norms the limit should have cut, where they were measured."""
    norm = facts.run[CLIP_NORM].get("") if CLIP_NORM in facts.run else None
    limit = facts.run[CLIP_LIMIT].get("") if CLIP_LIMIT in facts.run else None
    if norm is None or limit is None or not len(norm) or not len(limit):
        return "", ()
    bound = float(np.median(limit.values))
    count = int((norm.values > bound).sum())
    says = f"{count} of {len(norm)} norms are above the limit of {bound:.3g}"
    return f"; {says}", (Evidence(CLIP_NORM, (norm.first, norm.last), says),)
